// SPDX-License-Identifier: MIT
//
// How far anybody is from its ideal share, at any instant, under what is shipped (planner, run
// tables, PF core), in random runs: VFs with work all the time and in bursts, that join and leave,
// and whose weights change all the time. The oracle shares no code with any of it.
#include "tests/unit/scheduler/product_runs.h"

namespace vgpu::simulator {
namespace {

constexpr double kRequestMs = 2;
/// What is measured from events, not exact: a switch begins a little after its decision.
constexpr double kClockMs = 0.03;

struct Life {
    double bursty_part = 0;
    bool has_joins = false;
    bool has_weights = false;
    int gap_ms = 10'000;
};

enum class Weights : std::uint8_t { OneToTen, OneToTenThousand };

std::string words(std::uint32_t vfs, std::uint64_t seed, Weights weights) {
    return fmt::format("{} VFs, seed {}, {} weights", vfs, seed,
                       weights == Weights::OneToTen ? "close" : "wide");
}

class RandomLife {
public:
    RandomLife(const Life& life, std::uint32_t vfs, Weights weights, std::uint64_t seed)
        : life_(life), vfs_(vfs), weights_(weights), seed_(seed), rng_(1000 * seed + vfs) {}

    Simulation setup() {
        std::string list;
        for (std::uint32_t i = 0; i < vfs_; ++i)
            list +=
                fmt::format(R"({}{{"name": "v{}", "weight": {}, "quantum_ms": 2,
                                     "max_gap_ms": {}{}}})",
                            i == 0 ? "" : ", ", i, weight(), life_.gap_ms, i == 0 ? "" : work());
        return scenario(list, fmt::format(R"(, "seed": {}, "changes": [{}])", seed_, changes()));
    }

private:
    std::uint32_t weight() {
        if (weights_ == Weights::OneToTenThousand) return rng_.weight();
        return static_cast<std::uint32_t>(100 * rng_.between(1, 10));
    }
    std::string work() {
        if (!rng_.chance(life_.bursty_part)) return "";
        return fmt::format(
            R"(, "work": {{"arrivals": "bursty", "work_ms": {:.3f}, "period_ms": {:.3f}}})",
            static_cast<double>(rng_.between(50, 5000)) / 1000,
            static_cast<double>(rng_.between(1, 10) * vfs_));
    }
    /// v0 stays, so that there is always somebody to share with.
    std::string changes() {
        std::string list;
        if (!life_.has_joins && !life_.has_weights) return list;
        std::vector<bool> is_in(vfs_, true);
        for (std::int64_t at = 200; at < 2900; at += rng_.between(15, 200)) {
            auto vf = static_cast<std::uint32_t>(rng_.between(0, vfs_ - 1));
            std::string what = "weight";
            if (life_.has_joins && (!life_.has_weights || rng_.chance(0.5))) {
                vf = std::max(vf, 1u);
                what = is_in[vf] ? "leave" : "join";
                is_in[vf] = !is_in[vf];
            }
            list += fmt::format(R"({}{{"at_ms": {}, "vf": "v{}", "what": "{}", "weight": {}}})",
                                list.empty() ? "" : ", ", at, vf, what, weight());
        }
        return list;
    }

    Life life_;
    std::uint32_t vfs_;
    Weights weights_;
    std::uint64_t seed_;
    Rng rng_;
};

std::vector<std::uint32_t> counts() {
    if (is_full()) return {2, 3, 5, 8, 16};
    return {2, 5, 16};
}

void expect_within_one_request(const Life& life) {
    for (const Weights weights : {Weights::OneToTen, Weights::OneToTenThousand})
        for (const std::uint32_t vfs : counts())
            for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
                GpsFluid oracle;
                figures_of(RandomLife(life, vfs, weights, seed).setup(), &oracle);
                EXPECT_LE(worst_lag_ms(oracle), kRequestMs + kClockMs) << words(vfs, seed, weights);
            }
}

TEST(ProductLag, BackloggedVfsStayWithinOneRequest) {
    expect_within_one_request({});
}

TEST(ProductLag, VfsThatComeAndGoWithTheirWorkStayWithinOneRequest) {
    expect_within_one_request({.bursty_part = 0.7});
}

TEST(ProductLag, VfsWhoseWeightsChangeAllTheTimeStayWithinOneRequest) {
    expect_within_one_request({.has_weights = true});
}

TEST(ProductLag, VfsThatJoinAndLeaveStayWithinOneRequest) {
    expect_within_one_request({.has_joins = true});
}

TEST(ProductLag, AllOfThatAtOnceKeepsEverybodyWithinOneRequest) {
    expect_within_one_request({.bursty_part = 0.5, .has_joins = true, .has_weights = true});
}

/// The table keeps the gap, but the PF core may skip a turn or put others before it.
void expect_no_longer_waits(const Life& life) {
    for (const std::uint32_t vfs : counts())
        for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
            const Figures figures =
                figures_of(RandomLife(life, vfs, Weights::OneToTen, seed).setup());
            for (const VfFigures& vf : figures.vfs)
                EXPECT_LE(static_cast<double>(vf.longest_wait_ns) / 1e6, life.gap_ms)
                    << words(vfs, seed, Weights::OneToTen);
        }
}

TEST(ProductGap, BackloggedVfsWaitNoLongerThanTheirGap) {
    expect_no_longer_waits({.gap_ms = 60});
}

TEST(ProductGap, VfsBesideOthersWithBurstsWaitNoLongerThanTheirGap) {
    expect_no_longer_waits({.bursty_part = 0.7, .gap_ms = 60});
}

TEST(ProductGap, VfsWhoseWeightsChangeWaitNoLongerThanTheirGap) {
    expect_no_longer_waits({.has_weights = true, .gap_ms = 60});
}

/// Without room for them in the table, every turn of the small ones would be preceded by a short
/// one that keeps their gap: two switches for one.
TEST(ProductGap, SlowSwitchesMakeSlicesShorterAndNotMoreThanThat) {
    Simulation setup = scenario(R"({"name": "a", "weight": 1, "quantum_ms": 8, "max_gap_ms": 60},
                                   {"name": "b", "weight": 1, "quantum_ms": 8, "max_gap_ms": 60},
                                   {"name": "c", "weight": 2, "quantum_ms": 8, "max_gap_ms": 60},
                                   {"name": "d", "weight": 4, "quantum_ms": 8, "max_gap_ms": 60})");
    setup.device.switch_ns = 600'000;
    const Figures figures = figures_of(setup);
    for (std::uint32_t vf = 1; vf <= 4; ++vf) {
        const VfFigures& one = figures.vfs[vf];
        EXPECT_LE(static_cast<double>(one.longest_wait_ns) / 1e6, 60.0) << vf;
        EXPECT_GE(static_cast<double>(one.service_ns) / static_cast<double>(one.runs), 5.5e6) << vf;
    }
}

/// What one that has left was given in its life is no credit of those who stay.
TEST(ProductLag, WhoComesSoonAfterAnotherLeftHasItsShare) {
    GpsFluid oracle;
    figures_of(scenario(R"({"name": "a", "weight": 700, "quantum_ms": 2},
                           {"name": "b", "weight": 600, "quantum_ms": 2},
                           {"name": "c", "weight": 900, "quantum_ms": 2, "joins_later": true})",
                        R"(, "changes": [{"at_ms": 1000, "vf": "b", "what": "leave"},
                              {"at_ms": 1015, "vf": "c", "what": "join", "weight": 900}])"),
               &oracle);
    EXPECT_LE(worst_lag_ms(oracle), kRequestMs + kClockMs);
}

}  // namespace
}  // namespace vgpu::simulator
