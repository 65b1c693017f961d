// SPDX-License-Identifier: MIT
//
// GpuControl: the control socket (--control), a test feature: one JSON object a line in, one a line
// out, in order.
//
//   {"inject":{"vf":3,"point":"idle|save|load|run|sdma|irq","effect":"lost|late|wrong","count":1,
//              "delay_ms":50}}                                     -> {"ok":true}
//   {"clear":{}}    forgets planned faults                         -> {"ok":true}
//   {"stats":{}}                                                   -> {"device":{...},"vfs":[...]}
//   anything else                                                  -> {"error":"..."}
//
// The socket has mode 0600. Clients, line lengths and unsent bytes are bounded; who exceeds them is
// closed. Everything runs on the io thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "pf-driver/softgpu/base/owned_fd.h"
#include "pf-driver/softgpu/gpu.h"

namespace vgpu::softgpu {

/// Registers itself with the GPU's server; all of it runs between create() and destruction there.
class GpuControl {
public:
    /// One more is accepted and closed at once.
    static constexpr std::size_t kMaxClients = 8;
    /// Without the newline; a client that sends more without one is closed.
    static constexpr std::size_t kMaxLineBytes = 4096;

    /// Listens at `path`. The control socket must not outlive the GPU.
    [[nodiscard]] static Result<std::unique_ptr<GpuControl>> create(Gpu& gpu,
                                                                    const std::string& path);
    ~GpuControl();
    GpuControl(const GpuControl&) = delete;
    GpuControl& operator=(const GpuControl&) = delete;

    /// The answer to one line, without its newline.
    /// One JSON object, {"error": ...} for anything it does not understand; never fails otherwise.
    [[nodiscard]] std::string answer(std::string_view line);

private:
    struct Client {
        OwnedFd fd;
        /// Received, not answered yet: at most an unfinished line.
        std::string pending;
    };

    GpuControl(Gpu& gpu, OwnedFd socket, std::string path);
    void accept_client();
    void read_client(int fd);
    /// An answer that the socket does not take whole costs the client the connection: test tools
    /// read their answers, and unsent ones are not kept.
    [[nodiscard]] bool serve_lines(Client& client);
    void drop_client(int fd);

    Gpu& gpu_;
    OwnedFd socket_;
    std::string path_;
    std::map<int, Client> clients_;
};

}  // namespace vgpu::softgpu
