// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/pci/interrupts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/pci_regs.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include <cassert>
#include <cstring>

#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::softgpu::pci {
namespace {

static_assert(Interrupts::kTableEntryBytes == PCI_MSIX_ENTRY_SIZE);

// Writing to anything else could block the device or reach a file of the client's choice; eventfds
// (and their harmless kin, which refuse writes) are files without a type.
bool is_eventfd_like(int fd) {
    struct stat status {};
    return ::fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == 0;
}

bool make_non_blocking(int fd) {
    const int flags = ::fcntl(fd, F_GETFL);
    return flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

}  // namespace

Interrupts::Interrupts(std::string name, vfio_user::Irq index, std::uint32_t vectors)
    : name_(std::move(name)),
      index_(index),
      vectors_(vectors),
      table_(std::size_t{vectors} * kTableEntryBytes) {
    reset();
}

void Interrupts::lose(const char* why) {
    lost_++;
    if (has_warned_) return;
    has_warned_ = true;
    spdlog::warn("{}: an interrupt is lost: {}", name_, why);
}

void Interrupts::raise(std::uint32_t vector) {
    const std::lock_guard lock(mutex_);
    if (vector >= vectors_.size()) return lose("no such vector");
    if (enabled_ == Delivery::Off) return lose("MSI or MSI-X is not enabled");
    if (is_masked(vector))
        vectors_[vector].is_pending = true;
    else
        signal(vectors_[vector]);
}

void Interrupts::signal(Vector& vector) {
    vector.is_pending = false;
    if (bus_master_ == Delivery::Off) return lose("bus mastering is off");
    if (!vector.eventfd) return lose("the client has assigned no eventfd");
    ::eventfd_write(vector.eventfd.get(), 1);  // full: it is signalled already
    delivered_++;
}

bool Interrupts::is_masked(std::size_t vector) const {
    const Vector& state = vectors_[vector];
    if (state.is_client_masked || function_ == Delivery::Off) return true;
    const std::size_t control = vector * kTableEntryBytes + PCI_MSIX_ENTRY_VECTOR_CTRL;
    return state.is_programmed &&
           (load<std::uint32_t>(table_, control) & PCI_MSIX_ENTRY_CTRL_MASKBIT) != 0;
}

void Interrupts::deliver_pending() {
    if (enabled_ == Delivery::Off) return;
    for (std::size_t i = 0; i < vectors_.size(); i++)
        if (vectors_[i].is_pending && !is_masked(i)) signal(vectors_[i]);
}

Result<> Interrupts::assign(const vfio_user::IrqRequest& request) {
    for (const OwnedFd& fd : request.fds) {
        if (!fd) continue;
        if (!is_eventfd_like(fd.get()) || !make_non_blocking(fd.get()))
            return fail(EINVAL, fmt::format("{}: an interrupt descriptor is no eventfd", name_));
    }
    for (std::uint32_t i = 0; i < request.count; i++)
        vectors_[request.start + i].eventfd = std::move(request.fds[i]);
    return {};
}

void Interrupts::act(Vector& vector, vfio_user::IrqAction action) {
    if (action != vfio_user::IrqAction::Trigger) {
        vector.is_client_masked = action == vfio_user::IrqAction::Mask;
    } else if (vector.eventfd) {
        ::eventfd_write(vector.eventfd.get(), 1);
    }
}

Result<> Interrupts::apply(const vfio_user::IrqRequest& request) {
    const std::lock_guard lock(mutex_);
    if (request.index != index_) return {};
    assert(request.start <= vectors_.size() && request.count <= vectors_.size() - request.start);
    if (request.is_assignment) return assign(request);
    if (request.count == 0) {
        for (Vector& vector : vectors_) vector = {};
        return {};
    }
    for (std::uint32_t i = 0; i < request.count; i++)
        if (request.is_selected.empty() || request.is_selected[i] != 0)
            act(vectors_[request.start + i], request.action);
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

void Interrupts::set_function_mask(Delivery delivery) {
    const std::lock_guard lock(mutex_);
    function_ = delivery;
    deliver_pending();
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

void Interrupts::drop_client() {
    const std::lock_guard lock(mutex_);
    reset_locked();
    for (Vector& vector : vectors_) vector.eventfd.reset();
}

}  // namespace vgpu::softgpu::pci
