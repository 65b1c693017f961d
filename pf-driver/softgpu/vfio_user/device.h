// SPDX-License-Identifier: MIT
//
// Device: the interface of a PCI function that the Server serves. The Server calls every Device
// method on its io thread, one at a time. It calls all methods except attach(), name() and resets()
// only while a client is attached. Requests have already been checked against the protocol: indices
// are in range, counts fit, ranges do not wrap or overlap. An error that a method returns becomes
// the client's error reply; nothing that a client sends is ever fatal.
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

/// Time limits of message DMA (Peer).
struct DmaLimits {
    std::chrono::milliseconds answer{1000};  ///< limit of the wait for one message
    StallBudget::Spec stalls{};              ///< budget of all messages of a client together
    /// A second budget, for waits that delay other clients: the io thread has already spent more
    /// than `blocking.grace` on one piece of work. No part of such a wait is free.
    StallBudget::Spec blocking{.capacity = std::chrono::milliseconds(100), .refill_percent = 20};
};

/// Answer to DEVICE_GET_REGION_INFO.
struct RegionDescription {
    std::uint64_t size = 0;   ///< 0: the function has no such region
    std::uint32_t flags = 0;  ///< kRegionRead | kRegionWrite
    /// If set, the client may map the areas from this file; file offset = area offset.
    OwnedFd fd;
    std::vector<MmapArea> areas;
};

/// Answer to DEVICE_GET_IRQ_INFO; a count of 0 means "no such interrupts".
struct IrqDescription {
    std::uint32_t flags = 0;  ///< kIrqEventfd ...
    std::uint32_t count = 0;
};

enum class IrqAction : std::uint8_t { Mask, Unmask, Trigger };

/// One SET_IRQS request. If is_assignment, the request assigns eventfds to the vectors [start,
/// start + count); an fd that is not set removes the vector's eventfd. Else the request performs
/// `action` on the selected vectors of that range. A device that keeps fds moves them out.
struct IrqRequest {
    Irq index{};
    IrqAction action{};
    std::uint32_t start = 0;
    std::uint32_t count = 0;  ///< 0 with Trigger: disable the whole index
    bool is_assignment = false;
    std::span<OwnedFd> fds;                     ///< `count` fds if is_assignment, else none
    std::span<const std::uint8_t> is_selected;  ///< `count` flags; empty: all vectors are selected
};

/// A range that the client has mapped for DMA. `address` is where the function sees the range.
struct DmaRange {
    Iova address{};
    std::uint64_t size = 0;
    std::uint64_t fd_offset = 0;  ///< offset of the range in the file of the client's fd
    bool is_readable = false;     ///< true if the device may read the range
    bool is_writeable = false;    ///< true if the device may write the range
};

/// Implemented by pci::Function and host_view::HostView; outlives the server.
class Device {
public:
    virtual ~Device() = default;

    /// For log lines: "VF3".
    [[nodiscard]] virtual std::string name() const = 0;

    /// A client has agreed on a version. An error refuses the client (EBUSY: attached elsewhere).
    [[nodiscard]] virtual Result<> attach(std::shared_ptr<Peer> peer) = 0;
    /// The client is gone. dma_unmap_all() has withdrawn its DMA maps before.
    virtual void detach() = 0;

    /// Called for every DEVICE_GET_REGION_INFO, because the memory may differ from client to
    /// client.
    [[nodiscard]] virtual RegionDescription region(std::uint32_t index) = 0;
    /// The size that region() gives; called for every access.
    [[nodiscard]] virtual std::uint64_t region_size(std::uint32_t index) const = 0;
    [[nodiscard]] virtual IrqDescription irq(Irq index) = 0;
    /// The device moves the fds that it keeps out of the request; all other fds are closed.
    [[nodiscard]] virtual Result<> set_irqs(const IrqRequest& request) = 0;

    /// `fd` is borrowed; -1: the memory is reachable only by messages. The range is 4 KiB aligned,
    /// not empty, and overlaps no mapped range.
    [[nodiscard]] virtual Result<> dma_map(const DmaRange& range, int fd) = 0;
    /// Unmaps every map inside the range; the range cuts no map. The device does not access these
    /// maps after the return.
    virtual void dma_unmap(const DmaRange& range) = 0;
    /// Called if the client asks, and before every detach().
    virtual void dma_unmap_all() = 0;

    /// Accesses to a region that region() describes; offset + size <= the region's size.
    [[nodiscard]] virtual std::errc read(std::uint32_t region, std::uint64_t offset,
                                         std::span<std::byte> out) = 0;
    [[nodiscard]] virtual std::errc write(std::uint32_t region, std::uint64_t offset,
                                          std::span<const std::byte> data) = 0;
    /// DEVICE_RESET: complete when it returns.
    virtual void reset() = 0;
    /// Number of resets by clients so far, by reset() or a register (ResetRateLimiter).
    [[nodiscard]] virtual std::uint64_t resets() const { return 0; }
};

}  // namespace vgpu::softgpu::vfio_user
