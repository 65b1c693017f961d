// SPDX-License-Identifier: MIT
//
// UapiChannel: carries requests of the uapi (pf-driver/uapi/vgpu_pf.h) to the PF core and answers
// back, over the unix socket of vgpu-pf or the character device of the kernel module. One request
// at a time, from one thread; only interrupt() may be called from others. Errors: PfLost (no
// answer: do not use the channel again), PfRefused (errno and the core's text).
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

/// `body` must live until exchange() returns; the caller keeps `fd`.
struct UapiRequest {
    vgpu_pf_op op;
    std::span<const std::byte> body;
    int fd = -1;  ///< sent with the request; -1: none
    std::chrono::milliseconds limit{};
};

/// `body` may be shorter or longer than this version's struct.
struct UapiReply {
    std::vector<std::byte> body;
    std::vector<UniqueFd> fds;
};

class UapiChannel {
public:
    virtual ~UapiChannel() = default;
    /// Blocks up to request.limit.
    [[nodiscard]] virtual Result<UapiReply> exchange(const UapiRequest& request) = 0;
    /// Maps the event ring. The EventPort may outlive the channel.
    [[nodiscard]] virtual Result<std::unique_ptr<EventPort>> open_events() = 0;
    /// Readable or hung up when the PF core ends; -1 if the events' descriptor reports that.
    [[nodiscard]] virtual int fd() const = 0;
    /// Fails the running request. From any thread.
    virtual void interrupt() = 0;

protected:
    /// Time limit for the answer to GET_EVENT_RING.
    static constexpr std::chrono::milliseconds kRingLimit{2000};

    /// PfRefused from an error answer.
    [[nodiscard]] static tl::unexpected<Error> refused(int error, std::string_view message);
};

/// Opens a channel to a character device, or else to a socket. Requests fail once `interrupted` is
/// raised; it must outlive the channel.
[[nodiscard]] Result<std::unique_ptr<UapiChannel>> open_channel(const std::string& path,
                                                                const Wakeup& interrupted);

}  // namespace vgpu::daemon::adapters
