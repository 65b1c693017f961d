// SPDX-License-Identifier: MIT
//
// Device: the interface between the Server and a PCI function that it serves. The Server calls
// Device methods only on its io thread. Before a client is attached, it calls only attach(), name()
// and resets(). The Server has already checked requests against the protocol: indices are in range,
// counts fit, ranges do not wrap or overlap. If a method returns an error, the client gets an error
// reply, unless its request has kNoReply. No request of a client may end the process.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/base/owned_fd.h"
#include "pf-driver/softgpu/base/peer.h"
#include "pf-driver/softgpu/base/result.h"
#include "pf-driver/softgpu/vfio_user/protocol.h"
#include "pf-driver/softgpu/vfio_user/stall_budget.h"

namespace vgpu::softgpu::vfio_user {

/// Time limits for DMA by messages (Peer). Each wait for a reply is charged to `stalls`, except for
/// the first `stalls.grace` of the wait.
struct DmaLimits {
    std::chrono::milliseconds answer{1000};  ///< maximum wait for the reply to one message
    StallBudget::Spec stalls{};              ///< budget for all waits for one client
    /// A second budget, for waits that delay other clients. A wait is charged to it in full if the
    /// io thread has already spent `blocking.grace` on its present piece of work when the wait
    /// begins, or if a park of the engine has lasted as long (BusySince).
    StallBudget::Spec blocking{.capacity = std::chrono::milliseconds(100), .refill_percent = 20};
};

/// Answer to DEVICE_GET_REGION_INFO.
struct RegionDescription {
    std::uint64_t size = 0;   ///< bytes; 0: the function has no such region
    std::uint32_t flags = 0;  ///< kRegionRead | kRegionWrite; Session adds other flags
    /// If valid, the client may map `areas` of this file; offsets in the file equal offsets in the
    /// region.
    OwnedFd fd;
    std::vector<MmapArea> areas;
};

/// Answer to DEVICE_GET_IRQ_INFO.
struct IrqDescription {
    std::uint32_t flags = 0;  ///< kIrqEventfd, kIrqNoResize
    std::uint32_t count = 0;  ///< number of vectors; 0: no interrupts of this type
};

enum class IrqAction : std::uint8_t { Mask, Unmask, Trigger };

/// One SET_IRQS request for the vectors [start, start + count). If is_assignment, the request
/// assigns `fds` as the vectors' eventfds; an invalid OwnedFd removes the vector's eventfd.
/// Otherwise, the request performs `action` on the selected vectors. A device moves the fds that it
/// keeps from `fds`.
struct IrqRequest {
    Irq index{};  ///< type of interrupt
    IrqAction action{};
    std::uint32_t start = 0;
    std::uint32_t count = 0;  ///< 0 with Trigger: disable all vectors of this type
    bool is_assignment = false;
    std::span<OwnedFd> fds;  ///< `count` fds if is_assignment, else none
    /// `count` flags, 0: not selected. Empty: all vectors are selected.
    std::span<const std::uint8_t> is_selected;
};

/// A range of client memory for DMA. The function accesses the range at bus address `address`.
struct DmaRange {
    Iova address{};
    std::uint64_t size = 0;       ///< bytes
    std::uint64_t fd_offset = 0;  ///< offset in bytes of the range in the file of the client's fd
    bool is_readable = false;     ///< true if the device may read the range
    bool is_writeable = false;    ///< true if the device may write the range
};

/// pci::Function and host_view::HostView implement this interface. A Device outlives the Server.
class Device {
public:
    virtual ~Device() = default;

    /// For log lines: "VF3".
    [[nodiscard]] virtual std::string name() const = 0;

    /// Attaches a client that has agreed on a version. An error refuses the client (EBUSY: the
    /// function has another attachment).
    [[nodiscard]] virtual Result<> attach(std::shared_ptr<Peer> peer) = 0;
    /// The client is gone. The Server has called dma_unmap_all() before.
    virtual void detach() = 0;

    /// Called at every DEVICE_GET_REGION_INFO with a valid index, because the mappable memory may
    /// differ from client to client.
    [[nodiscard]] virtual RegionDescription region(std::uint32_t index) = 0;
    /// The same size as from region(), but cheap; called for every access.
    [[nodiscard]] virtual std::uint64_t region_size(std::uint32_t index) const = 0;
    [[nodiscard]] virtual IrqDescription irq(Irq index) = 0;
    /// If the device keeps an fd, it moves that fd from the request; the caller closes the others.
    [[nodiscard]] virtual Result<> set_irqs(const IrqRequest& request) = 0;

    /// `fd` is borrowed; -1: the range is accessed by messages. The range is aligned to 4 KiB, is
    /// not empty, and overlaps no mapped range.
    [[nodiscard]] virtual Result<> dma_map(const DmaRange& range, int fd) = 0;
    /// Removes every mapped range inside `range`, which does not cut a mapped range in two. Only
    /// `address` and `size` of `range` count. After the return, the device does not access this
    /// memory.
    virtual void dma_unmap(const DmaRange& range) = 0;
    /// Removes every mapped range. Called at the client's request, and before every detach().
    virtual void dma_unmap_all() = 0;

    /// Accesses to a region; offset + size <= region_size(). errc{} on success.
    [[nodiscard]] virtual std::errc read(std::uint32_t region, std::uint64_t offset,
                                         std::span<std::byte> out) = 0;
    [[nodiscard]] virtual std::errc write(std::uint32_t region, std::uint64_t offset,
                                          std::span<const std::byte> data) = 0;
    /// DEVICE_RESET. The reset is complete on return.
    virtual void reset() = 0;
    /// Number of resets that clients have caused so far, by reset() or by a register. For
    /// ResetRateLimiter.
    [[nodiscard]] virtual std::uint64_t resets() const { return 0; }
};

}  // namespace vgpu::softgpu::vfio_user
