// SPDX-License-Identifier: MIT
//
// PfLink: GpuModel's connection to its PF core. Every operation goes through ask(), so that no
// caller can forget to check for a lost PF core. ask() reports the loss with the error of the
// operation that failed. Losses are reported only after attached(); before attached(), the
// attempt to attach fails. All calls are from one thread, except interrupt().
#pragma once

#include "daemon/backend/backend.h"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace vgpu::daemon {

class PfLink {
public:
    /// `on_loss` is called before ask() returns the error.
    PfLink(std::unique_ptr<Backend> port, std::function<void(const Error&)> on_loss)
        : port_(std::move(port)), on_loss_(std::move(on_loss)) {}

    Result<> connect() {
        is_attached_ = false;
        return port_->connect();
    }
    /// Call when the PF core's state was read completely.
    void attached() { is_attached_ = true; }
    void disconnect() {
        is_attached_ = false;
        port_->disconnect();
    }

    /// Example: ask(&Backend::get_vf, vf).
    template <typename Answer, typename... Parameters, typename... Arguments>
    Answer ask(Answer (Backend::*operation)(Parameters...), Arguments&&... arguments) {
        Answer answer = (port_.get()->*operation)(std::forward<Arguments>(arguments)...);
        if (!answer && !port_->is_connected() && std::exchange(is_attached_, false))
            on_loss_(answer.error());
        return answer;
    }

    /// True if GPU and VFs must be read again. May close the connection.
    [[nodiscard]] bool take_changes() { return port_->take_changes(); }
    [[nodiscard]] std::vector<BackendNotice> take_notices() { return port_->take_notices(); }
    [[nodiscard]] bool is_connected() const { return port_->is_connected(); }
    [[nodiscard]] int connection_fd() const { return port_->connection_fd(); }
    /// Ends a wait for the PF core. Any thread may call it.
    void interrupt() { port_->interrupt(); }

private:
    std::unique_ptr<Backend> port_;
    std::function<void(const Error&)> on_loss_;
    bool is_attached_ = false;
};

}  // namespace vgpu::daemon
