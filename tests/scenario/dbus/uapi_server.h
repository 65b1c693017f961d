// SPDX-License-Identifier: MIT
//
// UapiServer: a FakePf behind a real uapi socket, with a real event ring, so that the real vgpud
// can be tested without a GPU. Runs in a thread of the test; the test changes the FakePf under the
// lock. stop() acts like the death of a vgpu-pf, start() like its return with the same VFs.
#pragma once

#include "daemon/adapters/unique_fd.h"
#include "tests/unit/daemon/fake_pf.h"

#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace vgpu::daemon::testing {

class UapiServer {
public:
    static constexpr std::uint32_t kRingEntries = 1024;

    explicit UapiServer(std::string path);
    ~UapiServer();
    UapiServer(const UapiServer&) = delete;
    UapiServer& operator=(const UapiServer&) = delete;

    void start();
    void stop();

    /// Runs `work` on the FakePf while no request is served.
    template <typename Work> auto with(Work work) {
        const std::scoped_lock lock(mutex_);
        return work(pf_);
    }

private:
    struct Client {
        adapters::UniqueFd socket;
        adapters::UniqueFd wakeup;
    };

    void serve();
    bool serve_request(Client& client);
    int answer(std::uint32_t op, std::vector<std::byte>& body, std::string& message);
    void reply(Client& client, const vgpu_pf_request& request, int error,
               const std::vector<std::byte>& body, const std::string& message);
    void publish(const vgpu_pf_event& event);

    std::string path_;
    std::mutex mutex_;
    VirtualClock clock_;
    FakePf pf_;
    FakePfPort port_;
    adapters::UniqueFd ring_memory_;
    std::byte* ring_ = nullptr;
    adapters::UniqueFd listener_;
    adapters::UniqueFd stop_;
    std::vector<Client> clients_;
    std::thread thread_;
};

}  // namespace vgpu::daemon::testing
