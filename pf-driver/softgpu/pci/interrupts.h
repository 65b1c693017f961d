// SPDX-License-Identifier: MIT
//
// Interrupts: MSI or MSI-X of one function, from raise() to the sink (interrupt_sink.h). A vector
// is delivered if the capability is enabled, the vector is not masked, bus mastering is on, and the
// sink accepts the vector. A masked vector stays pending and is delivered when the mask is removed.
// If another condition fails, the vector is lost, as on the bus, and counted.
//
// Some vfio-user clients never write the MSI-X table (QEMU does not forward table writes). For them
// an unwritten entry counts as unmasked. As the kernel's vfio-pci does, Function enables the
// capability when a client assigns eventfds, and disables it when the client disables the interrupt
// type (SET_IRQS with a count of 0). So a user-space driver need not write the capability.
//
// raise() may be called from any thread; all else is called on the io thread (gpu.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "pf-driver/softgpu/base/pi_mutex.h"
#include "pf-driver/softgpu/base/result.h"
#include "pf-driver/softgpu/pci/interrupt_sink.h"
#include "pf-driver/softgpu/vfio_user/device.h"

namespace vgpu::softgpu::pci {

/// On: the register lets interrupts through. A bool would mean opposite things for an enable bit
/// and a mask bit.
enum class Delivery : std::uint8_t { Off, On };

/// MSI or MSI-X (PCIe 6.0, 6.1.4); a function has only one of the two.
class Interrupts {
public:
    static constexpr std::uint32_t kTableEntryBytes = 16;

    /// `index` is Msi or Msix: the interrupt type of the function.
    Interrupts(std::string name, vfio_user::Irq index, std::uint32_t vectors);

    /// Replaces the sink; called at each attachment. The first sink is an EventfdSink.
    void connect(std::unique_ptr<InterruptSink> sink);

    void raise(std::uint32_t vector);  ///< a vector out of range is lost

    [[nodiscard]] vfio_user::Irq index() const { return index_; }
    [[nodiscard]] std::uint32_t vectors() const {
        return static_cast<std::uint32_t>(vectors_.size());
    }

    /// Handles a SET_IRQS request. A request for an index other than index() changes nothing and
    /// succeeds. Returns the errors of InterruptSink::assign().
    [[nodiscard]] Result<> apply(const vfio_user::IrqRequest& request);

    // Called when registers in configuration space change. Enabling the capability, or removing the
    // function mask, delivers pending vectors.
    void set_enabled(Delivery delivery);
    void set_bus_master(Delivery delivery);
    void set_function_delivery(Delivery delivery);      ///< Off: all vectors are masked
    void set_message(const InterruptMessage& message);  ///< MSI only

    // MSI-X table and pending bits as the BAR shows them; offset + size is inside the area.
    void read_table(std::uint32_t offset, std::span<std::byte> out) const;
    void write_table(std::uint32_t offset, std::span<const std::byte> data);
    void read_pending(std::uint32_t offset, std::span<std::byte> out) const;

    void reset();        ///< resets SET_IRQS masks, table and pending bits; the sink is unchanged
    void drop_client();  ///< does reset(), and calls InterruptSink::withdraw()

    /// Numbers of interrupts since the device started; both exclude those that a client triggers.
    [[nodiscard]] std::uint64_t delivered() const { return delivered_; }
    [[nodiscard]] std::uint64_t lost() const { return lost_; }

private:
    struct Vector {
        bool is_pending = false;
        bool is_client_masked = false;  // masked by SET_IRQS
        bool is_programmed = false;     // the table entry was written
    };

    void apply(std::uint32_t vector, vfio_user::IrqAction action);
    void reset_locked();
    [[nodiscard]] bool is_masked(std::size_t vector) const;
    [[nodiscard]] InterruptMessage message_of(std::size_t vector) const;
    void deliver_pending();
    void signal(std::uint32_t vector);
    void drop(const char* why);

    const std::string name_;
    const vfio_user::Irq index_;
    mutable PiMutex mutex_;  // guards the members below, except the counters
    std::unique_ptr<InterruptSink> sink_;
    std::vector<Vector> vectors_;
    std::vector<std::byte> table_;
    InterruptMessage message_;  // MSI
    Delivery enabled_ = Delivery::Off;
    Delivery bus_master_ = Delivery::Off;
    Delivery function_delivery_ = Delivery::On;  // Off: the function mask is set
    bool has_warned_ = false;
    std::atomic<std::uint64_t> delivered_{0};
    std::atomic<std::uint64_t> lost_{0};
};

}  // namespace vgpu::softgpu::pci
