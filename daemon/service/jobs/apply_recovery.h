// SPDX-License-Identifier: MIT
//
// ApplyRecovery: what becomes of an apply that another vgpud began and did not end (ApplyIntent in
// the state files), or that a run had to leave because its GPU or the disk was lost. Made anew from
// what there is now, since VMs may have come meanwhile:
//   1. forward, if all that is left can be done and nobody who came later loses a VF by it;
//   2. else back to what there was, as far as nobody who came later loses a VF by it;
//   3. what could not be taken back then is told (notice apply-unfinished, the job's error).
// The direction only ever turns from forward to back, and that is durable. Each act is tried once,
// and a few times more if the PF core was lost over it; so it ends, or waits without disturbing
// anybody: for a GPU that is not in service, for a disk that takes nothing. Cancelled it turns
// back; while it goes back it then does without GPUs that are not in service. From its making until
// its end its GPUs are held.
//
//   Looking --> Acting --> Clearing --> over
//      ^           | failed: back, once
//      +-----------+ lost: look again
//
// Runs in the main loop: step() never waits. Made by Jobs.
#pragma once

#include "daemon/service/config/apply_intent.h"
#include "daemon/service/jobs/act_runner.h"
#include "daemon/service/jobs/job_run.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace vgpu::daemon {

class ApplyRecovery final : public JobRun {
public:
    /// Between two looks at a GPU that is not there, or tries of a disk that takes nothing.
    static constexpr Nanoseconds kAgain = std::chrono::seconds(1);
    static constexpr Nanoseconds kScrubAgain = std::chrono::milliseconds(50);
    /// Losses of a PF core in the middle of an act, in each direction.
    static constexpr int kMostLosses = 2;

    /// `holder`: "job 1 (recovery of apply 'day')"
    ApplyRecovery(Manager& manager, const Clock& clock, ApplyIntent intent, std::string holder);
    ~ApplyRecovery() override;

    void step() override;
    /// Done: what was to be is so, the new configuration or the old one.
    [[nodiscard]] State state() const override;
    [[nodiscard]] double progress() const override;
    [[nodiscard]] Nanoseconds next_look(Nanoseconds now) const override;

private:
    enum class Phase { Looking, Acting, Clearing, Over };

    bool advance();
    /// False if it has to wait.
    bool look();
    void hold();
    void note_direction();
    /// What it waits for; drops GPUs that are not waited for.
    [[nodiscard]] std::string missing();
    void drop(const std::string& gpu, std::string why);
    void begin_survey();
    void on_survey(Result<std::vector<GpuInventory>> found);
    /// True if it has to wait for scrubs.
    bool waits_for_scrubs(const std::vector<GpuInventory>& found);
    void accept(ChangePlan plan, const std::vector<GpuInventory>& found);
    [[nodiscard]] Result<> check_forward(const ChangePlan& plan,
                                         const std::vector<GpuInventory>& found) const;
    void leave_out_used(ChangePlan& plan, const std::vector<GpuInventory>& found);
    bool begin_next();
    void end_act(const Result<>& result);
    void turn_back(Error error);
    void wait(std::string why, Nanoseconds time = kAgain);
    void clear();
    void end();
    [[nodiscard]] std::string aftermath() const;
    [[nodiscard]] std::vector<WantedGpu> goal() const;

    Manager& manager_;
    const Clock& clock_;
    ApplyIntent intent_;
    std::string holder_;
    ActRunner runner_;
    Phase phase_ = Phase::Looking;
    State ended_as_ = State::Failed;
    bool is_asking_ = false, is_holding_ = false;
    bool is_noted_ = false;  ///< the state files have the direction
    Nanoseconds look_at_{0};
    std::optional<Nanoseconds> scrub_deadline_;  ///< of those that every look since has found
    int losses_ = 0;
    std::vector<Act> acts_;
    std::size_t next_ = 0;               ///< of acts_
    std::set<std::string> dropped_;      ///< GPUs that are not waited for
    std::vector<std::string> emptied_;   ///< VFs whose VRAM going back has emptied
    std::vector<std::string> troubles_;  ///< what could not be done
};

}  // namespace vgpu::daemon
