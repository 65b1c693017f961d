// SPDX-License-Identifier: MIT
//
// The vfio-user protocol: header, commands (protocol.def), payload layouts and limits, as QEMU 10.1
// to 11.1 use them. All numbers have the byte order of the host. A reply has the id and the command
// of its request. The structures with a field `argsz` correspond to those of the VFIO ioctls, which
// <linux/vfio.h> documents. Addresses are bus addresses; offsets and sizes are in bytes.
//
// The vfio-user server and test clients include this file.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vgpu::softgpu::vfio_user {

/// Commands of the vfio-user specification. The server refuses commands that it does not support
/// with ENOTSUP.
enum class Command : std::uint16_t {
#define COMMAND(name, number, handler, body_bytes, max_fds, doc) name = (number),
#include "pf-driver/softgpu/vfio_user/protocol.def"
#undef COMMAND
};

// Version of the protocol.
inline constexpr std::uint16_t kMajor = 0;
inline constexpr std::uint16_t kMinor = 0;

// Header::flags: a type in bits 3:0, and flag bits
inline constexpr std::uint32_t kTypeMask = 0xf;
inline constexpr std::uint32_t kTypeRequest = 0x0;
inline constexpr std::uint32_t kTypeReply = 0x1;
inline constexpr std::uint32_t kNoReply = 0x10;  ///< request: send no reply
inline constexpr std::uint32_t kError = 0x20;    ///< reply: the request failed

// Limits. A client may propose lower limits for transfers, descriptors and DMA maps. QEMU refuses
// more than kMaxDmaMaps maps, and sends no more than kMaxWrites writes.
inline constexpr std::uint32_t kMaxTransfer = 1u << 20;  ///< data bytes of one message
inline constexpr std::uint32_t kMinTransfer = 4096;      ///< the server refuses a lower limit
inline constexpr std::uint32_t kMaxFds = 16;             ///< descriptors of one message
inline constexpr std::uint32_t kMaxDmaMaps = 65535;      ///< DMA maps of one client
inline constexpr std::uint32_t kPageBytes = 4096;
inline constexpr std::uint32_t kMaxVersionData = 4096;  ///< bytes of VERSION's JSON with NUL
inline constexpr std::uint32_t kMaxWrites = 200;        ///< writes of one REGION_WRITE_MULTI

/// vfio-user specification, "Header"; 16 bytes on the wire.
struct Header {
    std::uint16_t id = 0;
    std::uint16_t command = 0;  ///< Command
    std::uint32_t size = 0;     ///< bytes of header and payload
    std::uint32_t flags = 0;
    std::uint32_t error = 0;  ///< errno value, valid in a reply with kError
};
static_assert(sizeof(Header) == 16);

/// The longest message: a Header, a RegionAccess or DmaAccess (16 bytes), and data.
inline constexpr std::size_t kMaxMessage = sizeof(Header) + 16 + kMaxTransfer;

struct Version {
    std::uint16_t major = 0;
    std::uint16_t minor = 0;
    // JSON with a terminating NUL follows
};
static_assert(sizeof(Version) == 4);

inline constexpr std::uint32_t kDmaMapRead = 1u << 0;
inline constexpr std::uint32_t kDmaMapWrite = 1u << 1;

struct DmaMap {
    std::uint32_t argsz = sizeof(DmaMap);
    std::uint32_t flags = 0;
    std::uint64_t offset = 0;  ///< of the range in the client's file
    std::uint64_t address = 0;
    std::uint64_t size = 0;
};
static_assert(sizeof(DmaMap) == 32);

inline constexpr std::uint32_t kDmaUnmapDirtyBitmap = 1u << 0;
inline constexpr std::uint32_t kDmaUnmapAll = 1u << 1;

struct DmaUnmap {
    std::uint32_t argsz = sizeof(DmaUnmap);
    std::uint32_t flags = 0;
    std::uint64_t address = 0;
    std::uint64_t size = 0;
};
static_assert(sizeof(DmaUnmap) == 24);

inline constexpr std::uint32_t kDeviceReset = 1u << 0;
inline constexpr std::uint32_t kDevicePci = 1u << 1;

struct DeviceInfo {
    std::uint32_t argsz = sizeof(DeviceInfo);
    std::uint32_t flags = 0;
    std::uint32_t num_regions = 0;
    std::uint32_t num_irqs = 0;
};
static_assert(sizeof(DeviceInfo) == 16);

inline constexpr std::uint32_t kRegionRead = 1u << 0;
inline constexpr std::uint32_t kRegionWrite = 1u << 1;
inline constexpr std::uint32_t kRegionMmap = 1u << 2;
inline constexpr std::uint32_t kRegionCaps = 1u << 3;

struct RegionInfo {
    std::uint32_t argsz = sizeof(RegionInfo);
    std::uint32_t flags = 0;
    std::uint32_t index = 0;
    std::uint32_t cap_offset = 0;
    std::uint64_t size = 0;
    std::uint64_t offset = 0;
};
static_assert(sizeof(RegionInfo) == 32);

inline constexpr std::uint16_t kCapSparseMmap = 1;

/// struct vfio_region_info_cap_sparse_mmap of <linux/vfio.h>: the mappable parts of a region.
struct SparseMmap {
    std::uint16_t id = kCapSparseMmap;
    std::uint16_t version = 1;
    std::uint32_t next = 0;
    std::uint32_t area_count = 0;
    std::uint32_t reserved = 0;
    // area_count MmapAreas follow
};
static_assert(sizeof(SparseMmap) == 16);

struct MmapArea {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
};
static_assert(sizeof(MmapArea) == 16);

inline constexpr std::uint32_t kIrqEventfd = 1u << 0;
inline constexpr std::uint32_t kIrqNoResize = 1u << 3;

struct IrqInfo {
    std::uint32_t argsz = sizeof(IrqInfo);
    std::uint32_t flags = 0;
    std::uint32_t index = 0;
    std::uint32_t count = 0;
};
static_assert(sizeof(IrqInfo) == 16);

inline constexpr std::uint32_t kIrqDataNone = 1u << 0;
inline constexpr std::uint32_t kIrqDataBool = 1u << 1;
inline constexpr std::uint32_t kIrqDataEventfd = 1u << 2;
inline constexpr std::uint32_t kIrqActionMask = 1u << 3;
inline constexpr std::uint32_t kIrqActionUnmask = 1u << 4;
inline constexpr std::uint32_t kIrqActionTrigger = 1u << 5;
inline constexpr std::uint32_t kIrqDataTypes = kIrqDataNone | kIrqDataBool | kIrqDataEventfd;
inline constexpr std::uint32_t kIrqActions = kIrqActionMask | kIrqActionUnmask | kIrqActionTrigger;

struct IrqSet {
    std::uint32_t argsz = sizeof(IrqSet);
    std::uint32_t flags = 0;
    std::uint32_t index = 0;
    std::uint32_t start = 0;
    std::uint32_t count = 0;
    // with kIrqDataBool: count bytes follow
};
static_assert(sizeof(IrqSet) == 20);

/// Payload of REGION_READ and REGION_WRITE. Offset and count are in bytes.
struct RegionAccess {
    std::uint64_t offset = 0;
    std::uint32_t region = 0;
    std::uint32_t count = 0;
    // count bytes follow in a write and in the reply to a read
};
static_assert(sizeof(RegionAccess) == 16);

/// Payload of DMA_READ and DMA_WRITE, the server's requests to the client.
struct DmaAccess {
    std::uint64_t address = 0;
    std::uint64_t count = 0;
    // count bytes follow in a write and in the reply to a read
};
static_assert(sizeof(DmaAccess) == 16);

/// Payload of REGION_WRITE_MULTI: several writes in one message, if both sides have the capability
/// write_multiple.
struct WriteMulti {
    std::uint64_t count = 0;
    // count SingleWrites follow
};
static_assert(sizeof(WriteMulti) == 8);

struct SingleWrite {
    std::uint64_t offset = 0;
    std::uint32_t region = 0;
    std::uint32_t count = 0;  ///< bytes to write, 1..8: the first bytes of `data`
    std::uint64_t data = 0;
};
static_assert(sizeof(SingleWrite) == 24);

// VFIO's numbering of a PCI function's regions and interrupt types
enum class Region : std::uint32_t { Bar0 = 0, Rom = 6, Config = 7, Vga = 8 };
inline constexpr std::uint32_t kRegionCount = 9;
enum class Irq : std::uint32_t { Intx = 0, Msi = 1, Msix = 2, Error = 3, Request = 4 };
inline constexpr std::uint32_t kIrqCount = 5;

}  // namespace vgpu::softgpu::vfio_user
