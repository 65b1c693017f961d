// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/pci/interrupts.h"

#include <linux/pci_regs.h>

#include <cassert>
#include <cstring>

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/base/log.h"

namespace vgpu::softgpu::pci {

static_assert(Interrupts::kTableEntryBytes == PCI_MSIX_ENTRY_SIZE);

Interrupts::Interrupts(std::string name, vfio_user::Irq index, std::uint32_t vectors)
    : name_(std::move(name)),
      index_(index),
      sink_(std::make_unique<EventfdSink>(name_, vectors)),
      vectors_(vectors),
      table_(std::size_t{vectors} * kTableEntryBytes) {
    reset();
}

void Interrupts::connect(std::unique_ptr<InterruptSink> sink) {
    const std::lock_guard lock(mutex_);
    sink_ = std::move(sink);
}

void Interrupts::drop(const char* why) {
    lost_++;
    if (has_warned_) return;
    has_warned_ = true;
    log::warn("{}: an interrupt is lost: {}", name_, why);
}

/// Holds the lock during the delivery. So after set_*() or apply() has masked a vector and
/// returned, no thread delivers that vector.
void Interrupts::raise(std::uint32_t vector) {
    const std::lock_guard lock(mutex_);
    if (vector >= vectors_.size()) return drop("no such vector");
    if (enabled_ == Delivery::Off) return drop("MSI or MSI-X is not enabled");
    if (is_masked(vector))
        vectors_[vector].is_pending = true;
    else
        signal(vector);
}

void Interrupts::signal(std::uint32_t vector) {
    vectors_[vector].is_pending = false;
    if (bus_master_ == Delivery::Off) return drop("bus mastering is off");
    if (!sink_->deliver(vector, message_of(vector))) return drop("no one receives it");
    delivered_++;
}

InterruptMessage Interrupts::message_of(std::size_t vector) const {
    if (index_ == vfio_user::Irq::Msi) return message_;
    const std::size_t entry = vector * kTableEntryBytes;
    return {Iova{join(load<std::uint32_t>(table_, entry + PCI_MSIX_ENTRY_LOWER_ADDR),
                      load<std::uint32_t>(table_, entry + PCI_MSIX_ENTRY_UPPER_ADDR))},
            load<std::uint32_t>(table_, entry + PCI_MSIX_ENTRY_DATA)};
}

/// After a reset every table entry is masked (PCIe 6.0, 7.7.2). But if sees_table() is false, an
/// entry that was not written since the reset counts as unmasked.
bool Interrupts::is_masked(std::size_t vector) const {
    const Vector& state = vectors_[vector];
    if (state.is_client_masked || function_delivery_ == Delivery::Off) return true;
    if (index_ == vfio_user::Irq::Msi) return false;
    const std::size_t control = vector * kTableEntryBytes + PCI_MSIX_ENTRY_VECTOR_CTRL;
    return (state.is_programmed || sink_->sees_table()) &&
           (load<std::uint32_t>(table_, control) & PCI_MSIX_ENTRY_CTRL_MASKBIT) != 0;
}

/// Called after every change that can remove a mask.
void Interrupts::deliver_pending() {
    if (enabled_ == Delivery::Off) return;
    for (std::uint32_t i = 0; i < vectors_.size(); i++)
        if (vectors_[i].is_pending && !is_masked(i)) signal(i);
}

/// With Trigger, a client tests its own eventfd, so masks and bus mastering do not apply.
void Interrupts::apply(std::uint32_t vector, vfio_user::IrqAction action) {
    if (action == vfio_user::IrqAction::Trigger)
        (void)sink_->deliver(vector, message_of(vector));
    else
        vectors_[vector].is_client_masked = action == vfio_user::IrqAction::Mask;
}

/// A count of 0 disables the interrupt type: eventfds, pending vectors and SET_IRQS masks are
/// dropped. The MSI-X table stays, as on hardware.
Result<> Interrupts::apply(const vfio_user::IrqRequest& request) {
    const std::lock_guard lock(mutex_);
    if (request.index != index_) return {};
    assert(request.start <= vectors_.size() && request.count <= vectors_.size() - request.start);
    if (request.is_assignment) return sink_->assign(request);
    if (request.count == 0) {
        for (Vector& vector : vectors_) vector = {.is_programmed = vector.is_programmed};
        sink_->withdraw();
        return {};
    }
    for (std::uint32_t i = 0; i < request.count; i++)
        if (request.is_selected.empty() || request.is_selected[i] != 0)
            apply(request.start + i, request.action);
    deliver_pending();
    return {};
}

void Interrupts::set_enabled(Delivery delivery) {
    const std::lock_guard lock(mutex_);
    enabled_ = delivery;
    deliver_pending();
}

void Interrupts::set_bus_master(Delivery delivery) {
    const std::lock_guard lock(mutex_);
    bus_master_ = delivery;
}

void Interrupts::set_function_delivery(Delivery delivery) {
    const std::lock_guard lock(mutex_);
    function_delivery_ = delivery;
    deliver_pending();
}

void Interrupts::set_message(const InterruptMessage& message) {
    const std::lock_guard lock(mutex_);
    message_ = message;
}

void Interrupts::read_table(std::uint32_t offset, std::span<std::byte> out) const {
    const std::lock_guard lock(mutex_);
    assert(offset + out.size() <= table_.size());
    std::memcpy(out.data(), table_.data() + offset, out.size());
}

void Interrupts::write_table(std::uint32_t offset, std::span<const std::byte> data) {
    const std::lock_guard lock(mutex_);
    assert(offset + data.size() <= table_.size());
    std::memcpy(table_.data() + offset, data.data(), data.size());
    const std::size_t end = offset + data.size();
    for (std::size_t i = offset / kTableEntryBytes; i * kTableEntryBytes < end; i++) {
        const std::size_t control = i * kTableEntryBytes + PCI_MSIX_ENTRY_VECTOR_CTRL;
        const auto value = load<std::uint32_t>(table_, control);
        store(std::span(table_), control, value & PCI_MSIX_ENTRY_CTRL_MASKBIT);
        vectors_[i].is_programmed = true;
    }
    deliver_pending();
}

void Interrupts::read_pending(std::uint32_t offset, std::span<std::byte> out) const {
    const std::lock_guard lock(mutex_);
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < vectors_.size(); i++)
        bits |= std::uint64_t{vectors_[i].is_pending} << i;
    assert(offset + out.size() <= sizeof(bits));
    std::memcpy(out.data(), bytes_of(bits).data() + offset, out.size());
}

void Interrupts::reset_locked() {
    std::memset(table_.data(), 0, table_.size());
    for (std::size_t i = 0; i < vectors_.size(); i++) {
        store(std::span(table_), i * kTableEntryBytes + PCI_MSIX_ENTRY_VECTOR_CTRL,
              std::uint32_t{PCI_MSIX_ENTRY_CTRL_MASKBIT});
        vectors_[i].is_pending = false;
        vectors_[i].is_client_masked = false;
        vectors_[i].is_programmed = false;
    }
    has_warned_ = false;
}

void Interrupts::reset() {
    const std::lock_guard lock(mutex_);
    reset_locked();
}

/// Clears the table too, because the driver of the next client programs the table itself.
void Interrupts::drop_client() {
    const std::lock_guard lock(mutex_);
    reset_locked();
    sink_->withdraw();
}

}  // namespace vgpu::softgpu::pci
