// SPDX-License-Identifier: MIT
//
// Show: the acts of the demo, in the order in which a visitor sees them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/scenario/demo/checks.h"
#include "tests/scenario/demo/guest_report.h"
#include "tests/scenario/demo/measurement.h"
#include "tests/support/stack/gpu_stack.h"
#include "tests/support/stack/host.h"

namespace vgpu::demo {

struct ShowOptions {
    test::HostOptions host;
    std::uint64_t quanta = 200;  ///< quanta of the smallest VF before shares are judged
    std::uint64_t away_ms = 0;   ///< least time from vgpud's death to its successor
    std::string timeline = "timeline.svg";
    std::string runs;  ///< CSV file with every run; empty: none
    std::string self;  ///< this program, to be started as guests
};

class Show {
public:
    explicit Show(ShowOptions options);

    /// Number of claims that did not hold.
    int run();

private:
    struct Guest {
        std::uint64_t weight = 1;
        std::string name;
        SharedReport report;
        std::optional<test::ChildProcess> process;
    };

    void create_vfs();
    void start_guests();
    void share_the_gpu();
    void follow_from_now();
    void lose_vgpud();
    void stay_without_vgpud();
    void judge(const Figures& figures);
    void attack_neighbours();
    void run_endless_kernel();
    void hang_one();
    void unassign_one();
    void decide_again();
    void finish();

    [[nodiscard]] std::map<std::uint32_t, std::uint64_t> rounds() const;
    void wait_rounds(const std::string& what, const std::vector<std::uint32_t>& vfs);
    void check_guests_alive() const;
    [[nodiscard]] std::uint64_t wrong_results() const;

    ShowOptions options_;
    Checks checks_;
    test::TempDir dir_;
    test::Host host_;
    test::PfClient pf_;
    std::map<std::uint32_t, Guest> guests_;
    std::optional<Measurement> measurement_;
};

}  // namespace vgpu::demo
