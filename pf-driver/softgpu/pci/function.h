// SPDX-License-Identifier: MIT
//
// Function: one PCI function as a vfio-user device, with configuration space, BARs, interrupts,
// resets and attachment. It contains nothing that is specific to GPUs: BarHandler implements the
// BARs, FunctionOwner the resets and attachments, DmaSink takes client memory, and handlers set
// with config().claim() serve the GPU-IOV bytes.
//
// As on a bus, BARs answer only while the command register's memory bit is set; otherwise reads
// give all ones and writes are dropped. Interrupts need the command register's bus master bit, too.
// A client writes the command register before anything else, as every driver does; a reset clears
// the register.
//
// A function has one attachment at a time: a vfio-user client, or the bus behind the host view
// (host_view/), whose ECAM and windows reach config() and bar_read()/bar_write(). DMA and
// interrupts go to the side that is attached; the other side is refused with EBUSY.
//
// Everything is called on the io thread, except raise() and is_bus_master().
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pf-driver/softgpu/pci/config_space.h"
#include "pf-driver/softgpu/pci/function_spec.h"
#include "pf-driver/softgpu/pci/interrupts.h"
#include "pf-driver/softgpu/vfio_user/device.h"

namespace vgpu::softgpu::pci {

/// The memory of a BAR that a client may map; the offset in the file is the offset in the BAR.
struct MappableMemory {
    OwnedFd fd;  ///< a duplicate, handed on to the client
    std::vector<vfio_user::MmapArea> areas;
};

/// The bytes behind one BAR. Called on the io thread; offset + size is inside the BAR. A bus
/// reports no errors: a read that cannot be answered gives all ones, and a write that cannot be
/// done is dropped.
struct BarHandler {
    /// Fills all of `out`.
    std::function<void(std::uint64_t offset, std::span<std::byte> out)> read;
    std::function<void(std::uint64_t offset, std::span<const std::byte> data)> write;
    /// Called whenever the client asks about the region. Every access is trapped if `memory` is
    /// null or returns nullopt.
    std::function<std::optional<MappableMemory>()> memory = nullptr;
};

/// Receives the function's DMA maps: memory that its client offers. Called on the io thread.
class DmaSink {
public:
    virtual ~DmaSink() = default;
    [[nodiscard]] virtual Result<> map(const vfio_user::DmaRange& range, int fd) = 0;
    /// When unmap() returns, no engine reaches the range.
    virtual void unmap(const vfio_user::DmaRange& range) = 0;
    virtual void unmap_all() = 0;
};

/// How an attached function is reached, which decides where its interrupts are delivered.
enum class Reach : std::uint8_t {
    Socket,  ///< by its own vfio-user client; interrupts are eventfds
    Bus,     ///< behind a bridge of the host view; interrupts are messages
};

enum class ResetKind : std::uint8_t { FunctionLevel, DeviceReset };

/// The present values of the SR-IOV capability (PCIe 6.0, 9.3.3.3): NumVFs, VF Enable, VF MSE.
struct SriovState {
    std::uint16_t num_vfs = 0;
    bool is_enabled = false;
    bool is_memory_enabled = false;

    bool operator==(const SriovState&) const = default;
};

/// Called on the io thread without any lock.
class FunctionOwner {
public:
    virtual ~FunctionOwner() = default;
    /// An error refuses the client.
    [[nodiscard]] virtual Result<> attached(std::shared_ptr<Peer> peer) = 0;
    /// The peer's calls fail from now on; its DMA maps have already been removed.
    virtual void detached() = 0;
    /// The configuration space has been reset; the owner resets the rest of the function.
    virtual void reset(ResetKind kind) = 0;
    /// Called after a write to the capability, or after a reset that took the VFs away.
    virtual void sriov_changed(const SriovState&) {}
    /// Called after a reset, or a write to BARs or the memory bit: BARs may have moved or gone.
    virtual void bars_moved() {}
};

/// `owner` and `dma` outlive the Function.
class Function final : public vfio_user::Device {
public:
    Function(FunctionSpec spec, FunctionOwner& owner, DmaSink& dma);

    /// Called while the function is built. The BAR must be one of the spec; a BAR of the spec
    /// without a handler reads all ones.
    void set_bar(std::uint32_t index, BarHandler handler);
    [[nodiscard]] ConfigSpace& config() { return config_; }
    [[nodiscard]] const FunctionSpec& spec() const { return spec_; }

    /// May be called from any thread. MSI has vector 0 only.
    void raise(std::uint32_t vector) { interrupts_.raise(vector); }
    [[nodiscard]] bool is_bus_master() const { return is_bus_master_; }

    [[nodiscard]] const Interrupts& interrupts() const { return interrupts_; }
    [[nodiscard]] const SriovState& sriov() const { return sriov_; }
    [[nodiscard]] std::optional<Reach> reach() const { return reach_; }
    /// Bus address of a BAR of the spec; nullopt while the memory bit is off, or if the spec has no
    /// such BAR. A VF on the PF's bus does not have its own BARs and memory bit.
    [[nodiscard]] std::optional<Iova> bar_address(std::uint32_t index) const;
    /// EBUSY if already attached. An attachment by the bus leaves the configuration as it is. A
    /// client gets a function whose configuration is reset, unless DetachPolicy is KeepConfig.
    [[nodiscard]] Result<> attach(std::shared_ptr<Peer> peer, Reach reach);
    /// Accesses that the caller has decoded; offset + size is inside the BAR.
    void bar_read(std::uint32_t bar, std::uint64_t offset, std::span<std::byte> out);
    void bar_write(std::uint32_t bar, std::uint64_t offset, std::span<const std::byte> data);

    std::string name() const override { return spec_.name; }
    Result<> attach(std::shared_ptr<Peer> peer) override;
    void detach() override;
    vfio_user::RegionDescription region(std::uint32_t index) override;
    std::uint64_t region_size(std::uint32_t index) const override;
    vfio_user::IrqDescription irq(vfio_user::Irq index) override;
    Result<> set_irqs(const vfio_user::IrqRequest& request) override;
    Result<> dma_map(const vfio_user::DmaRange& range, int fd) override;
    void dma_unmap(const vfio_user::DmaRange& range) override;
    void dma_unmap_all() override;
    std::errc read(std::uint32_t region, std::uint64_t offset, std::span<std::byte> out) override;
    std::errc write(std::uint32_t region, std::uint64_t offset,
                    std::span<const std::byte> data) override;
    void reset() override;
    std::uint64_t resets() const override { return resets_; }

private:
    struct Bar {
        Bytes size;
        BarHandler handler;
    };
    /// The areas of a BAR. Only the BAR with the MSI-X table has several areas; all other BARs
    /// belong to the handler.
    enum class Area : std::uint8_t { Handler, MsixTable, MsixPending };
    /// The first part of a BAR access that lies in one area. A part for the handler stays within
    /// one page, because a handler may hold a lock for all of an access.
    struct Piece {
        Area area = Area::Handler;
        std::uint64_t offset = 0;  ///< from the start of the area
        std::size_t size = 0;
    };
    static constexpr std::uint32_t kBars = 6;

    void watch_config();
    void command_changed();
    void device_control_changed();
    void interrupt_control_changed();
    void sriov_control_changed();
    void set_interrupt_enable(Delivery delivery);
    void msi_message_changed();
    [[nodiscard]] std::unique_ptr<InterruptSink> sink_for(Reach reach,
                                                          const std::shared_ptr<Peer>& peer) const;
    void reset_config();
    [[nodiscard]] Piece piece_at(std::uint32_t bar, std::uint64_t offset, std::size_t size) const;
    /// False while the memory bit is off. Logs only the first such access after a reset.
    [[nodiscard]] bool decodes(std::uint32_t region);
    void handler_read(std::uint32_t bar, std::uint64_t offset, std::span<std::byte> out);

    const FunctionSpec spec_;
    FunctionOwner& owner_;
    DmaSink& dma_;
    ConfigSpace config_;
    Interrupts interrupts_;
    std::array<Bar, kBars> bars_{};
    std::atomic<bool> is_bus_master_{false};
    bool is_decoding_ = false;
    bool has_warned_undecoded_ = false;
    std::uint64_t resets_ = 0;
    SriovState sriov_;
    std::optional<Reach> reach_;  // set while attached
};

}  // namespace vgpu::softgpu::pci
