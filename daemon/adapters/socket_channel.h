// SPDX-License-Identifier: MIT
//
// SocketChannel: implements UapiChannel over vgpu-pf's unix socket (SOCK_SEQPACKET, one request at
// a time, descriptors by SCM_RIGHTS). If no answer comes in time, the request fails with PfLost.
// UapiClient then closes the channel, so that a late reply is never taken for the next reply.
#pragma once

#include "daemon/adapters/uapi_channel.h"

namespace vgpu::daemon::adapters {

class SocketChannel final : public UapiChannel {
public:
    /// Connects to the socket at `path`. PfLost if the connection fails, for example because no
    /// process listens. ConfigInvalid if the path is too long.
    static Result<std::unique_ptr<UapiChannel>> open(const std::string& path,
                                                     const Wakeup& interrupted);

    Result<UapiReply> exchange(const UapiRequest& request) override;
    Result<std::unique_ptr<EventPort>> open_events() override;
    [[nodiscard]] int fd() const override { return socket_.get(); }
    void interrupt() override {}  // wait_readable() polls interrupted_

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
    /// Number of the last request. The reply to this request must repeat the number.
    std::uint64_t cookie_ = 0;
};

}  // namespace vgpu::daemon::adapters
