// SPDX-License-Identifier: MIT
//
// Measurement: follows the PF's event ring. Feeds every RUN since the first guest started to the
// GPS oracle; between begin() and finish(), while all guests compute, it keeps the runs for the
// picture and takes counters of the PF and of the guests at both ends, so that shares by time, by
// retired instructions and by the guests' own progress can be compared.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/scenario/demo/guest_report.h"
#include "tests/support/fairness/gps_oracle.h"
#include "tests/support/fairness/host_stalls.h"
#include "tests/support/fairness/timeline.h"
#include "tests/support/stack/pf_client.h"

namespace vgpu::demo {

struct VfFigures {
    std::uint32_t vf = 0;
    std::uint64_t weight = 0;
    double share = 0;        ///< of service time, 0..1
    double share_error = 0;  ///< relative to weight / sum of weights
    double lag_quanta = 0;   ///< worst, either side
    std::uint64_t quanta = 0;
    double service_s = 0;
    double instructions_share = 0;
    double progress_share = 0;
    std::uint64_t rounds = 0;
};

struct Figures {
    std::vector<VfFigures> vfs;
    std::uint64_t switches = 0;
    std::uint64_t switch_p50_ns = 0, switch_p99_ns = 0;
    std::uint64_t events_lost = 0;
    std::uint64_t idles = 0;  ///< a backlogged VF reported no work
    std::int64_t longest_run_ns = 0;
    std::int64_t host_stall_ns = 0;  ///< HostStalls::worst_ns()
    double seconds = 0;
    bool counts_progress = false;  ///< the guests report their rounds
};

class Measurement {
public:
    /// Follows the ring from now on; make it before any guest starts. A guest without a report has
    /// no rounds.
    Measurement(test::PfClient& pf, std::map<std::uint32_t, std::uint64_t> weights,
                std::map<std::uint32_t, const SharedReport*> guests, std::uint32_t quantum_us);

    /// Begins the measurement, when all guests compute.
    void begin();
    /// Follows the ring until `enough` (asked after each batch) or `limit` (scaled) passes; throws
    /// then.
    void follow(const std::string& what, const std::function<bool()>& enough,
                test::milliseconds limit);
    [[nodiscard]] std::uint64_t quanta(std::uint32_t vf) const { return oracle_.account(vf).runs; }
    /// Service of all VFs since begin().
    [[nodiscard]] std::map<std::uint32_t, std::int64_t> received_ns() const;
    void mark(const std::string& text);
    [[nodiscard]] Figures finish();
    /// vf,start_ns,end_ns of every run; marks as lines that start with '#'.
    [[nodiscard]] std::string runs_csv() const;
    [[nodiscard]] test::Timeline timeline(const std::string& title, std::int64_t around_ns,
                                          std::int64_t before_ns, std::int64_t after_ns) const;

private:
    struct Counters {
        std::uint64_t instructions = 0;
        std::uint64_t rounds = 0;
    };
    void take();
    [[nodiscard]] std::map<std::uint32_t, Counters> counters();

    test::PfClient& pf_;
    std::map<std::uint32_t, std::uint64_t> weights_;
    std::map<std::uint32_t, const SharedReport*> guests_;
    double quantum_ns_;
    test::GpsOracle oracle_;
    test::EventReader events_;
    std::map<std::uint32_t, Counters> at_start_;
    std::uint64_t switches_at_start_ = 0;
    std::chrono::steady_clock::time_point started_;
    std::vector<test::TimelineRun> runs_;
    std::vector<test::TimelineMark> marks_;
    std::uint64_t idles_ = 0;
    std::optional<test::HostStalls> stalls_;
};

/// CLOCK_MONOTONIC, which is also the device's clock on the same machine.
[[nodiscard]] std::int64_t monotonic_ns();

}  // namespace vgpu::demo
