// SPDX-License-Identifier: MIT
//
// GpuControl: the control socket (--control), a test feature. Each input line is one JSON object.
// Each output line is the answer to one input line, in the same order.
//
//   {"inject":{"vf":3,"point":"idle|save|load|run|sdma|irq|flr|device","effect":"lost|late|wrong",
//              "count":1,"delay_ms":50}}                            -> {"ok":true}
//   {"clear":{}}    forgets planned faults                         -> {"ok":true}
//   {"stats":{}}                                                   -> {"device":{...},"vfs":[...]}
//   anything else                                                  -> {"error":"..."}
//
// The socket has mode 0600. The number of clients and the bytes of an unfinished line are bounded.
// A client that exceeds a bound, or whose socket has no room for an answer, is disconnected.
// Everything runs on the io thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "pf-driver/softgpu/base/owned_fd.h"
#include "pf-driver/softgpu/gpu.h"

namespace vgpu::softgpu {

/// Registers itself with the GPU's server, which calls it until the GpuControl is destroyed.
class GpuControl {
public:
    /// A client beyond this number is accepted and closed at once.
    static constexpr std::size_t kMaxClients = 8;
    /// A client is disconnected if it has sent more bytes than this without a newline.
    static constexpr std::size_t kMaxLineBytes = 4096;

    /// Listens at `path`. The control socket must not outlive the GPU.
    [[nodiscard]] static Result<std::unique_ptr<GpuControl>> create(Gpu& gpu,
                                                                    const std::string& path);
    ~GpuControl();
    GpuControl(const GpuControl&) = delete;
    GpuControl& operator=(const GpuControl&) = delete;

    /// Returns the answer to one line as one JSON object, {"error": ...} if the line is refused.
    /// Line and answer are without the newline.
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
    /// Answers all complete lines. False if the client must be disconnected: the rest of its input
    /// is too long, or the socket does not accept a whole answer. Test tools read their answers, so
    /// softgpu keeps no unsent answer.
    [[nodiscard]] bool serve_lines(Client& client);
    void drop_client(int fd);

    Gpu& gpu_;
    OwnedFd socket_;
    std::string path_;
    std::map<int, Client> clients_;
};

}  // namespace vgpu::softgpu
