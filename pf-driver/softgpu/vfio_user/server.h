// SPDX-License-Identifier: MIT
//
// Server: one io thread serving many vfio-user sockets. listen() binds a socket (mode 0600, a stale
// one is replaced) to a Device; the first client that agrees on a version is attached, a second one
// is answered EBUSY and closed. Sockets are non-blocking; a client that does not read its replies
// is not read from until it does, and stops nobody else; one that sends much is served in turns
// (Session), between which the others are and posted work runs.
//
// A socket whose file somebody removes is bound again, or nobody could connect any more.
//
// run() turns the calling thread into the io thread until stop(). stop() and post() may be called
// from any thread; everything else before run() or on the io thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "pf-driver/softgpu/base/result.h"
#include "pf-driver/softgpu/vfio_user/counters.h"
#include "pf-driver/softgpu/vfio_user/device.h"
#include "pf-driver/softgpu/vfio_user/reset_brake.h"

namespace vgpu::softgpu::vfio_user {

struct ServerOptions {
    DmaLimits dma_limits;
    ResetBrake::Spec resets{};  ///< of each device
};

/// An interface, so that epoll stays out of the headers; create() makes the only kind.
class Server {
public:
    [[nodiscard]] static Result<std::unique_ptr<Server>> create(ServerOptions options = {});
    virtual ~Server() = default;

    /// Serves `device` at `path`; the device must outlive the server. EADDRINUSE: another server
    /// answers there; EEXIST: the path is no socket.
    [[nodiscard]] virtual Result<> listen(const std::string& path, Device& device) = 0;

    /// Hangs up every client of `device`, also one that does not read, and those that wait to be
    /// accepted: posted. Who connects afterwards is served. Any thread.
    virtual void hang_up(const Device& device) = 0;

    /// Calls `readable` on the io thread whenever `fd` (borrowed) has something to read or hung up.
    [[nodiscard]] virtual Result<> watch(int fd, std::function<void()> readable) = 0;
    /// Before the fd is closed; allowed inside its own callback.
    virtual void unwatch(int fd) = 0;

    virtual void run() = 0;
    /// run() returns soon; clients stay connected until the server goes.
    virtual void stop() = 0;
    /// Runs `work` on the io thread, after what was posted before.
    virtual void post(std::function<void()> work) = 0;

    [[nodiscard]] virtual const Counters& counters() const = 0;
};

}  // namespace vgpu::softgpu::vfio_user
