// SPDX-License-Identifier: MIT
//
// Neighbours: two guests at work on VFs of one GPU while something happens to a third. Each has a
// kernel that never ends, so that it always has work. Its thread also runs programs, round after
// round, and compares their results bit for bit. The service of each is what vgpud reports.
#pragma once

#include "tests/support/programs/program.h"
#include "tests/support/vf_client/process.h"
#include "tests/support/vf_client/vf_client.h"

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace vgpu::daemon::testing {

/// A booted driver on a VF with one process and one queue.
struct Guest {
    explicit Guest(const std::string& socket);

    test::VfClient client;
    test::Process* process = nullptr;
    test::AqlQueue* queue = nullptr;
};

/// Starts a kernel that never ends on the guest's queue.
void run_for_ever(Guest& guest);

/// One guest and its thread.
class Neighbour {
public:
    explicit Neighbour(const std::string& socket);
    ~Neighbour();
    Neighbour(const Neighbour&) = delete;
    Neighbour& operator=(const Neighbour&) = delete;

    [[nodiscard]] int rounds() const { return rounds_; }
    [[nodiscard]] bool is_over() const { return is_over_; }
    /// Ends its work; returns what went wrong, empty: nothing.
    std::string stop();

private:
    void work();

    Guest guest_;
    test::AqlQueue& queue_;
    std::vector<test::Program> programs_;
    test::Signal done_;
    std::string condition_;
    std::atomic<int> rounds_{0};
    std::atomic<bool> is_stopped_{false}, is_over_{false};
    std::thread thread_;
};

class Neighbours {
public:
    /// Returns what `vgpuctl list --json` shows of all VFs.
    using List = std::function<nlohmann::json()>;

    /// Both are at work when it returns.
    Neighbours(List list, std::array<std::string, 2> names);

    /// Waits until both have ended a round that began after the call, and until they got 0.3 s of
    /// the engine more.
    void compute();
    /// The first guest's part of the service of both since the constructor.
    [[nodiscard]] double share_of_first() const;
    /// Ends both; returns what went wrong: a wrong bit, an error, a hang, a reset, another VF in
    /// their place; empty: nothing.
    std::string stop();

private:
    struct One {
        std::string name;
        Neighbour guest;
        nlohmann::json before;
    };

    /// The service of both until now.
    [[nodiscard]] std::array<double, 2> service() const;

    List list_;
    std::vector<std::unique_ptr<One>> both_;
};

}  // namespace vgpu::daemon::testing
