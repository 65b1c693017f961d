// SPDX-License-Identifier: MIT
#include "daemon/simulator/recording_export.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace vgpu::simulator {

using daemon::GpuSchedule;
using daemon::Nanoseconds;
using daemon::trace::Event;
using daemon::trace::MembersSet;
using daemon::trace::Ran;
using daemon::trace::WentIdle;
using daemon::trace::Woke;
using OrderedJson = nlohmann::ordered_json;

namespace {

/// The recorded work of one VF, split into jobs. A job begins when the VF gets work, and ends when
/// the VF has no work left. Without a run in between, there is no job.
class RecordedWork {
public:
    void wake(Nanoseconds at) {
        if (!since_) since_ = at;
    }
    void run(Nanoseconds begin, std::int64_t ns) {
        wake(begin);
        done_ns_ += ns;
        if (is_last_run_) finish();
    }
    /// The VF has run out of work. If the VF is running, the recording reports the run only after
    /// this event, so the job ends with the next run().
    void run_out(bool is_running) {
        has_paused_ = true;
        is_last_run_ = is_running && since_.has_value();
        if (!is_running) finish();
    }
    /// The work as JSON. `begin`: time 0 of the scenario.
    [[nodiscard]] OrderedJson work(Nanoseconds begin) {
        if (!has_paused_ && since_) return {{"arrivals", "backlogged"}};
        finish();
        OrderedJson jobs = OrderedJson::array();
        for (const auto& [at, ns] : jobs_)
            jobs.push_back({std::max(0.0, ms_of(at - begin)), ms_of(Nanoseconds{ns})});
        return {{"arrivals", "recorded"}, {"jobs", std::move(jobs)}};
    }

private:
    void finish() {
        if (since_ && done_ns_ > 0) jobs_.emplace_back(*since_, done_ns_);
        since_.reset();
        done_ns_ = 0;
        is_last_run_ = false;
    }

    std::optional<Nanoseconds> since_;  ///< time since which the VF has had work
    std::int64_t done_ns_ = 0;          ///< service of the current job
    bool is_last_run_ = false;          ///< true if the next run() ends the job
    bool has_paused_ = false;           ///< true if the VF has ever run out of work
    std::vector<std::pair<Nanoseconds, std::int64_t>> jobs_;
};

/// The phase in ms of a gang's slots, counted from `begin` instead of time 0 of the host's clock.
double phase_ms(const daemon::VfQos& qos, Nanoseconds begin) {
    constexpr double kUsPerMs = 1000;
    const std::int64_t period_us = std::llround(qos.latency_ms * kUsPerMs);
    if (period_us <= 0) return qos.phase_ms;
    const std::int64_t into_us = std::llround((qos.phase_ms - ms_of(begin)) * kUsPerMs) % period_us;
    return static_cast<double>((into_us + period_us) % period_us) / kUsPerMs;
}

/// The settings of a VF, in the form of a scenario. `gap_ms`: the GPU's max_gap_ms, for a VF that
/// has none.
OrderedJson contract_json(const GpuSchedule::Member& member, std::uint32_t gap_ms,
                          Nanoseconds begin) {
    constexpr double kUsPerMs = 1000;
    const daemon::VfQos& qos = member.qos;
    OrderedJson json{{"weight", member.weight},
                     {"priority_class", daemon::name_of(qos.priority_class)},
                     {"mode", daemon::name_of(qos.mode)},
                     {"max_gap_ms", qos.max_gap_ms > 0 ? qos.max_gap_ms : gap_ms},
                     {"quantum_ms", member.quantum_us / kUsPerMs}};
    if (qos.min_pct > 0) json["min_pct"] = qos.min_pct;
    if (qos.max_pct < 100) json["max_pct"] = qos.max_pct;
    if (qos.burst_ms > 0) json["burst_ms"] = qos.burst_ms;
    if (qos.latency_ms > 0) json["latency_ms"] = qos.latency_ms;
    if (qos.preempt_timeout_ms > 0) json["preempt_timeout_ms"] = qos.preempt_timeout_ms;
    if (qos.mode == daemon::scheduler::SlotMode::Gang) json["phase_ms"] = phase_ms(qos, begin);
    return json;
}

class ScenarioMaker {
public:
    explicit ScenarioMaker(const Recording& recording)
        : recording_(recording), period_(period_of(recording)) {}

    OrderedJson scenario() {
        for (const RecordedChunk& chunk : recording_.chunks) {
            const bool is_first = &chunk == &recording_.chunks.front();
            set_members(chunk.image.members, chunk.image.max_gap_ms, chunk.at, is_first);
            if (is_first) begin_ongoing_work(chunk.image);
            for (const Event& event : chunk.events) read_event(event);
        }
        OrderedJson vfs = OrderedJson::array();
        for (auto& [vf, one] : vfs_) {
            one.json["work"] = one.work.work(period_.begin);
            vfs.push_back(std::move(one.json));
        }
        return {{"name", recording_.gpu + ", recorded"},
                {"duration_ms", std::max(1.0, ms_of(period_.end - period_.begin))},
                {"device", {{"switch_us", switch_us()}}},
                {"vfs", std::move(vfs)},
                {"changes", std::move(changes_)},
                {"policies", {"vgpu", "gim", "xe"}}};
    }

private:
    struct Vf {
        OrderedJson json;
        bool is_in = false;
        std::uint32_t weight = 0;
        RecordedWork work;
    };

    /// Adds a change to the scenario. `weight`: 0 if the change has none.
    void change(Nanoseconds at, std::uint32_t vf, const char* what, std::uint32_t weight) {
        OrderedJson json{{"at_ms", std::max(0.0, ms_of(at - period_.begin))},
                         {"vf", name_in(recording_, vf)},
                         {"what", what}};
        if (weight > 0) json["weight"] = weight;
        changes_.push_back(std::move(json));
    }

    /// Compares `members` with the last ones, and adds VFs and changes to the scenario. Of the
    /// settings of a VF that the scenario has already, only a new weight becomes a change.
    /// `is_beginning`: the members are there from time 0.
    void set_members(const std::vector<GpuSchedule::Member>& members, std::uint32_t gap_ms,
                     Nanoseconds at, bool is_beginning) {
        for (auto& entry : vfs_) {
            const std::uint32_t number = entry.first;
            Vf& vf = entry.second;
            const bool stays = std::any_of(members.begin(), members.end(),
                                           [&](const auto& member) { return member.vf == number; });
            if (vf.is_in && !stays) change(at, number, "leave", 0);
            vf.is_in = vf.is_in && stays;
        }
        for (const GpuSchedule::Member& member : members) {
            Vf& vf = vfs_[member.vf];
            if (vf.json.empty()) {
                vf.json = {{"name", name_in(recording_, member.vf)}};
                vf.json.update(contract_json(member, gap_ms, period_.begin));
                if (!is_beginning) vf.json["joins_later"] = true;
            }
            if (!vf.is_in && !is_beginning) change(at, member.vf, "join", member.weight);
            if (vf.is_in && vf.weight != member.weight)
                change(at, member.vf, "weight", member.weight);
            vf.is_in = true;
            vf.weight = member.weight;
        }
    }

    /// Begins the jobs of the VFs that had work when the recording began.
    void begin_ongoing_work(const GpuSchedule::Image& image) {
        const daemon::scheduler::FluidImage fluid = image.fluid.image();
        for (const auto& [vf, client] : fluid.clients)
            if (client.is_awake) vfs_[vf].work.wake(period_.begin);
    }

    void read_event(const Event& event) {
        if (const auto* set = std::get_if<MembersSet>(&event))
            set_members(set->members, set->max_gap_ms, set->at, false);
        if (const auto* woke = std::get_if<Woke>(&event)) vf_of(woke->vf).work.wake(woke->at);
        if (const auto* idle = std::get_if<WentIdle>(&event))
            vf_of(idle->vf).work.run_out(!idle->is_inactive);
        const auto* ran = std::get_if<Ran>(&event);
        if (ran == nullptr) return;
        vf_of(ran->vf).work.run(begin_of(*ran), ran->ns);
        if (last_end_ && ran->vf != last_vf_ && begin_of(*ran) > *last_end_)
            pauses_.push_back(begin_of(*ran) - *last_end_);
        last_end_ = ran->end;
        last_vf_ = ran->vf;
    }

    /// The VF with this number. For a VF that has not been a member of the schedule yet, the result
    /// is `nobody_`, which the scenario leaves out, because the VF has no contract.
    Vf& vf_of(std::uint32_t vf) {
        const auto found = vfs_.find(vf);
        return found == vfs_.end() ? nobody_ : found->second;
    }

    /// The time of a world switch: the median of the pauses between runs of different VFs; 0 if
    /// there are no pauses. Most pauses are only a switch, because the engine is seldom idle
    /// between runs of different VFs. At most 1e6, the limit in a scenario.
    double switch_us() {
        constexpr double kUsPerMs = 1000;
        if (pauses_.empty()) return 0;
        const auto middle = pauses_.begin() + static_cast<std::ptrdiff_t>(pauses_.size() / 2);
        std::nth_element(pauses_.begin(), middle, pauses_.end());
        return std::min(ms_of(*middle) * kUsPerMs, 1e6);
    }

    const Recording& recording_;
    Period period_;
    std::map<std::uint32_t, Vf> vfs_;
    Vf nobody_;
    OrderedJson changes_ = OrderedJson::array();
    std::vector<Nanoseconds> pauses_;
    std::optional<Nanoseconds> last_end_;
    std::uint32_t last_vf_ = 0;
};

}  // namespace

std::string scenario_text(const Recording& recording) {
    constexpr int kIndent = 2;
    return ScenarioMaker(recording).scenario().dump(kIndent, ' ', false,
                                                    OrderedJson::error_handler_t::replace) +
           "\n";
}

}  // namespace vgpu::simulator
