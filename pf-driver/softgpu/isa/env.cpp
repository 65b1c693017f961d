// SPDX-License-Identifier: MIT
//
// The values of special operands (OperandKind::Special). Special operands are rare, so this part of
// Env is not inlined.
#include "pf-driver/softgpu/isa/env.h"

#include <algorithm>
#include <cstring>

#include "pf-driver/softgpu/isa/encoding.h"

namespace vgpu::softgpu::isa {

namespace {

/// LDS_DIRECT: one value of LDS for all lanes. M0[18:16] is the value's type, M0[15:0] its address
/// in bytes. Bytes outside the group's LDS read as 0.
u32 lds_direct(const Env& env) {
    constexpr u32 type_shift = 16, type_bits = 7, address_bits = 0xffff;
    enum Kind : u32 { kUnsignedByte, kUnsignedShort, kDword, kUnused, kSignedByte, kSignedShort };
    const u32 address = env.m0() & address_bits;
    u32 word = 0;
    if (address < env.lds_bytes)
        std::memcpy(&word, env.lds + address, std::min(env.lds_bytes - address, 4u));
    switch ((env.m0() >> type_shift) & type_bits) {
        case kUnsignedByte:
            return word & 0xff;
        case kUnsignedShort:
            return word & 0xffff;
        case kSignedByte:
            return static_cast<u32>(i32{static_cast<i8>(word)});
        case kSignedShort:
            return static_cast<u32>(i32{static_cast<i16>(word)});
        default:
            return word;
    }
}

}  // namespace

u64 Env::special(u32 code) const {
    constexpr u64 kApertureBytes = u64{1} << 32;
    const Apertures& apertures = context.apertures;
    switch (code) {
        case enc::kSharedBase:
            return apertures.shared_base;
        case enc::kSharedLimit:
            return apertures.shared_base + kApertureBytes - 1;
        case enc::kPrivateBase:
            return apertures.private_base;
        case enc::kPrivateLimit:
            return apertures.private_base + kApertureBytes - 1;
        case enc::kVccZero:
            return vcc() == 0 ? 1 : 0;
        case enc::kExecZero:
            return exec() == 0 ? 1 : 0;
        case enc::kLdsDirect:
            return lds_direct(*this);
        default:
            return wave.scc;
    }
}

}  // namespace vgpu::softgpu::isa
