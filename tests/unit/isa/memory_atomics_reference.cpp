// SPDX-License-Identifier: MIT
#include "tests/unit/isa/memory_atomics_reference.h"

#include <algorithm>

#include "tests/unit/isa/soft_float.h"

namespace vgpu::test {

namespace {

using u64 = std::uint64_t;
using i64 = std::int64_t;

u64 mask(unsigned bits) {
    return bits == 64 ? ~u64{0} : (u64{1} << bits) - 1;
}
i64 as_signed(u64 x, unsigned bits) {
    const u64 sign = u64{1} << (bits - 1);
    return static_cast<i64>((x & sign) != 0 ? x | ~mask(bits) : x);
}
FloatFormat format_of(unsigned bits) {
    return bits == 64 ? kDouble : kSingle;
}

/// Whether x is below y as numbers, -0 below +0; neither is a NaN.
bool is_less(u64 x, u64 y, FloatFormat format) {
    const bool are_zeros = ((x | y) & ~format.sign()) == 0;
    if (are_zeros) return x > y;
    return unpack(x, format) < unpack(y, format);
}
/// A number beats a NaN.
u64 chosen(const AtomicOperands& o, bool wants_less) {
    const FloatFormat format = format_of(o.bits);
    if (format.is_nan(o.memory)) return o.a;
    if (format.is_nan(o.a)) return o.memory;
    return is_less(o.memory, o.a, format) == wants_less ? o.memory : o.a;
}
bool are_equal_floats(u64 x, u64 y, FloatFormat format) {
    if (format.is_nan(x) || format.is_nan(y)) return false;
    const bool are_zeros = ((x | y) & ~format.sign()) == 0;
    return x == y || are_zeros;
}
/// The words whose top bit is set are replaced, without that bit.
u64 conditionally(u64 memory, u64 data) {
    u64 out = 0;
    for (unsigned shift = 0; shift < 64; shift += 32) {
        const u64 word = (data >> shift) & 0xffffffff;
        const u64 old = (memory >> shift) & 0xffffffff;
        out |= ((word & 0x80000000) != 0 ? word & 0x7fffffff : old) << shift;
    }
    return out;
}

#define VALUE(expression)                                          \
    [](const AtomicOperands& o) -> u64 {                           \
        [[maybe_unused]] const u64 m = o.memory, a = o.a, b = o.b; \
        [[maybe_unused]] const i64 sm = as_signed(m, o.bits);      \
        [[maybe_unused]] const i64 sa = as_signed(a, o.bits);      \
        return static_cast<u64>(expression) & mask(o.bits);        \
    }
using Table = std::map<std::string, AtomicReference::Value>;

/// What the two families share; the manual gives DATA as a, DATA2 as b.
constexpr AtomicReference::Value kIncrement = VALUE(m >= a ? 0 : m + 1);
constexpr AtomicReference::Value kDecrement = VALUE(m == 0 || m > a ? a : m - 1);

/// FLAT, GLOBAL, MUBUF, SMEM. A compare-and-swap has the new value first, then the comparand.
const Table& memory_table() {
    static const Table kTable{
        {"swap", VALUE(a)},
        {"cmpswap", VALUE(m == b ? a : m)},
        {"add", VALUE(m + a)},
        {"sub", VALUE(m - a)},
        {"smin", VALUE(std::min(sm, sa))},
        {"umin", VALUE(std::min(m, a))},
        {"smax", VALUE(std::max(sm, sa))},
        {"umax", VALUE(std::max(m, a))},
        {"and", VALUE(m & a)},
        {"or", VALUE(m | a)},
        {"xor", VALUE(m ^ a)},
        {"inc", kIncrement},
        {"dec", kDecrement},
    };
    return kTable;
}

/// DS, by operation and letter of the type. A compare-and-store has the comparand first.
const Table& lds_table() {
    static const Table kTable{
        {"add_u", VALUE(m + a)},
        {"sub_u", VALUE(m - a)},
        {"rsub_u", VALUE(a - m)},
        {"inc_u", kIncrement},
        {"dec_u", kDecrement},
        {"min_i", VALUE(std::min(sm, sa))},
        {"max_i", VALUE(std::max(sm, sa))},
        {"min_u", VALUE(std::min(m, a))},
        {"max_u", VALUE(std::max(m, a))},
        {"and_b", VALUE(m & a)},
        {"or_b", VALUE(m | a)},
        {"xor_b", VALUE(m ^ a)},
        {"mskor_b", VALUE((m & (a ^ mask(o.bits))) | b)},
        {"wrxchg_b", VALUE(a)},
        {"write_b", VALUE(a)},
        {"cmpst_b", VALUE(m == a ? b : m)},
        {"cmpst_f", VALUE(are_equal_floats(m, a, format_of(o.bits)) ? b : m)},
        {"min_f", VALUE(chosen(o, true))},
        {"max_f", VALUE(chosen(o, false))},
        {"add_f", VALUE(pack(sum(unpack(m, kSingle), unpack(a, kSingle)), kSingle))},
        {"wrap_b", VALUE(m >= a ? m - a : m + b)},
        {"condxchg32_b", VALUE(conditionally(m, a))},
    };
    return kTable;
}

std::optional<AtomicReference> find(const Table& table, const std::string& key, unsigned bits) {
    const auto found = table.find(key);
    if (found == table.end()) return {};
    return AtomicReference{found->second, bits, key.ends_with("_f")};
}

/// Removes a part of the name; whether it was there.
bool remove(std::string& name, const std::string& part) {
    const std::size_t at = name.find(part);
    if (at == std::string::npos) return false;
    name.erase(at, part.size());
    return true;
}

std::optional<AtomicReference> lds_reference(std::string name) {
    const bool is_on_two_places = remove(name, "_src2");
    if (name.starts_with("write") && !is_on_two_places) return {};
    remove(name, "_rtn");
    const unsigned bits = name.ends_with("64") ? 64 : 32;
    return find(lds_table(), name.substr(0, name.size() - 2), bits);
}

}  // namespace

std::optional<AtomicReference> atomic_reference(const std::string& mnemonic) {
    std::string name = mnemonic;
    if (name.starts_with("ds_")) return lds_reference(name.substr(3));
    const std::size_t at = name.find("_atomic_");
    if (at == std::string::npos) return {};
    name.erase(0, at + std::string("_atomic_").size());
    const unsigned bits = remove(name, "_x2") ? 64 : 32;
    return find(memory_table(), name, bits);
}

const std::map<std::string, std::string>& lds_rows_without_reference() {
    static const std::map<std::string, std::string> kReasons{
        {"ds_nop", "touches nothing"},
        {"ds_gws_init", "between groups: WaveSync.*"},
        {"ds_gws_barrier", "between groups: WaveSync.*"},
        {"ds_gws_sema_v", "between groups: WaveSync.*"},
        {"ds_gws_sema_br", "between groups: WaveSync.*"},
        {"ds_gws_sema_p", "between groups: WaveSync.*"},
        {"ds_gws_sema_release_all", "between groups: WaveSync.*"},
        {"ds_swizzle_b32", "between lanes: LdsLanes.*"},
        {"ds_permute_b32", "between lanes"},
        {"ds_bpermute_b32", "between lanes"},
        {"ds_append", "one place of all lanes: LdsLanes.AppendAndConsumeCountLanes"},
        {"ds_consume", "one place of all lanes: LdsLanes.AppendAndConsumeCountLanes"},
        {"ds_wrxchg2_rtn_b32", "two places: LdsLanes.ExchangesOfTwoPlacesGiveBothBack"},
        {"ds_wrxchg2st64_rtn_b32", "two places: LdsLanes.ExchangesOfTwoPlacesGiveBothBack"},
        {"ds_wrxchg2_rtn_b64", "two places: LdsLanes.ExchangesOfTwoPlacesGiveBothBack"},
        {"ds_wrxchg2st64_rtn_b64", "two places: LdsLanes.ExchangesOfTwoPlacesGiveBothBack"},
    };
    return kReasons;
}

}  // namespace vgpu::test
