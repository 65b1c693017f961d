// SPDX-License-Identifier: MIT
//
// SocketWatch: watches a directory with inotify and calls a function when a file with a given name
// appears. The mode device-plugin watches the kubelet's socket, to detect that the kubelet has
// started.
#pragma once

#include "daemon/adapters/unique_fd.h"
#include "daemon/adapters/wakeup.h"
#include "daemon/engines/kubernetes/ports.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace vgpu::kubernetes {

class SocketWatch {
public:
    /// Starts a thread that calls `on_appearance` each time the file `name` appears in `directory`,
    /// until destruction. System if the directory cannot be watched.
    static Result<std::unique_ptr<SocketWatch>> start(const std::string& directory,
                                                      const std::string& name,
                                                      std::function<void()> on_appearance);
    ~SocketWatch();
    SocketWatch(const SocketWatch&) = delete;
    SocketWatch& operator=(const SocketWatch&) = delete;

private:
    SocketWatch(daemon::adapters::UniqueFd fd, std::string name,
                std::function<void()> on_appearance);

    void run();
    void read_events();

    daemon::adapters::UniqueFd fd_;  ///< of inotify
    std::string name_;
    std::function<void()> on_appearance_;
    daemon::adapters::Wakeup end_;  ///< raised by the destructor: ends the thread
    std::thread thread_;
};

}  // namespace vgpu::kubernetes
