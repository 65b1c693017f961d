// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/mem/atomic.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "pf-driver/hw/tc_op.h"
#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::softgpu::mem {

namespace {

template <typename T> using Signed = std::make_signed_t<T>;

template <typename T> struct Operation {
    std::uint32_t code;
    T (*apply)(T memory, T source, T compare);
};

template <typename T> T smaller_signed(T a, T b, T) {
    return static_cast<Signed<T>>(a) < static_cast<Signed<T>>(b) ? a : b;
}
template <typename T> T larger_signed(T a, T b, T) {
    return static_cast<Signed<T>>(a) > static_cast<Signed<T>>(b) ? a : b;
}
/// TC_OP INC and DEC wrap at `source`, not at the limit of the type (Vega ISA manual,
/// BUFFER_ATOMIC_INC).
template <typename T> T increment(T memory, T source, T) {
    return memory >= source ? T{0} : static_cast<T>(memory + 1);
}
template <typename T> T decrement(T memory, T source, T) {
    return memory == 0 || memory > source ? source : static_cast<T>(memory - 1);
}

/// The operations of one width. `codes` lists their codes in the order of pf-driver/hw/tc_op.def.
template <typename T>
constexpr std::array<Operation<T>, 13> operations(const std::array<std::uint32_t, 13>& codes) {
    return {{
        {codes[0], [](T, T source, T) { return source; }},
        {codes[1], [](T m, T source, T compare) { return m == compare ? source : m; }},
        {codes[2], [](T m, T source, T) { return static_cast<T>(m + source); }},
        {codes[3], [](T m, T source, T) { return static_cast<T>(m - source); }},
        {codes[4], smaller_signed<T>},
        {codes[5], [](T m, T source, T) { return std::min(m, source); }},
        {codes[6], larger_signed<T>},
        {codes[7], [](T m, T source, T) { return std::max(m, source); }},
        {codes[8], [](T m, T source, T) { return static_cast<T>(m & source); }},
        {codes[9], [](T m, T source, T) { return static_cast<T>(m | source); }},
        {codes[10], [](T m, T source, T) { return static_cast<T>(m ^ source); }},
        {codes[11], increment<T>},
        {codes[12], decrement<T>},
    }};
}

constexpr auto kOperations32 = operations<std::uint32_t>(
    {TC_OP_SWAP_32, TC_OP_CMPSWAP_32, TC_OP_ADD_32, TC_OP_SUB_32, TC_OP_SMIN_32, TC_OP_UMIN_32,
     TC_OP_SMAX_32, TC_OP_UMAX_32, TC_OP_AND_32, TC_OP_OR_32, TC_OP_XOR_32, TC_OP_INC_32,
     TC_OP_DEC_32});
constexpr auto kOperations64 = operations<std::uint64_t>(
    {TC_OP_SWAP_64, TC_OP_CMPSWAP_64, TC_OP_ADD_64, TC_OP_SUB_64, TC_OP_SMIN_64, TC_OP_UMIN_64,
     TC_OP_SMAX_64, TC_OP_UMAX_64, TC_OP_AND_64, TC_OP_OR_64, TC_OP_XOR_64, TC_OP_INC_64,
     TC_OP_DEC_64});

template <typename T>
const Operation<T>* find(const std::array<Operation<T>, 13>& rows, std::uint32_t code) {
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.code == code; });
    return row == rows.end() ? nullptr : &*row;
}

/// Executes every operation as a compare-and-swap loop, so that one implementation serves all
/// operations; contention is rare. False on a fault, or if the operand has no host address. Checks
/// the read permission first, so that a page without this permission faults as a read.
template <typename T, typename Next>
bool exchange_direct(Port& port, GpuVa address, T& before, Next next) {
    const Port::Hold hold(port);
    if (port.at(address, Access::Read) == nullptr && port.has_fault()) return false;
    std::byte* const host = port.at(address, Access::Write);
    if (host == nullptr) return false;
    auto cell = shared_at<T>(host);
    before = cell.load(std::memory_order_relaxed);
    while (!cell.compare_exchange_weak(before, next(before), std::memory_order_acq_rel,
                                       std::memory_order_relaxed)) {
    }
    return true;
}

template <typename T>
AtomicResult perform(Port& port, const AtomicRequest& request, const Operation<T>& operation) {
    const auto source = static_cast<T>(request.source);
    const auto compare = static_cast<T>(request.compare);
    if (raw(request.address) % sizeof(T) != 0) return {AtomicStatus::Bad, 0};
    T before{};
    if (exchange_direct(port, request.address, before,
                        [&](T old) { return operation.apply(old, source, compare); }))
        return {AtomicStatus::Done, before};
    if (port.has_fault()) return {AtomicStatus::Fault, 0};
    if (!port.supports_atomics(request.address)) return {AtomicStatus::Done, static_cast<T>(~T{0})};
    if (!port.read(request.address, bytes_of(before))) return {AtomicStatus::Fault, 0};
    const T after = operation.apply(before, source, compare);
    if (!port.write(request.address, bytes_of(after))) return {AtomicStatus::Fault, 0};
    return {AtomicStatus::Done, before};
}

}  // namespace

AtomicResult perform_atomic(Port& port, const AtomicRequest& request) {
    const std::uint32_t code = request.operation & ~TC_OP_NO_RETURN;
    if (const auto* operation = find(kOperations32, code))
        return perform(port, request, *operation);
    if (const auto* operation = find(kOperations64, code))
        return perform(port, request, *operation);
    return {AtomicStatus::Bad, 0};
}

}  // namespace vgpu::softgpu::mem
