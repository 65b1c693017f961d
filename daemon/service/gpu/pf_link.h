// SPDX-License-Identifier: MIT
//
// PfLink: GpuModel's connection to its PF core. All requests go through ask(), so that no caller
// can forget to check for a lost PF core. If a request fails because the PF core is lost, ask()
// calls `on_loss` with the error. ask() does so only once after each attached(); before attached(),
// the error makes GpuModel::attach() fail. One thread makes all calls except interrupt().
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
    /// Call it when the state of the PF core has been read completely.
    void attached() { is_attached_ = true; }
    void disconnect() {
        is_attached_ = false;
        port_->disconnect();
    }

    /// Calls a function of the backend and returns its result, as in ask(&Backend::get_vf, vf).
    template <typename Answer, typename... Parameters, typename... Arguments>
    Answer ask(Answer (Backend::*operation)(Parameters...), Arguments&&... arguments) {
        Answer answer = (port_.get()->*operation)(std::forward<Arguments>(arguments)...);
        if (!answer && !port_->is_connected() && std::exchange(is_attached_, false))
            on_loss_(answer.error());
        return answer;
    }

    /// As the functions of Backend with the same names.
    [[nodiscard]] bool take_changes() { return port_->take_changes(); }
    [[nodiscard]] std::vector<BackendNotice> take_notices() { return port_->take_notices(); }
    [[nodiscard]] bool is_connected() const { return port_->is_connected(); }
    [[nodiscard]] int connection_fd() const { return port_->connection_fd(); }
    /// Ends a wait for the PF core. Any thread may call interrupt().
    void interrupt() { port_->interrupt(); }

private:
    std::unique_ptr<Backend> port_;
    std::function<void(const Error&)> on_loss_;
    bool is_attached_ = false;
};

}  // namespace vgpu::daemon
