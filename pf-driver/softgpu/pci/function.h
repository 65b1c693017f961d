// SPDX-License-Identifier: MIT
//
// Function: one PCI function as a vfio-user device, with configuration space, BARs, interrupts,
// resets and attachment. It contains nothing that is specific to GPUs: BarHandlers implement the
// BARs, FunctionOwner implements resets and attachments, DmaSink receives client memory, and
// handlers set with config().claim() serve the GPU-IOV registers.
//
// As on a bus, BARs answer only while the memory bit of the command register is set; otherwise
// reads give all ones and writes are dropped. Interrupts require the register's bus master bit,
// except those that a client triggers for a test. A reset clears the command register, so a client
// must set both bits again after a reset, as every driver does.
//
// A function has one attachment at a time: a vfio-user client, or the host view (host_view/), in
// which a VM sees PF and VFs on a PCI bus. The host view calls config(), bar_read() and bar_write()
// for the VM's accesses through ECAM and memory windows. DMA and interrupts go to the attached
// side; attach() by the other side fails with EBUSY.
//
// Everything is called on the io thread (gpu.h), except raise() and is_bus_master().
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
    OwnedFd fd;  ///< a duplicate, which is sent to the client
    std::vector<vfio_user::MmapArea> areas;
};

/// Serves the accesses to one BAR. Called on the io thread; offset + size is inside the BAR. There
/// is no error, as on a bus: a handler answers an invalid read with some value and drops an invalid
/// write.
struct BarHandler {
    /// Fills all of `out`.
    std::function<void(std::uint64_t offset, std::span<std::byte> out)> read;
    std::function<void(std::uint64_t offset, std::span<const std::byte> data)> write;
    /// Called for every DEVICE_GET_REGION_INFO of the BAR. If `memory` is null or returns nullopt,
    /// the client cannot map the BAR: all its accesses reach `read` and `write`.
    std::function<std::optional<MappableMemory>()> memory = nullptr;
};

/// Receives the function's DMA maps: memory that its client offers. Called on the io thread.
class DmaSink {
public:
    virtual ~DmaSink() = default;
    /// `fd` is borrowed; -1: the memory is reachable only by messages (Peer).
    [[nodiscard]] virtual Result<> map(const vfio_user::DmaRange& range, int fd) = 0;
    /// After the return, no part of the device accesses the range.
    virtual void unmap(const vfio_user::DmaRange& range) = 0;
    virtual void unmap_all() = 0;
};

/// How the attached side reaches the function; decides where interrupts are delivered.
enum class Reach : std::uint8_t {
    Socket,  ///< by its own vfio-user client; interrupts are eventfds
    Bus,     ///< behind a bridge of the host view; interrupts are messages
};

/// How the function was reset.
enum class ResetKind : std::uint8_t {
    FunctionLevel,  ///< by the FLR bit in configuration space
    Message,        ///< by the message DEVICE_RESET, a bus reset, or iov::FaultPoint::Device
};

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
    /// Called when a write to the SR-IOV capability, or a reset, has changed the state.
    virtual void sriov_changed(const SriovState&) {}
    /// Called after a reset, and after a write to BARs or the command register: addresses of BARs,
    /// the memory bit or bus mastering may have changed.
    virtual void bars_moved() {}
};

/// `owner` and `dma` must outlive the Function.
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
    /// such BAR. Do not use for a VF on the PF's bus: the PF's SR-IOV capability has its addresses.
    [[nodiscard]] std::optional<Iova> bar_address(std::uint32_t index) const;
    /// EBUSY if already attached; errors of FunctionOwner::attached(). Reach::Socket resets the
    /// configuration, unless DetachPolicy is KeepConfig; Reach::Bus leaves the configuration
    /// unchanged.
    [[nodiscard]] Result<> attach(std::shared_ptr<Peer> peer, Reach reach);
    /// Accesses to a BAR. The caller checks the memory bit; offset + size is inside the BAR.
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
    /// one page, because a handler may hold a lock during the whole part.
    struct Piece {
        Area area = Area::Handler;
        std::uint64_t offset = 0;  ///< from the start of the area; for Handler, of the BAR
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
    /// True if the memory bit is on. Otherwise logs the access, if it is the first since a reset.
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
