// SPDX-License-Identifier: MIT
//
// InterruptSink: the destination of a function's interrupts. A vfio-user client gets eventfds
// (EventfdSink). The bus of the host view gets the messages that the driver programmed
// (MessageSink). Interrupts owns the sink and decides whether a vector may be delivered; it calls
// the sink on any thread, with the lock of Interrupts held.
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
    /// Takes over the eventfds of a SET_IRQS request. EINVAL if a descriptor is not an eventfd;
    /// ENOTSUP if the sink does not use eventfds.
    [[nodiscard]] virtual Result<> assign(const vfio_user::IrqRequest& request) = 0;
    /// Drops the destination: no client listens any more.
    virtual void withdraw() = 0;
    /// True if the device sees the driver's writes to the MSI-X table. Otherwise an entry that was
    /// never written counts as unmasked.
    [[nodiscard]] virtual bool sees_table() const = 0;
};

/// Signals eventfds of the client; never waits, whatever the client does (EventfdSignaller).
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

/// Sends the write that the driver programmed, as a posted write to the VM; never waits.
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
