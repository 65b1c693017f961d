// SPDX-License-Identifier: MIT
//
// SocketChannel implements UapiChannel over the unix socket of vgpu-pf (SOCK_SEQPACKET, one request
// and one reply at a time, fds by SCM_RIGHTS). A request without an answer in its time limit ends
// the channel, so a late reply can never be taken for the next one. Replies are checked before use:
// the PF core is trusted, but it may be gone or of another version.
#pragma once

#include "daemon/adapters/uapi_channel.h"

namespace vgpu::daemon::adapters {

class SocketChannel final : public UapiChannel {
public:
    /// PfLost if no process listens. ConfigInvalid if the path is too long for a socket.
    static Result<std::unique_ptr<UapiChannel>> open(const std::string& path,
                                                     const Wakeup& interrupted);

    Result<UapiReply> exchange(const UapiRequest& request) override;
    Result<std::unique_ptr<EventPort>> open_events() override;
    [[nodiscard]] int fd() const override { return socket_.get(); }
    void interrupt() override {}  // `interrupted_` suffices

private:
    SocketChannel(std::string path, UniqueFd socket, const Wakeup& interrupted)
        : path_(std::move(path)), socket_(std::move(socket)), interrupted_(interrupted) {}

    Result<> send(const UapiRequest& request);
    Result<UapiReply> receive(const UapiRequest& request);
    Result<> wait_readable(std::chrono::milliseconds limit);
    [[nodiscard]] tl::unexpected<Error> lost(std::string_view what, int code) const;

    const std::string path_;
    UniqueFd socket_;
    const Wakeup& interrupted_;
    /// Cookie of the last request; its reply must repeat it.
    std::uint64_t cookie_ = 0;
};

}  // namespace vgpu::daemon::adapters
