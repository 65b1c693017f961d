// SPDX-License-Identifier: MIT
//
// vfio-user messages as a client speaks them, written down from the protocol's specification and
// from what QEMU sends, not from the server's header: a client that shares its definitions with the
// server cannot notice when both are wrong.
#pragma once

#include <cstdint>

namespace vgpu::test::wire {

enum class Command : std::uint16_t {
    Version = 1,
    DmaMap = 2,
    DmaUnmap = 3,
    GetInfo = 4,
    GetRegionInfo = 5,
    GetRegionIoFds = 6,
    GetIrqInfo = 7,
    SetIrqs = 8,
    RegionRead = 9,
    RegionWrite = 10,
    DmaRead = 11,
    DmaWrite = 12,
    Reset = 13,
    RegionWriteMulti = 15,
};

struct Header {
    std::uint16_t id;
    std::uint16_t command;
    std::uint32_t size;  ///< of the message with this header
    std::uint32_t flags;
    std::uint32_t error;  ///< errno value of a reply with kError
};
static_assert(sizeof(Header) == 16);

inline constexpr std::uint32_t kTypeMask = 0xf;
inline constexpr std::uint32_t kReply = 1;
inline constexpr std::uint32_t kNoReply = 1u << 4;
inline constexpr std::uint32_t kError = 1u << 5;

struct Version {
    std::uint16_t major, minor;  ///< JSON text follows, NUL-terminated
};

struct DmaMap {
    std::uint32_t argsz, flags;  ///< 1 readable, 2 writeable
    std::uint64_t fd_offset, address, size;
};
static_assert(sizeof(DmaMap) == 32);

struct DmaUnmap {
    std::uint32_t argsz, flags;
    std::uint64_t address, size;
};
static_assert(sizeof(DmaUnmap) == 24);

struct DeviceInfo {
    std::uint32_t argsz, flags, regions, irqs;
};

struct RegionInfo {
    std::uint32_t argsz, flags, index, cap_offset;
    std::uint64_t size, fd_offset;
};
static_assert(sizeof(RegionInfo) == 32);
inline constexpr std::uint32_t kRegionMmap = 1u << 2;
inline constexpr std::uint32_t kRegionHasCaps = 1u << 3;

struct CapHeader {
    std::uint16_t id, version;
    std::uint32_t next;  ///< from the start of the RegionInfo; 0: last
};
inline constexpr std::uint16_t kCapSparseMmap = 1;
struct SparseMmap {
    CapHeader header;
    std::uint32_t areas, reserved;  ///< MmapArea follow
};
struct MmapArea {
    std::uint64_t offset, size;
};

struct IrqInfo {
    std::uint32_t argsz, flags, index, count;
};

struct SetIrqs {
    std::uint32_t argsz, flags, index, start, count;
};
static_assert(sizeof(SetIrqs) == 20);
inline constexpr std::uint32_t kIrqDataNone = 1u << 0;
inline constexpr std::uint32_t kIrqDataEventfd = 1u << 2;
inline constexpr std::uint32_t kIrqActionTrigger = 1u << 5;

struct RegionAccess {
    std::uint64_t offset;
    std::uint32_t region, count;
};
static_assert(sizeof(RegionAccess) == 16);

struct DmaAccess {
    std::uint64_t address, count;
};

inline constexpr unsigned kRegionConfig = 7;
inline constexpr unsigned kIrqMsi = 1;

}  // namespace vgpu::test::wire
