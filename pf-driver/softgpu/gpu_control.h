// SPDX-License-Identifier: MIT
//
// GpuControl: the control socket (--control), for tests. Each input line is one JSON object, the
// request. Each output line is one JSON object, the answer; answers have the order of the requests.
//
//   {"inject":{"vf":3,"point":"idle|save|load|run|sdma|irq|flr|device","effect":"lost|late|wrong",
//              "count":1,"delay_ms":50}}                            -> {"ok":true}
//   {"clear":{}}    removes all planned faults                     -> {"ok":true}
//   {"stats":{}}                                                   -> {"device":{...},"vfs":[...]}
//   anything else, or a refused value                              -> {"error":"..."}
//
// "inject" plans a fault (iov/fault_plan.h). Defaults: vf 0 (the PF), count 1, delay_ms 0. Maxima:
// count 1000000, delay_ms 600000. The counters in the answer to "stats" count since the device
// started.
//
// The socket has mode 0600. The number of clients and the bytes of an unfinished line are bounded.
// GpuControl disconnects a client that exceeds a bound, or whose socket has no room for an answer.
// Everything runs on the io thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "pf-driver/softgpu/base/owned_fd.h"
#include "pf-driver/softgpu/gpu.h"

namespace vgpu::softgpu {

/// The GPU's server watches the socket and its clients (Server::watch()) until the GpuControl is
/// destroyed.
class GpuControl {
public:
    /// A client beyond this number is accepted and closed at once.
    static constexpr std::size_t kMaxClients = 8;
    /// A client is disconnected if it has sent more bytes than this without a newline.
    static constexpr std::size_t kMaxLineBytes = 4096;

    /// Listens at `path`, or fails with an errno. The GPU must outlive the GpuControl.
    [[nodiscard]] static Result<std::unique_ptr<GpuControl>> create(Gpu& gpu,
                                                                    const std::string& path);
    ~GpuControl();
    GpuControl(const GpuControl&) = delete;
    GpuControl& operator=(const GpuControl&) = delete;

    /// Executes the request in `line` and returns the answer, {"error": ...} if the request is
    /// refused. Neither `line` nor the answer contains the newline.
    [[nodiscard]] std::string answer(std::string_view line);

private:
    struct Client {
        OwnedFd fd;
        /// Bytes that were received but not answered: at most an unfinished line.
        std::string pending;
    };

    GpuControl(Gpu& gpu, OwnedFd socket, std::string path);
    void accept_client();
    void read_client(int fd);
    /// Answers all complete lines. False if the client must be disconnected: its unfinished line is
    /// too long, or the socket does not accept a whole answer. Test tools read their answers, so
    /// there is no queue for unsent answers.
    [[nodiscard]] bool serve_lines(Client& client);
    void drop_client(int fd);

    Gpu& gpu_;
    OwnedFd socket_;
    std::string path_;
    std::map<int, Client> clients_;
};

}  // namespace vgpu::softgpu
