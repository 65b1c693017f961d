// SPDX-License-Identifier: MIT
//
// UapiChannel: a connection that carries requests of the uapi (pf-driver/uapi/vgpu_pf.h) to the PF
// core, and the answers to vgpud. A channel uses the unix socket of vgpu-pf (SocketChannel) or the
// character device of the kernel module (DeviceChannel). One thread makes one request at a time;
// any thread may call interrupt(). A request fails with PfRefused (errno and text of the PF core),
// or with PfLost if no valid answer comes. Do not use a channel after PfLost.
#pragma once

#include "daemon/adapters/unique_fd.h"
#include "daemon/adapters/wakeup.h"
#include "daemon/ports/event_port.h"
#include "daemon/ports/result.h"
#include "pf-driver/uapi/vgpu_pf.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace vgpu::daemon::adapters {

/// `body` must live until exchange() returns. The caller still owns `fd` afterwards.
struct UapiRequest {
    vgpu_pf_op op;
    std::span<const std::byte> body;
    int fd = -1;  ///< sent over a socket; a device finds the fd in `body`; -1: none
    std::chrono::milliseconds limit{};  ///< time limit for the answer
};

/// `body` may be shorter or longer than this version's struct.
struct UapiReply {
    std::vector<std::byte> body;
    std::vector<UniqueFd> fds;  ///< fds that a socket has sent; a device sends none
};

class UapiChannel {
public:
    virtual ~UapiChannel() = default;
    /// Sends a request and returns the reply. Blocks up to request.limit.
    [[nodiscard]] virtual Result<UapiReply> exchange(const UapiRequest& request) = 0;
    /// Maps the event ring. The EventPort may outlive the channel.
    [[nodiscard]] virtual Result<std::unique_ptr<EventPort>> open_events() = 0;
    /// A descriptor that is readable or hung up when the PF core ends; -1 if only
    /// EventPort::wait_fd() reports the end.
    [[nodiscard]] virtual int fd() const = 0;
    /// Makes the running request fail, and also later requests, except open_events() of a
    /// DeviceChannel. Before this call, raise the `interrupted` of open_channel().
    virtual void interrupt() = 0;

protected:
    /// Time limit for the answer to GET_EVENT_RING.
    static constexpr std::chrono::milliseconds kRingLimit{2000};

    /// Makes PfRefused from an error answer: a negative errno, and a text that may be empty.
    [[nodiscard]] static tl::unexpected<Error> refused(int error, std::string_view message);
};

/// Opens a DeviceChannel if `path` is a character device, else a SocketChannel. If `interrupted` is
/// already raised, the channel is interrupted at once. `interrupted` must outlive the channel.
[[nodiscard]] Result<std::unique_ptr<UapiChannel>> open_channel(const std::string& path,
                                                                const Wakeup& interrupted);

}  // namespace vgpu::daemon::adapters
