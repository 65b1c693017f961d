// SPDX-License-Identifier: MIT
//
// A guest that hangs on purpose, again and again, and a neighbour that lives an ordinary life.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/scenario/gpu/guest.h"

namespace vgpu::test {
namespace {

constexpr std::uint32_t kHostile = 1, kNeighbour = 2;

/// Without guard limits, because the guard would put the VF into quarantine after a few hangs.
void provision_hostile(GpuStack& stack) {
    stack.pf().provision(kHostile, 32u << 20, [](vgpu_pf_provision& request) {
        request.preempt_timeout_us = 20'000;
        std::ranges::fill(request.guard_limits, UINT32_MAX);
    });
}

/// Boots, computes without an end, does not leave the engine, is reset, and begins again.
class HostileGuest {
public:
    explicit HostileGuest(const GpuStack& stack) : stack_(stack), thread_([this] { live(); }) {}
    ~HostileGuest() {
        is_over_ = true;
        thread_.join();
    }
    HostileGuest(const HostileGuest&) = delete;
    HostileGuest& operator=(const HostileGuest&) = delete;

    [[nodiscard]] int hangs() const { return hangs_; }

private:
    void live() {
        PfClient pf = stack_.connect_pf();
        while (!is_over_) {
            try {
                Guest guest(stack_, kHostile);
                static_cast<void>(start_endless(guest));
                const auto before = pf.vf(kHostile).hangs;
                stack_.inject(kHostile, "save", "lost");
                wait_for("the hostile guest to hang", milliseconds(10000),
                         [&] { return is_over_ || pf.vf(kHostile).hangs != before; });
                ++hangs_;
            } catch (const VfError&) {
                // its own hang caught it while it was booting: it begins again
            }
        }
    }

    const GpuStack& stack_;
    std::atomic<bool> is_over_ = false;
    std::atomic<int> hangs_ = 0;
    std::thread thread_;
};

std::string compute(VfClient& client) {
    auto& process = client.create_process();
    return run_programs(process, process.create_queue(), {"array_increment"});
}

/// Waits until a switch from the hostile guest to the neighbour, which has work, is stuck. The PF
/// core waits half a second for the switch.
void wait_until_stuck(const GpuStack& stack) {
    const auto injected = [&] {
        return stack.control({{"stats", nlohmann::json::object()}})
            .at("device")
            .at("injected")
            .get<std::uint64_t>();
    };
    const auto before = injected();
    wait_for("a switch to be stuck", milliseconds(20000), [&] { return injected() != before; });
}

void live_through_hangs(GpuStack& stack) {
    Guest guest(stack, kNeighbour);
    EXPECT_EQ(compute(guest.client), "");
    static_cast<void>(start_endless(guest));
    wait_until_stuck(stack);
    guest.client.device().reset();
    guest.client.forget();
    guest.client.boot();
    EXPECT_EQ(compute(guest.client), "") << "after an FLR";
    guest.process = &guest.client.create_process();
    guest.queue = &guest.process->create_queue();
    const auto progress = start_endless(guest);
    wait_until_stuck(stack);
    stack.pf().control(kNeighbour, VGPU_PF_PAUSE);
    stack.pf().wait_state(kNeighbour, VGPU_PF_VF_PAUSED);
    stack.pf().control(kNeighbour, VGPU_PF_RESUME);
    wait_progress(progress);
    guest.client.unload();
    guest.client.boot();
    EXPECT_EQ(compute(guest.client), "") << "after its driver was loaded again";
}

TEST(Neighbour, OfAGuestThatHangsForEverAlwaysComesBackAndComputesRightResults) {
    GpuStack stack;
    provision_hostile(stack);
    stack.provision(kNeighbour);
    HostileGuest hostile(stack);
    for (int life = 0; life < 2; ++life) {
        live_through_hangs(stack);
        stack.pf().release(kNeighbour);
        stack.pf().scrub_durable(kNeighbour);
        stack.pf().provision(kNeighbour, 32u << 20);
    }
    Guest next(stack, kNeighbour);
    EXPECT_EQ(compute(next.client), "") << "of the next owner";
    EXPECT_GE(hostile.hangs(), 3);
    EXPECT_EQ(stack.pf().vf(kNeighbour).hangs, 0u);
    EXPECT_EQ(stack.pf().info().device_resets, 0u);
}

}  // namespace
}  // namespace vgpu::test
