// SPDX-License-Identifier: MIT
//
// UapiChannel carries a request of the uapi (pf-driver/uapi/vgpu_pf.h) to a home of the PF core,
// and its answer back. Each of the two homes has a channel: a unix socket of the process vgpu-pf,
// or a character device of the kernel module. Used by UapiClient, one request at a time, from one
// thread; only interrupt() may be called from others.
//
// Errors: PfLost (no answer: do not use the channel again), PfRefused (errno and the core's text).
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

/// `body` must live until exchange() has returned; the caller keeps `fd`.
struct UapiRequest {
    vgpu_pf_op op;
    std::span<const std::byte> body;  ///< the operation's struct
    int fd = -1;                      ///< sent with the request; -1: none
    std::chrono::milliseconds limit{};
};

/// `body` may be shorter or longer than the struct of this version.
struct UapiReply {
    std::vector<std::byte> body;
    std::vector<UniqueFd> fds;
};

/// One request at a time: the next one begins after the answer to the last.
class UapiChannel {
public:
    virtual ~UapiChannel() = default;
    /// Blocks up to request.limit.
    [[nodiscard]] virtual Result<UapiReply> exchange(const UapiRequest& request) = 0;
    /// Maps the home's ring; the EventPort may outlive the channel.
    [[nodiscard]] virtual Result<std::unique_ptr<EventPort>> open_events() = 0;
    /// Readable or hung up when the home goes away; -1 if the events' descriptor reports that.
    [[nodiscard]] virtual int fd() const = 0;
    /// Makes the running request fail; from any thread.
    virtual void interrupt() = 0;

protected:
    /// For the answer to GET_EVENT_RING.
    static constexpr std::chrono::milliseconds kRingLimit{2000};

    /// PfRefused for an error answer of a home.
    [[nodiscard]] static tl::unexpected<Error> refused(int error, std::string_view message);
};

/// A channel to the home at `path`: a character device, or else a socket. `interrupted` must
/// outlive the channel: once it is raised, requests fail.
[[nodiscard]] Result<std::unique_ptr<UapiChannel>> open_channel(const std::string& path,
                                                                const Wakeup& interrupted);

}  // namespace vgpu::daemon::adapters
