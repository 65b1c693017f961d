// SPDX-License-Identifier: MIT
//
// Tests what vgpuctl doctor recommends. Each test makes a state, runs every command of the finding
// in a shell as it is printed, and expects that the finding is gone.
#include "tests/scenario/dbus/advised.h"

#include <gtest/gtest.h>
#include <chrono>
#include <fstream>

namespace vgpu::daemon {
namespace {

using testing::Advised;
using testing::FakePf;

class Remedies : public Advised {
public:
    void quarantine() { put_into(VGPU_PF_VF_QUARANTINED); }
    void quarantine_in_use() {
        claim("slurm:7");
        server.with([](FakePf& pf) { pf.vfs.at(1).attached = 1; });
        quarantine();
    }
    void mismatch() { put_into(VGPU_PF_VF_MISMATCH); }
    void mismatch_claimed() {
        claim("a;exit(9)");
        mismatch();
    }
    void not_made() { restart_with_a_device_that_refuses(); }
    void not_made_claimed() {
        claim("slurm:7");
        not_made();
    }
    void no_vgpud() { vgpud->kill_now(); }
    void damaged_state() {
        vgpud->kill_now();
        {
            std::fstream file(directory.file("state/gpus/gpu0.json"),
                              std::ios::in | std::ios::out | std::ios::binary);
            file.seekp(200);
            file.put('\x7f');
        }
        start_daemon();
    }
    /// A claim whose lease is over; a vgpud looks at owners when it starts.
    void forgotten() {
        EXPECT_EQ(ctl({"claim", "train", "--owner", "slurm:7", "--lease", "1"}).status, 0);
        const auto ends = std::chrono::system_clock::now() + std::chrono::seconds(1);
        vgpud->kill_now();
        test::wait_for("the end of the lease", test::milliseconds(5'000),
                       [ends] { return std::chrono::system_clock::now() > ends; });
        start_daemon();
    }

protected:
    Remedies() { static_cast<void>(ctl_json({"create", "--name", "train", "--vram", "64M"})); }

    void claim(const std::string& owner) const {
        EXPECT_EQ(ctl({"claim", "train", "--owner", owner}).status, 0);
    }
    void put_into(vgpu_pf_vf_state state) {
        server.with([state](FakePf& pf) { pf.set_state(1, state); });
    }
    /// What doctor finds wrong under `id`; null if nothing.
    [[nodiscard]] nlohmann::json finding(const std::string& id) const {
        const auto doctor = ctl({"doctor", "--json", "--qemu", "/bin/false"});
        const auto report = nlohmann::json::parse(doctor.out, nullptr, false);
        if (!report.is_object()) ADD_FAILURE() << doctor.out;
        for (const auto& one : report.value("findings", nlohmann::json::array()))
            if (one.at("id") == id && one.at("level") != "ok") return one;
        return nullptr;
    }
};

struct Ill {
    const char* finding;
    void (Remedies::*bring_about)();
};

class RemedyOf : public Remedies, public ::testing::WithParamInterface<Ill> {};

TEST_P(RemedyOf, WorksInTheStateThatItIsRecommendedFor) {
    const auto [id, bring_about] = GetParam();
    (this->*bring_about)();
    test::wait_for("the finding", test::milliseconds(10'000),
                   [&, id = id] { return !finding(id).is_null(); });
    EXPECT_GE(do_as_told(finding(id).at("fix")), 1) << finding(id);
    EXPECT_TRUE(finding(id).is_null()) << finding(id);
}

INSTANTIATE_TEST_SUITE_P(States, RemedyOf,
                         ::testing::Values(Ill{"vgpud", &Remedies::no_vgpud},
                                           Ill{"state", &Remedies::damaged_state},
                                           Ill{"vf-state", &Remedies::quarantine},
                                           Ill{"vf-state", &Remedies::quarantine_in_use},
                                           Ill{"vf-state", &Remedies::mismatch},
                                           Ill{"vf-state", &Remedies::mismatch_claimed},
                                           Ill{"vf-condition", &Remedies::not_made},
                                           Ill{"vf-condition", &Remedies::not_made_claimed},
                                           Ill{"vf-orphan", &Remedies::forgotten}));

}  // namespace
}  // namespace vgpu::daemon
