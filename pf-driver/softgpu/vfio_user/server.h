// SPDX-License-Identifier: MIT
//
// Server: one io thread that serves many vfio-user sockets. listen() binds a socket (mode 0600; a
// stale socket is replaced) to a Device. The first client that agrees on a version is attached; a
// second client gets EBUSY and is closed. Sockets are non-blocking. While a client does not read
// its replies, the server does not read that client's requests, so no other client is delayed. A
// client that sends much is served in slices (Session); between them other clients are served and
// posted work runs.
//
// A socket whose file is removed is bound again, because no client could connect any more.
//
// run() turns the calling thread into the io thread until stop(). hang_up(), stop(), post() and
// counters() may be called from any thread, all other functions before run() or on the io thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "pf-driver/softgpu/base/result.h"
#include "pf-driver/softgpu/vfio_user/counters.h"
#include "pf-driver/softgpu/vfio_user/device.h"
#include "pf-driver/softgpu/vfio_user/reset_rate_limiter.h"

namespace vgpu::softgpu::vfio_user {

struct ServerOptions {
    DmaLimits dma_limits;
    ResetRateLimiter::Spec resets{};  ///< limit for each device
};

/// An interface, so that epoll stays out of the headers; create() makes its only implementation.
class Server {
public:
    [[nodiscard]] static Result<std::unique_ptr<Server>> create(ServerOptions options = {});
    virtual ~Server() = default;

    /// The device outlives the server. EADDRINUSE: another server answers at `path`. EEXIST: the
    /// file at `path` is not a socket.
    [[nodiscard]] virtual Result<> listen(const std::string& path, Device& device) = 0;

    /// Posts work and returns at once: the io thread then disconnects every client of `device`,
    /// including clients that do not read and clients that wait to be accepted. Clients that
    /// connect after that are served.
    virtual void hang_up(const Device& device) = 0;

    /// Calls `readable` on the io thread when `fd` (borrowed) has something to read or has hung up.
    [[nodiscard]] virtual Result<> watch(int fd, std::function<void()> readable) = 0;
    /// Ends watch(). Call it before `fd` is closed; the callback of `fd` may call it, too.
    virtual void unwatch(int fd) = 0;

    virtual void run() = 0;
    /// run() returns soon; clients stay connected until the server is destroyed.
    virtual void stop() = 0;
    /// Runs `work` on the io thread, after all work posted before.
    virtual void post(std::function<void()> work) = 0;

    [[nodiscard]] virtual const Counters& counters() const = 0;
};

}  // namespace vgpu::softgpu::vfio_user
