// SPDX-License-Identifier: MIT
//
// InterruptSink: the destination of a function's interrupts. An EventfdSink signals eventfds of the
// function's vfio-user client. A MessageSink is for a function that a VM uses through the host
// view: it sends the VM the MSI or MSI-X message that the driver programmed. Class Interrupts owns
// the sink and decides whether a vector may be delivered. Interrupts calls the sink on any thread,
// with the lock of Interrupts held.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pf-driver/softgpu/base/owned_fd.h"
#include "pf-driver/softgpu/base/result.h"
#include "pf-driver/softgpu/vfio_user/device.h"

namespace vgpu::softgpu::pci {

/// The message that a driver wrote into the MSI capability or an entry of the MSI-X table.
struct InterruptMessage {
    Iova address{};
    std::uint32_t data = 0;
};

class InterruptSink {
public:
    virtual ~InterruptSink() = default;
    /// False if there is no destination, or signalling it fails.
    [[nodiscard]] virtual bool deliver(std::uint32_t vector, const InterruptMessage& message) = 0;
    /// Takes over the eventfds of a SET_IRQS request. EINVAL if a descriptor is certainly not an
    /// eventfd; ENOTSUP if the sink does not use eventfds; errors of EventfdSignaller::start().
    [[nodiscard]] virtual Result<> assign(const vfio_user::IrqRequest& request) = 0;
    /// Drops the destination, because the client is gone or has disabled its interrupts.
    virtual void withdraw() = 0;
    /// True if the device sees the driver's writes to the MSI-X table. Otherwise an entry that was
    /// never written counts as unmasked.
    [[nodiscard]] virtual bool sees_table() const = 0;
};

/// Signals eventfds of the client. A client cannot make deliver() block (EventfdSignaller).
class EventfdSink final : public InterruptSink {
public:
    EventfdSink(std::string name, std::uint32_t vectors);

    bool deliver(std::uint32_t vector, const InterruptMessage& message) override;
    Result<> assign(const vfio_user::IrqRequest& request) override;
    void withdraw() override;
    bool sees_table() const override { return false; }

private:
    const std::string name_;
    std::vector<OwnedFd> eventfds_;
};

/// Sends the message that the driver programmed, as a posted write to the VM (Peer::dma_post()).
/// deliver() does not wait for the VM.
class MessageSink final : public InterruptSink {
public:
    explicit MessageSink(std::shared_ptr<Peer> peer) : peer_(std::move(peer)) {}

    bool deliver(std::uint32_t vector, const InterruptMessage& message) override;
    Result<> assign(const vfio_user::IrqRequest& request) override;
    void withdraw() override { peer_.reset(); }
    bool sees_table() const override { return true; }

private:
    std::shared_ptr<Peer> peer_;
};

}  // namespace vgpu::softgpu::pci
