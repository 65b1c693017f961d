// SPDX-License-Identifier: MIT
//
// Server: one io thread that serves many vfio-user sockets. listen() makes a socket (mode 0600; a
// stale socket is replaced) for a Device. The first client that agrees on a version is attached,
// unless the device refuses. While a client is attached, other clients of that socket get EBUSY and
// are disconnected. A client that does not read its replies delays no other client: sockets are
// non-blocking, and the server reads no more requests of that client. A client that sends much is
// served in slices of the io thread's time (session.h), between which the server serves other
// clients and runs posted work.
//
// If a socket's file is removed (not moved), the server makes a new socket with the same path,
// because no client could connect to the old one.
//
// The thread that calls run() is the io thread until run() returns. Any thread may call hang_up(),
// stop(), post() and counters(). All other functions may be called before run() or on the io
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "pf-driver/softgpu/base/busy_since.h"
#include "pf-driver/softgpu/base/result.h"
#include "pf-driver/softgpu/vfio_user/counters.h"
#include "pf-driver/softgpu/vfio_user/device.h"
#include "pf-driver/softgpu/vfio_user/reset_rate_limiter.h"

namespace vgpu::softgpu::vfio_user {

struct ServerOptions {
    DmaLimits dma_limits;
    ResetRateLimiter::Spec resets{};  ///< limit for each device
};

/// An abstract class, so that this header does not depend on epoll. create() makes the only
/// implementation.
class Server {
public:
    /// `park` tells since when the engine waits until a VF has left it, because waits for a
    /// client's reply delay the other clients meanwhile (DmaLimits::blocking).
    [[nodiscard]] static Result<std::unique_ptr<Server>> create(
        ServerOptions options = {},
        std::shared_ptr<const BusySince> park = std::make_shared<BusySince>());
    virtual ~Server() = default;

    /// Serves `device` at the socket `path`. The device must outlive the server. EADDRINUSE:
    /// another server answers at `path`. EEXIST: the file at `path` is not a socket. Or another
    /// errno.
    [[nodiscard]] virtual Result<> listen(const std::string& path, Device& device) = 0;

    /// Makes the io thread disconnect every client of `device`, including clients that do not read
    /// their replies and clients that are not accepted yet. Returns at once. Clients that connect
    /// later are served.
    virtual void hang_up(const Device& device) = 0;

    /// Calls `readable` on the io thread whenever `fd` (borrowed) has data to read or has hung up.
    /// Fails with the errno of epoll_ctl().
    [[nodiscard]] virtual Result<> watch(int fd, std::function<void()> readable) = 0;
    /// Ends watch(). Call it before `fd` is closed. The callback of `fd` may call it.
    virtual void unwatch(int fd) = 0;

    /// Serves all sockets until stop().
    virtual void run() = 0;
    /// Makes run() return soon. Clients stay connected until the server is destroyed.
    virtual void stop() = 0;
    /// Makes the io thread run `work`, after all work that was posted earlier.
    virtual void post(std::function<void()> work) = 0;

    [[nodiscard]] virtual const Counters& counters() const = 0;
};

}  // namespace vgpu::softgpu::vfio_user
