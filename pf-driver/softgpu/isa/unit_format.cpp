// SPDX-License-Identifier: MIT
//
// Execute unit: loads and stores of buffers with format conversion (MUBUF "format" and MTBUF). An
// element has up to four components of 2 to 32 bits. A register holds one component of 32 bits, or
// one or two components of 16 bits. Sources: Vega ISA manual, "Buffer resource descriptor" and
// "MTBUF"; docs/isa.md ("Formats") for cases that the manual does not define. Both variants
// (decode.h) share one build of this file.
#define VGPU_ISA_VARIANT format_unit
#include "pf-driver/softgpu/isa/memory_access.h"

namespace vgpu::softgpu::isa::format_unit {

namespace {

constexpr u32 kComponents = 4;

enum NumberFormat : u32 {
    kUnorm = 0,
    kSnorm = 1,
    kUscaled = 2,
    kSscaled = 3,
    kUint = 4,
    kSint = 5,
    kReserved = 6,
    kFloat = 7
};

/// Widths in bits of the components of a data format, beginning with the lowest bits of the
/// element; 0: the format does not have the component.
using Widths = std::array<u8, kComponents>;
constexpr std::array<Widths, 16> kDataFormats{{
    {},
    {8},
    {16},
    {8, 8},
    {32},
    {16, 16},
    {11, 11, 10},
    {10, 11, 11},
    {2, 10, 10, 10},
    {10, 10, 10, 2},
    {8, 8, 8, 8},
    {32, 32},
    {16, 16, 16, 16},
    {32, 32, 32},
    {32, 32, 32, 32},
    {},
}};

/// A data format and a number format together.
struct Format {
    Widths widths;
    u32 number;  ///< a NumberFormat
    u32 bytes;   ///< size of an element; 0: the data format is invalid, and accesses are dropped

    explicit Format(u32 code)
        : widths(kDataFormats[bits_at(code, enc::kDataFormat)]),
          number(bits_at(code, enc::kNumberFormat)),
          bytes(0) {
        for (const u32 width : widths) bytes += width;
        bytes /= 8;
    }

private:
    static u32 bits_at(u32 code, enc::Field field) {
        return (code >> field.first) & ((1u << field.count) - 1);
    }
};

/// The words of one element as they are in memory.
using Element = std::array<u32, kComponents>;
/// The components of an element, each in 32 bits.
using Values = std::array<u32, kComponents>;

u32 low_mask(u32 width) {
    return width == 32 ? ~0u : (1u << width) - 1;
}

/// Unsigned floats of 10 or 11 bits are halves without the sign and the lowest bits.
u32 small_float_to_f32(u32 value, u32 width) {
    constexpr u32 half_magnitude_bits = 15;
    return std::bit_cast<u32>(
        to_f32(f16{static_cast<u16>(value << (half_magnitude_bits - width))}));
}

/// Rounds toward zero, as Direct3D requires. So the half must be rounded toward zero, too.
u32 f32_to_small_float(f32 value, u32 width) {
    constexpr u32 half_magnitude_bits = 15;
    if (value < 0.0f) return 0;
    return u32{to_f16_toward_zero(value).bits} >> (half_magnitude_bits - width);
}

u32 decode_float(u32 value, u32 width) {
    if (width == 32) return value;
    if (width == 16) return std::bit_cast<u32>(to_f32(f16{static_cast<u16>(value)}));
    return width == 11 || width == 10 ? small_float_to_f32(value, width) : 0;
}

u32 encode_float(u32 value, u32 width) {
    const f32 number = std::bit_cast<f32>(value);
    if (width == 32) return value;
    if (width == 16) return to_f16(number).bits;
    return width == 11 || width == 10 ? f32_to_small_float(number, width) : 0;
}

/// The largest value of a normalised component, which stands for 1.0.
f64 norm_top(u32 width, bool is_signed) {
    return static_cast<f64>(low_mask(is_signed ? width - 1 : width));
}

/// The 32-bit value of a component: an integer for kUint and kSint, 0 for kReserved, else the bits
/// of a float.
u32 decode_component(u32 value, u32 width, u32 number) {
    const i32 with_sign = enc::sign_extend(value, width);
    switch (number) {
        case kUnorm:
            return std::bit_cast<u32>(
                static_cast<f32>(f64{static_cast<f64>(value)} / norm_top(width, false)));
        case kSnorm:
            return std::bit_cast<u32>(static_cast<f32>(
                std::max(-1.0, static_cast<f64>(with_sign) / norm_top(width, true))));
        case kUscaled:
            return std::bit_cast<u32>(static_cast<f32>(value));
        case kSscaled:
            return std::bit_cast<u32>(static_cast<f32>(with_sign));
        case kUint:
            return value;
        case kSint:
            return static_cast<u32>(with_sign);
        case kFloat:
            return decode_float(value, width);
        default:
            return 0;
    }
}

/// Nearest whole number in [low, high]; 0 for NaN.
i64 rounded(f64 value, f64 low, f64 high) {
    if (value != value) return 0;
    return static_cast<i64>(rint_of(value < low ? low : (value > high ? high : value)));
}

/// The inverse of decode_component(). For kUnorm to kSscaled, converts a float to the nearest
/// number of the format. For kUint and kSint, returns the integer unchanged; pack_element() drops
/// the bits above `width`.
u32 encode_component(u32 value, u32 width, u32 number) {
    const f64 real = static_cast<f64>(std::bit_cast<f32>(value));
    const f64 top = norm_top(width, false);
    const f64 signed_top = norm_top(width, true);
    switch (number) {
        case kUnorm:
            return static_cast<u32>(rounded(real * top, 0.0, top));
        case kSnorm:
            return static_cast<u32>(rounded(real * signed_top, -signed_top, signed_top));
        case kUscaled:
            return static_cast<u32>(rounded(real, 0.0, top));
        case kSscaled:
            return static_cast<u32>(rounded(real, -signed_top - 1.0, signed_top));
        case kUint:
        case kSint:
            return value;
        case kFloat:
            return encode_float(value, width);
        default:
            return 0;
    }
}

/// The value of a component that the format does not have: for the fourth component 1 or 1.0, for
/// the others 0.
u32 missing_component(u32 which, u32 number) {
    if (which != kComponents - 1) return 0;
    const bool is_integer = number == kUint || number == kSint;
    return is_integer ? 1u : std::bit_cast<u32>(1.0f);
}

Values unpack(const Format& format, const Element& element) {
    Values out{};
    u32 first = 0;
    for (u32 c = 0; c < kComponents; ++c) {
        const u32 width = format.widths[c];
        out[c] = missing_component(c, format.number);
        if (width == 0) continue;
        const u32 value = (element[first / 32] >> (first % 32)) & low_mask(width);
        out[c] = decode_component(value, width, format.number);
        first += width;
    }
    return out;
}

Element pack_element(const Format& format, const Values& values) {
    Element out{};
    u32 first = 0;
    for (u32 c = 0; c < kComponents && format.widths[c] != 0; ++c) {
        const u32 width = format.widths[c];
        const u32 value = encode_component(values[c], width, format.number) & low_mask(width);
        out[first / 32] |= value << (first % 32);
        first += width;
    }
    return out;
}

// ---- order of components (DST_SEL)

/// Selectors of DST_SEL: 0 selects the value 0, kSelectOne the value 1, and kSelectFirst + n
/// component n.
constexpr u32 kSelectBits = 3, kSelectOne = 1, kSelectFirst = 4;
constexpr u32 kIdentity = 0xfac;  ///< selectors 4, 5, 6, 7: keeps the order

u32 selector(u32 select, u32 which) {
    return (select >> (kSelectBits * which)) & 7;
}

Values swizzled(const Values& values, u32 select, u32 number) {
    Values out{};
    for (u32 c = 0; c < kComponents; ++c) {
        const u32 from = selector(select, c);
        if (from >= kSelectFirst) out[c] = values[from - kSelectFirst];
        if (from == kSelectOne) out[c] = missing_component(kComponents - 1, number);
    }
    return out;
}

/// The inverse of swizzled(): each component of the element comes from the first component in
/// registers whose selector names it; 0 if no selector does.
Values unswizzled(const Values& values, u32 select) {
    Values out{};
    for (u32 c = kComponents; c-- > 0;) {
        const u32 to = selector(select, c);
        if (to >= kSelectFirst) out[to - kSelectFirst] = values[c];
    }
    return out;
}

// ---- registers

/// The format of a buffer's elements, and the order of their components in registers.
struct Shape {
    Format format;
    u32 select;  ///< DST_SEL_X to W, three bits each
};

template <Encoding E> Shape shape_of(const Env& env, const Instruction& i) {
    if constexpr (E == Encoding::Mtbuf) return {Format(i.format), kIdentity};
    const BufferDescriptor buffer(env, i.src[2].value);
    return {Format(buffer.format), buffer.select};
}

/// True if registers hold components as floats.
bool is_float_register(u32 number) {
    return number != kUint && number != kSint;
}

/// Converts a component to 16 bits: a float to a half, an integer to its low bits. widened() is the
/// inverse.
u16 narrowed(u32 value, u32 number) {
    return is_float_register(number) ? to_f16(std::bit_cast<f32>(value)).bits
                                     : static_cast<u16>(value);
}
u32 widened(u16 value, u32 number) {
    if (is_float_register(number)) return std::bit_cast<u32>(to_f32(f16{value}));
    return number == kSint ? static_cast<u32>(i32{static_cast<i16>(value)}) : value;
}

/// The layout of components in registers.
enum class Layout {
    Whole,   ///< a component of 32 bits in each register
    Packed,  ///< two components of 16 bits in each register
    Low,     ///< one component, in the low half of its register
    High     ///< one component, in the high half of its register
};

/// Puts the first `count` components into registers. For High, the component is in the low half;
/// write_back() moves it to the high half.
template <Layout L> void put_values(const Values& values, u32 count, u32 number, u32* out) {
    if constexpr (L == Layout::Whole) {
        for (u32 c = 0; c < count; ++c) out[c] = values[c];
        return;
    }
    for (u32 c = 0; c < count; c += 2) {
        const u32 high = c + 1 < count ? narrowed(values[c + 1], number) : 0u;
        out[c / 2] = narrowed(values[c], number) | (high << 16);
    }
}

template <Layout L> Values get_values(const u32* in, u32 count, u32 number) {
    Values out{};
    for (u32 c = 0; c < count; ++c) {
        const u32 word = L == Layout::Whole ? in[c] : in[c / 2];
        const bool is_high = L == Layout::High || (L == Layout::Packed && c % 2 == 1);
        out[c] = L == Layout::Whole
                     ? word
                     : widened(static_cast<u16>(is_high ? word >> 16 : word), number);
    }
    return out;
}

/// Number of words of an element; 0 if the data format is invalid. Each word has its own address,
/// because a swizzled buffer interleaves the words of elements.
u32 words_of(const Format& format) {
    return (format.bytes + 3) / 4;
}

/// The addresses of all words of the lanes' elements.
struct WordAddresses {
    std::array<Addresses, kComponents> of_word;
    u32 words;       ///< number of words of an element
    u32 word_bytes;  ///< 4, or the size of an element that is smaller than a word
};

void find_word_addresses(const Env& env, const Instruction& i, const Format& format,
                         WordAddresses& out) {
    out.words = words_of(format);
    out.word_bytes = std::min(format.bytes, 4u);
    for (u32 k = 0; k < out.words; ++k) buffer_addresses(env, i, k, out.word_bytes, out.of_word[k]);
}

/// True if any word of the lane's element is outside the buffer, or if the data format is invalid.
bool is_dropped(const WordAddresses& addresses, u32 lane) {
    u64 dropped = 0;
    for (u32 k = 0; k < addresses.words; ++k) dropped |= addresses.of_word[k].dropped;
    return addresses.words == 0 || ((dropped >> lane) & 1) != 0;
}

u32 watch_hits(const Env& env, const WordAddresses& addresses, WatchedAccess access) {
    u64 lanes = env.exec();
    for (u32 k = 0; k < addresses.words; ++k) lanes &= ~addresses.of_word[k].dropped;
    u32 hits = 0;
    for (u32 k = 0; k < addresses.words; ++k)
        hits |= watch_hits(env, addresses.of_word[k], lanes, addresses.word_bytes, access);
    return hits;
}

/// Like every load, reads all words of all active lanes before it writes a register.
template <Encoding E, u32 Count, Layout L> Outcome format_load(Env& env, const Instruction& i) {
    constexpr u32 registers = L == Layout::Whole ? Count : (Count + 1) / 2;
    constexpr Part part = L == Layout::Low    ? Part::Low
                          : L == Layout::High ? Part::High
                                              : Part::Whole;
    const Shape shape = shape_of<E>(env, i);
    WordAddresses addresses;
    find_word_addresses(env, i, shape.format, addresses);
    Row rows[registers];
    for (u64 left = env.exec(); left != 0; left &= left - 1) {
        const u32 lane = static_cast<u32>(std::countr_zero(left));
        Values values{};
        if (!is_dropped(addresses, lane)) {
            Element element{};
            for (u32 k = 0; k < addresses.words; ++k) {
                const u64 va = addresses.of_word[k].at[lane];
                if (!read_global(env, va, &element[k], addresses.word_bytes))
                    return fault(env, lane, va, Access::Read);
            }
            values = unpack(shape.format, element);
        }
        values = swizzled(values, shape.select, shape.format.number);
        u32 words[registers];
        put_values<L>(values, Count, shape.format.number, words);
        for (u32 k = 0; k < registers; ++k) rows[k].lane[lane] = words[k];
    }
    if (i.to_lds)
        row_to_lds(env, i, rows[0]);
    else
        write_back<part>(env, i.dst, rows, registers, env.exec());
    return done_with_memory(env, watch_hits(env, addresses, WatchedAccess::Load));
}

template <Encoding E, u32 Count, Layout L> Outcome format_store(Env& env, const Instruction& i) {
    constexpr u32 registers = L == Layout::Whole ? Count : (Count + 1) / 2;
    const Shape shape = shape_of<E>(env, i);
    WordAddresses addresses;
    find_word_addresses(env, i, shape.format, addresses);
    for (u64 left = env.exec(); left != 0; left &= left - 1) {
        const u32 lane = static_cast<u32>(std::countr_zero(left));
        if (is_dropped(addresses, lane)) continue;
        u32 words[registers];
        for (u32 k = 0; k < registers; ++k) words[k] = env.v[i.src[1].value + k].lane[lane];
        const Values values = get_values<L>(words, Count, shape.format.number);
        const Element element = pack_element(shape.format, unswizzled(values, shape.select));
        for (u32 k = 0; k < addresses.words; ++k) {
            const u64 va = addresses.of_word[k].at[lane];
            if (!write_global(env, va, &element[k], addresses.word_bytes))
                return fault(env, lane, va, Access::Write);
        }
    }
    return done_with_memory(env, watch_hits(env, addresses, WatchedAccess::Store));
}

#define BL(n, code, encoding, count, layout) \
    VGPU_HANDLER(n, format_load<Encoding::encoding, count, Layout::layout>)
#define BS(n, code, encoding, count, layout) \
    VGPU_HANDLER(n, format_store<Encoding::encoding, count, Layout::layout>)
#define ROW(kind, ...) kind(__VA_ARGS__)
#include "pf-driver/softgpu/isa/ops/format.def"
#undef ROW

}  // namespace

}  // namespace vgpu::softgpu::isa::format_unit

namespace vgpu::softgpu::isa {

void fill_format(HandlerTable& table) {
    using namespace format_unit;
#define ROW VGPU_SET
#include "pf-driver/softgpu/isa/ops/format.def"
#undef ROW
}

}  // namespace vgpu::softgpu::isa
