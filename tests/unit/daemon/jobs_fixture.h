// SPDX-License-Identifier: MIT
//
// Jobs over a PF core in memory, and two configurations for it: what tests of applies and of their
// recovery have in common.
#pragma once

#include "daemon/service/jobs/jobs.h"
#include "tests/unit/daemon/world.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::daemon::testing {

/// a and b of 64 MiB, c of 128 MiB.
inline constexpr const char* kBefore = R"({
    "profiles": {"small": {"resources": {"vram": "64MiB"}},
                 "large": {"resources": {"vram": "128MiB"}}},
    "configs": {"day": [{"gpu": "gpu0", "scheduler": {"max_gap_ms": 60},
                         "vfs": [{"profile": "small", "name": "a"},
                                 {"profile": "small", "name": "b"},
                                 {"profile": "large", "name": "c"}]}]}
})";
/// a has another weight, b another size, c goes, d comes.
inline constexpr const char* kAfter = R"({
    "profiles": {"small": {"resources": {"vram": "64MiB"}, "scheduler": {"weight": 300}},
                 "large": {"resources": {"vram": "128MiB"},
                           "security": {"guard": {"flr": 5}}}},
    "configs": {"night": [{"gpu": "gpu0", "scheduler": {"max_gap_ms": 80},
                           "vfs": [{"profile": "small", "name": "a"},
                                   {"profile": "large", "name": "b"},
                                   {"profile": "small", "name": "d"}]}]}
})";

class JobsOnAFakePf : public ::testing::Test {
protected:
    explicit JobsOnAFakePf(const std::vector<std::string>& gpus = {"gpu0"}) : world(gpus) {
        for (const std::string& gpu : gpus) world.pf(gpu).scrubs_at_once = true;
    }

    /// A new vgpud; the jobs of the old one are gone.
    void restart() {
        jobs.reset();
        world.start();
        jobs.emplace(*world.manager, world.clock);
    }
    void step() {
        jobs->step();
        world.step();
        jobs->step();
    }
    /// The PF core does not release VF 3.
    void keep_c() {
        world.pf().refuses = [](const std::string& operation, std::uint32_t vf) {
            return operation == "release" && vf == 3;
        };
    }
    /// Another program has destroyed the VF and made one with the same number.
    void replace_vf(std::uint32_t vf) {
        std::uint8_t& first = world.pf().vfs.at(vf).uuid[0];
        first = static_cast<std::uint8_t>(first + 1);
    }
    /// VF 2 was scrubbed for long, others are no more; there is time for all steps that are left.
    void end_the_scrub_of_b() {
        world.pf().scrubs_at_once = true;
        world.pf().finish_scrub(2);
        for (int i = 0; i < 10; ++i) step();
    }
    /// The PF core takes a release, and nothing after it.
    void lose_the_pf_at_a_release() {
        world.pf().scrubs_at_once = false;
        world.pf().refuses = [this](const std::string& operation, std::uint32_t) {
            if (operation == "release") world.pf().is_there = false;
            return false;
        };
    }
    /// It has scrubbed VF 2 meanwhile; there is time for a recovery.
    void bring_the_pf_back() {
        world.pf().refuses = nullptr;
        world.pf().is_there = true;
        world.pf().finish_scrub(2);
        world.pf().scrubs_at_once = true;
        for (int i = 0; i < 10; ++i) {
            world.clock.advance(std::chrono::seconds(2));
            step();
        }
    }
    std::uint32_t begin(const std::string& document, const Options& options = {}) {
        const auto id = jobs->apply(document, options);
        EXPECT_TRUE(id) << id.error().cause;
        return id.value_or(0);
    }
    JobView apply(const std::string& document, const Options& options = {}) {
        const std::uint32_t id = begin(document, options);
        for (int i = 0; i < 20 && !is_over(id); ++i) {
            step();
            world.clock.advance(std::chrono::milliseconds(100));
        }
        return view(id);
    }
    [[nodiscard]] JobView view(std::uint32_t id) const {
        for (const JobView& job : jobs->list())
            if (job.id == id) return job;
        ADD_FAILURE() << "no job " << id;
        return {};
    }
    [[nodiscard]] bool is_over(std::uint32_t id) const {
        const std::string state = view(id).state;
        return state == "done" || state == "failed" || state == "cancelled";
    }
    std::string exported() {
        std::string text;
        jobs->export_document({}, [&text](const Result<std::string>& answer) {
            text = answer ? *answer : answer.error().cause;
        });
        return text;
    }
    /// "" if there is nothing to do.
    std::string planned(const std::string& document) {
        std::string steps;
        jobs->plan(document, {}, [&steps](const Result<std::string>& answer) {
            if (!answer) {
                steps = answer.error().cause;
                return;
            }
            const auto plan = nlohmann::json::parse(*answer);
            for (const auto& step : plan.at("steps"))
                if (step.at("action") != "keep")
                    steps += fmt::format("{} {};", step.at("action").get<std::string>(),
                                         step.at("name").get<std::string>());
        });
        return steps;
    }
    long provisions_and_releases() {
        const auto& log = world.pf().log;
        return std::count_if(log.begin(), log.end(), [](const std::string& operation) {
            return operation.starts_with("provision") || operation.starts_with("release");
        });
    }
    Uuid uuid_of(std::uint32_t vf) { return world.gpu().view(vf).record.spec.uuid; }

    std::optional<ApplyIntent> recorded() { return world.manager->store().apply(); }

    World world;
    std::optional<Jobs> jobs{std::in_place, *world.manager, world.clock};
};

}  // namespace vgpu::daemon::testing
