// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/regs/register_file.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <span>

#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::softgpu::regs {

namespace {

struct Row {
    std::uint32_t first;
    std::uint32_t count;
    std::uint32_t stride;
    std::uint32_t reset;
    hw_reg_access pf;
    hw_reg_access vf;
};

/// The rows of regs.def.
constexpr Row kRows[] = {
#define REG(block, name, offset, reset, pf, vf, doc) \
    Row{(offset), 1, 1, (reset), HW_REG_ACCESS_##pf, HW_REG_ACCESS_##vf},
#define REG_ARRAY(block, name, offset, count, stride, reset, pf, vf, doc) \
    Row{(offset), (count), (stride), (reset), HW_REG_ACCESS_##pf, HW_REG_ACCESS_##vf},
#include "pf-driver/hw/regs.def"
#undef REG
#undef REG_ARRAY
};

constexpr std::size_t kDwordBytes = sizeof(std::uint32_t);

/// The register at a byte offset. An offset beyond the bank gives a number that no register has.
RegisterIndex register_of(std::uint64_t byte_offset) {
    return RegisterIndex{
        static_cast<std::uint32_t>(std::min<std::uint64_t>(byte_offset / kDwordBytes, ~0u))};
}

/// Calls fn(register number) for every register of a row.
template <typename Fn> void for_each_of(const Row& row, Fn fn) {
    for (std::uint32_t i = 0; i < row.count; ++i) fn(row.first + i * row.stride);
}

/// The access of a register that has no row in regs.def. For a VF, the registers of the PF-only
/// range (from REG_VGPU_ID on) do not exist.
std::uint8_t access_of_unlisted(Role role, std::uint32_t index) {
    const bool is_pf_only = role == Role::Vf && index >= REG_VGPU_ID;
    return is_pf_only ? HW_REG_ACCESS_NA : HW_REG_ACCESS_RW;
}

}  // namespace

RegisterFile::RegisterFile(Role role)
    : storage_(HW_REG_COUNT), claim_of_(HW_REG_COUNT), access_(HW_REG_COUNT) {
    for (std::uint32_t i = 0; i < HW_REG_COUNT; ++i) access_[i] = access_of_unlisted(role, i);
    for (const Row& row : kRows) {
        const hw_reg_access access = role == Role::Pf ? row.pf : row.vf;
        for_each_of(row, [&](std::uint32_t i) { access_[i] = static_cast<std::uint8_t>(access); });
    }
    reset();
}

void RegisterFile::claim(RegisterIndex first, std::uint32_t count, Read read, Write write) {
    assert(raw(first) < HW_REG_COUNT && count <= HW_REG_COUNT - raw(first));
    assert(claims_.size() < std::numeric_limits<std::uint16_t>::max());
    const auto claim = static_cast<std::uint16_t>(claims_.size());
    claims_.push_back({std::move(read), std::move(write)});
    for (std::uint32_t i = 0; i < count; ++i) {
        std::uint16_t& owner = claim_of_[raw(first) + i];
        assert(owner == 0 && "register claimed twice");
        owner = claim;
    }
}

std::uint32_t RegisterFile::read(RegisterIndex index) {
    check_lock();
    if (raw(index) >= HW_REG_COUNT) return ~0u;
    const std::uint32_t stored = storage_[raw(index)];
    const Read& behaviour = claims_[claim_of_[raw(index)]].read;
    return behaviour ? behaviour(index, stored) : stored;
}

void RegisterFile::write(RegisterIndex index, std::uint32_t value) {
    check_lock();
    if (raw(index) >= HW_REG_COUNT) return;
    storage_[raw(index)] = value;
    const Write& behaviour = claims_[claim_of_[raw(index)]].write;
    if (behaviour) behaviour(index, value);
}

std::uint32_t RegisterFile::get(RegisterIndex index) const {
    return raw(index) < HW_REG_COUNT ? storage_[raw(index)] : ~0u;
}

void RegisterFile::set(RegisterIndex index, std::uint32_t value) {
    if (raw(index) < HW_REG_COUNT) storage_[raw(index)] = value;
}

std::uint32_t RegisterFile::mmio_read(RegisterIndex index) {
    if (raw(index) >= HW_REG_COUNT) {
        ++refused_;
        return ~0u;
    }
    if (access_[raw(index)] == HW_REG_ACCESS_NA) {
        ++refused_;
        return 0;
    }
    return read(index);
}

/// Checks access rights first, so a refused write neither changes storage nor runs behaviour.
void RegisterFile::mmio_write(RegisterIndex index, std::uint32_t value, Gate write_gate) {
    const std::uint8_t access =
        raw(index) < HW_REG_COUNT ? access_[raw(index)] : std::uint8_t{HW_REG_ACCESS_NA};
    const bool is_gated = access == HW_REG_ACCESS_FA && write_gate == Gate::Shut;
    if (access == HW_REG_ACCESS_NA || access == HW_REG_ACCESS_RO || is_gated) {
        ++refused_;
        return;
    }
    write(index, value);
}

void RegisterFile::mmio_read(std::uint64_t byte_offset, std::span<std::byte> out) {
    while (!out.empty()) {
        const std::size_t first = byte_offset % kDwordBytes;
        const std::size_t count = std::min(out.size(), kDwordBytes - first);
        const std::uint32_t value = mmio_read(register_of(byte_offset));
        std::ranges::copy(bytes_of(value).subspan(first, count), out.begin());
        out = out.subspan(count);
        byte_offset += count;
    }
}

/// Merges a partial write with the stored value, not with read(), because read() may have effects.
void RegisterFile::mmio_write(std::uint64_t byte_offset, std::span<const std::byte> data,
                              Gate write_gate) {
    while (!data.empty()) {
        const std::size_t first = byte_offset % kDwordBytes;
        const std::size_t count = std::min(data.size(), kDwordBytes - first);
        const RegisterIndex index = register_of(byte_offset);
        std::uint32_t value = get(index);
        std::ranges::copy(data.first(count), bytes_of(value).subspan(first).begin());
        mmio_write(index, value, write_gate);
        data = data.subspan(count);
        byte_offset += count;
    }
}

void RegisterFile::reset() {
    std::fill(storage_.begin(), storage_.end(), 0u);
    for (const Row& row : kRows)
        for_each_of(row, [&](std::uint32_t i) { storage_[i] = row.reset; });
}

void RegisterFile::save(Writer& out) const {
    out.vector(storage_);
}

Result<> RegisterFile::load(Reader& in) {
    std::uint64_t count = 0;
    Result<> read = in.value(count);
    if (read && count != HW_REG_COUNT)
        read = fail(EPROTO, "state stream holds a register file of another size");
    if (read) read = in.bytes(std::as_writable_bytes(std::span(storage_)));
    if (!read) reset();
    return read;
}

}  // namespace vgpu::softgpu::regs
