// SPDX-License-Identifier: MIT
//
// PfLink: the connection of one GPU to its PF core, and GpuModel's only way to the port. Each
// operation goes through ask(), so the one that meets a lost PF core is the one that tells of it:
// no caller can forget to look, and the cause is that operation's own.
//
// Losses are told from attached() on. What is lost before that is an attempt to attach that failed,
// and its caller knows. One thread, that of its GpuModel, but for interrupt().
#pragma once

#include "daemon/ports/pf_port.h"

#include <functional>
#include <memory>
#include <utility>

namespace vgpu::daemon {

class PfLink {
public:
    /// `on_loss` gets the error of the operation that met the loss, before ask() returns it.
    PfLink(std::unique_ptr<PfPort> port, std::function<void(const Error&)> on_loss)
        : port_(std::move(port)), on_loss_(std::move(on_loss)) {}

    Result<> connect() {
        is_attached_ = false;
        return port_->connect();
    }
    /// All that is to be known of the PF core was read.
    void attached() { is_attached_ = true; }
    void disconnect() {
        is_attached_ = false;
        port_->disconnect();
    }

    /// ask(&PfPort::get_vf, vf)
    template <typename Answer, typename... Parameters, typename... Arguments>
    Answer ask(Answer (PfPort::*operation)(Parameters...), Arguments&&... arguments) {
        Answer answer = (port_.get()->*operation)(std::forward<Arguments>(arguments)...);
        if (!answer && !port_->is_connected() && std::exchange(is_attached_, false))
            on_loss_(answer.error());
        return answer;
    }

    [[nodiscard]] bool is_connected() const { return port_->is_connected(); }
    [[nodiscard]] int connection_fd() const { return port_->connection_fd(); }
    /// Any thread: ends the wait for the PF core that is under way.
    void interrupt() { port_->interrupt(); }

private:
    std::unique_ptr<PfPort> port_;
    std::function<void(const Error&)> on_loss_;
    bool is_attached_ = false;
};

}  // namespace vgpu::daemon
