// SPDX-License-Identifier: MIT
//
// FakeService: org.vgpu1 in memory at vgpuctl's Service seam, with two GPUs and three VFs whose
// values never change, so that output can be compared with goldens. Remembers what was asked.
#pragma once

#include "cli/service.h"

#include <fmt/format.h>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace vgpu::cli::testing {

inline Properties gpu_properties(const std::string& id, const std::string& state) {
    return {{"Path", "/org/vgpu1/gpu/" + id},
            {"Target", id},
            {"Id", id},
            {"State", state},
            {"StateMessage", state == "ok" ? std::string() : "gpu1: vgpu-pf does not answer"},
            {"Platform", std::string("process")},
            {"Driver", std::string("vgpu-pf")},
            {"Uapi", "/run/vgpu/" + id + "/uapi.sock"},
            {"SoftgpuPid", std::uint64_t{101}},
            {"PfPid", std::uint64_t{102}},
            {"TotalVfs", std::uint64_t{16}},
            {"VramBytes", std::uint64_t{2048} << 20},
            {"VramFreeBytes", std::uint64_t{1744} << 20},
            {"VramUnitBytes", std::uint64_t{16} << 20},
            {"VramApertureBytes", std::uint64_t{256} << 20},
            {"CuCount", std::uint64_t{8}},
            {"QuantumUs", std::uint64_t{6000}},
            {"MaxGapMs", std::uint64_t{60}},
            {"TableEntries", std::uint64_t{8}},
            {"TableCycleUs", std::uint64_t{48'000}},
            {"TableExact", true},
            {"Switches", std::uint64_t{123'456}},
            {"SwitchP50Ns", std::uint64_t{41'000}},
            {"SwitchP99Ns", std::uint64_t{97'500}},
            {"SwitchMaxNs", std::uint64_t{1'250'000}},
            {"EventsLost", std::uint64_t{0}},
            {"DeviceResets", std::uint64_t{0}}};
}

inline Properties vf_properties(std::uint64_t index, const std::string& name, double share) {
    const std::string number = std::to_string(index);
    return {{"Path", "/org/vgpu1/gpu/gpu0/vf/" + number},
            {"Target", "gpu0/vf" + number},
            {"Index", index},
            {"Name", name},
            {"Uuid", "00112233-4455-6677-8899-aabbccddee0" + number},
            {"State", std::string("ready")},
            {"LastError", std::string("none")},
            {"Socket", "/run/vgpu/gpu0/vf" + number + ".sock"},
            {"AssignmentMode", std::string(index == 3 ? "none" : "vfio-user")},
            {"ScrubOnRelease", index == 1},
            {"Attached", index != 3},
            {"Client", std::string(index == 3 ? "" : "qemu-system-x86 (pid 71)")},
            {"Owner", index == 3 ? std::string() : "slurm:" + number},
            {"OwnerGeneration", index == 3 ? std::uint64_t{0} : index + 4},
            {"LeaseExpires", index == 2 ? std::uint64_t{1'700'000'000} : std::uint64_t{0}},
            {"Orphan", std::string(index == 2 ? "the lease of 'slurm:2' (claim 6) is over" : "")},
            {"Condition", std::string()},
            {"Driver", std::string("6.1.0-26-amd64")},
            {"VramBytes", std::uint64_t{64} << 20},
            {"GuestFbUsageBytes", std::uint64_t{24} << 20},
            {"CuMask", std::uint64_t{0xff}},
            {"DoorbellPages", std::uint64_t{512}},
            {"Profile", std::string(index == 1 ? "large" : "")},
            {"Description", std::string(index == 1 ? "training, B\u00fcro 3" : "")},
            {"Weight", index * 100},
            {"QuantumUs", std::uint64_t{0}},
            {"MinPct", index == 1 ? 20.0 : 0.0},
            {"MaxPct", index == 1   ? 50.0
                       : index == 2 ? 12.5
                                    : 100.0},
            {"BurstMs", index == 1 ? 12.0 : 0.0},
            {"LatencyMs", index == 1 ? 10.0 : 0.0},
            {"MaxGapMs", index == 1 ? 40.0 : 0.0},
            {"PhaseMs", 0.0},
            {"PreemptTimeoutMs", index == 1 ? 250.0 : 0.0},
            {"Mode", std::string(index == 2 ? "strict" : "work-conserving")},
            {"PriorityClass", std::string(index == 3 ? "low" : "normal")},
            {"Throttled", index == 2},
            {"ThrottledNs", index == 2 ? std::uint64_t{3'400'000'000} : std::uint64_t{0}},
            {"ReservedNs", index == 1 ? std::uint64_t{2'345'678'901} : std::uint64_t{0}},
            {"ShareIdeal", share},
            {"ShareWindow", share + 0.004},
            {"ShareTotal", share - 0.001},
            {"LagQuanta", 0.31},
            {"MaxLagQuanta", 0.94},
            {"ServiceNs", std::uint64_t{12'345'678'901}},
            {"WaitP50Ns", std::uint64_t{6'291'456}},
            {"WaitP99Ns", std::uint64_t{14'680'064}},
            {"Switches", std::uint64_t{4321}},
            {"Overruns", std::uint64_t{1}},
            {"OverrunMaxNs", std::uint64_t{310'000}},
            {"Flrs", std::uint64_t{2}},
            {"GuestFlrs", std::uint64_t{1}},
            {"Hangs", std::uint64_t{0}},
            {"Faults", std::uint64_t{0}},
            {"BadPackets", std::uint64_t{0}},
            {"BadAccesses", std::uint64_t{0}},
            {"IllegalInstructions", std::uint64_t{0}},
            {"GuardLevel", std::uint64_t{0}},
            {"GuardFlrEvents", std::uint64_t{1}},
            {"GuardExclusiveEvents", std::uint64_t{4}},
            {"GuardExclusiveTimeoutEvents", std::uint64_t{0}},
            {"GuardInterruptEvents", std::uint64_t{17}}};
}

struct Counts {
    std::uint64_t total = 0, free = 0, claimed = 0, unavailable = 0;
};
inline Properties capacity_row(const std::string& gpu, const std::string& state,
                               const std::string& profile, const Counts& counts) {
    return {{"Gpu", gpu},
            {"GpuState", state},
            {"Profile", profile},
            {"Total", counts.total},
            {"Free", counts.free},
            {"Claimed", counts.claimed},
            {"Unavailable", counts.unavailable}};
}

/// What the agent of the first VF says.
inline Properties agent_properties() {
    return {{"Agent.Connected", true},
            {"Agent.Version", std::string("0.1.0")},
            {"Agent.LastSeenMs", std::uint64_t{1250}},
            {"Agent.Kernel", std::string("6.12.57+deb13-amd64")},
            {"Agent.Driver", std::string("amdgpu")},
            {"Agent.Rocr", std::string("1.13.0")},
            {"Agent.PciAddress", std::string("0000:00:05.0")},
            {"Agent.UniqueId", std::string("1d2c3b4a59687706")},
            {"Agent.Health", std::string("ok")},
            {"Agent.LastError", std::string()},
            {"Agent.Resets", std::uint64_t{1}},
            {"Agent.Errors", std::uint64_t{0}},
            {"Agent.VramTotalBytes", std::uint64_t{64} << 20},
            {"Agent.VramUsedBytes", std::uint64_t{24} << 20},
            {"Agent.Processes", std::uint64_t{2}},
            {"Agent.ProcessList", Words{"412 16777216 1 matmul", "413 65536 0 a b"}},
            {"Agent.Quiesced", false},
            {"Agent.Misbehaved", std::uint64_t{0}},
            {"Agent.Socket", std::string("/run/vgpu/gpu0/vf1.agent.sock")}};
}

class FakeService final : public Service {
public:
    Properties manager() override {
        return {{"Version", std::string("0.1.0")},
                {"ApiVersion", std::uint64_t{1}},
                {"ReadOnly", is_read_only},
                {"StateMessage", std::string(is_read_only ? "the state file x is damaged" : "")},
                {"StateGeneration", std::uint64_t{7}}};
    }
    std::vector<Properties> list_gpus_with(const std::string& names,
                                           std::uint32_t /*max_age_ms*/) override {
        fail_list();
        return only(names, gpus);
    }
    std::vector<Properties> list_vfs_with(const std::string& names,
                                          std::uint32_t /*max_age_ms*/) override {
        fail_list();
        names_asked = names;
        return only(names, vfs);
    }
    std::vector<Properties> capacity() override {
        fail_list();
        return {capacity_row("gpu0", "ok", "large", {.total = 1, .claimed = 1}),
                capacity_row("gpu0", "ok", "", {.total = 2, .free = 1, .claimed = 1}),
                capacity_row("gpu1", "pf-lost", "large", {.total = 4, .unavailable = 4})};
    }
    static std::vector<Properties> only(const std::string& names,
                                        const std::vector<Properties>& objects) {
        if (names.empty()) return objects;
        const std::string among = "," + names + ",Path,Target,";
        std::vector<Properties> listed;
        for (const Properties& object : objects) {
            Properties& one = listed.emplace_back();
            for (const auto& [name, value] : object)
                if (among.find("," + name + ",") != std::string::npos) one.emplace(name, value);
        }
        return listed;
    }
    Properties object(const std::string& path) override {
        ++objects_read;
        for (const auto* list : {&gpus, &vfs})
            for (const Properties& one : *list)
                if (std::get<std::string>(one.at("Path")) == path) return one;
        throw ServiceError("org.freedesktop.DBus.Error.UnknownObject", "no such object");
    }
    std::string resolve(const std::string& target) override {
        for (const auto* list : {&gpus, &vfs})
            for (const Properties& one : *list)
                if (std::get<std::string>(one.at("Target")) == target)
                    return std::get<std::string>(one.at("Path"));
        throw ServiceError("org.vgpu1.Error.NoSuchVf",
                           "VGPU-202: there is no GPU or VF '" + target + "'.");
    }
    std::string create_vf(const std::string& gpu, const Options& options) override {
        note("create " + gpu, options);
        return "/org/vgpu1/gpu/gpu0/vf/1";
    }
    void set_gpu(const std::string& path, const Options& options) override {
        note("set_gpu " + path, options);
    }
    void set_vf(const std::string& path, const Options& options) override {
        note("set_vf " + path, options);
    }
    std::uint64_t claim_vf(const std::string& path, const std::string& owner,
                           const Options& options) override {
        note("claim " + owner + " " + path, options);
        return 5;
    }
    void release_vf(const std::string& path, const std::string& owner, std::uint64_t generation,
                    const Options& options) override {
        note("release " + owner + " " + std::to_string(generation) + " " + path, options);
    }
    std::vector<Properties> assign_vfs(
        const std::string& owner, const std::vector<std::pair<std::string, std::string>>& selectors,
        const Options& options) override {
        std::string what = "assign " + owner;
        for (const auto& [by, value] : selectors) what += " " + by + ":" + value;
        note(what, options);
        return {};
    }
    void grant_vfs(const std::string& owner, std::uint32_t uid, std::uint32_t gid) override {
        note("grant " + owner + " " + std::to_string(uid) + ":" + std::to_string(gid), {});
    }
    std::uint64_t unassign_vfs(const std::string& owner) override {
        note("unassign " + owner, {});
        return 1;
    }
    std::uint64_t adopt_vfs(const std::string& owner, const Options& options) override {
        note("adopt " + owner, options);
        return 1;
    }
    void limit_calls(std::chrono::milliseconds limit) override { call_limit = limit; }
    void control(const std::string& path, VfAction action, const Options& options) override {
        note("act " + std::to_string(static_cast<int>(action)) + " " + path, options);
    }

    std::string start_job(const std::string& path, VfJob job, const Options& options) override {
        note("job " + std::to_string(static_cast<int>(job)) + " " + path, options);
        return "/org/vgpu1/job/3";
    }

    std::string plan(const std::string& config, const Options& options) override {
        note("plan " + std::to_string(config.size()) + " bytes", options);
        config_given = config;
        return plan_text;
    }
    std::string apply(const std::string& config, const Options& options) override {
        note("apply " + std::to_string(config.size()) + " bytes", options);
        config_given = config;
        return "/org/vgpu1/job/3";
    }
    std::string export_config(const Options& options) override {
        note("export", options);
        return R"({"profiles": {}, "configs": {"current": []}})"
               "\n";
    }
    std::string auto_config(const Options& options) override {
        note("auto", options);
        return R"({"profiles": {}, "configs": {"auto-4": []}})"
               "\n";
    }
    /// Tells of the job once in the middle and once at its end.
    std::optional<Properties> await_job(const std::string& path,
                                        const std::function<bool(const Properties&)>& is_enough,
                                        const std::vector<pollfd>& /*stop_on*/) override {
        asked.push_back("await " + path);
        const Properties middle{{"Kind", std::string("apply")},
                                {"State", std::string("running")},
                                {"Progress", 0.5},
                                {"Step", job_step},
                                {"CanCancel", can_cancel}};
        if (is_enough(middle)) return middle;
        if (is_interrupted) return std::nullopt;
        is_enough(job_end);
        return job_end;
    }

    std::vector<Properties> list_jobs() override { return jobs; }
    void cancel_job(const std::string& path) override { note("cancel " + path, {}); }

    std::vector<Properties> recent_events(std::uint64_t after, std::uint64_t limit) override {
        if (!is_there)
            throw ServiceError("org.freedesktop.DBus.Error.ServiceUnknown", "nobody owns it");
        std::vector<Properties> fresh;
        for (const Properties& event : events)
            if (std::get<std::uint64_t>(event.at("Seq")) > after) fresh.push_back(event);
        if (fresh.size() > limit)
            fresh.erase(fresh.begin(), fresh.end() - static_cast<std::ptrdiff_t>(limit));
        return fresh;
    }
    bool is_running() override { return running ? running() : true; }
    /// Plays the script; at its end the verb is stopped.
    BusChange wait_for_change(const std::vector<pollfd>&) override {
        if (script.empty()) return BusChange::Stopped;
        const Scene scene = std::move(script.front());
        script.erase(script.begin());
        if (scene.happens) scene.happens();
        return scene.changes;
    }
    std::string metrics() override { return "# TYPE vgpu_build info\n# EOF\n"; }
    RunTable run_table(const std::string& gpu_path) override {
        if (gpu_path.ends_with("gpu1"))
            throw ServiceError("org.vgpu1.Error.PfLost", "VGPU-601: gpu1: as the test wants.");
        return {.slices = {{.vf = 1, .quantum_us = 6000}, {.vf = 2, .quantum_us = 3000}},
                .generation = 42};
    }
    TracePiece read_trace(const std::string& gpu_path, std::uint64_t after) override {
        note("trace " + gpu_path + " " + std::to_string(after), {});
        if (after > 0 && std::exchange(is_trace_anew, false))
            throw ServiceError("org.vgpu1.Error.OutOfRange", "vgpud was restarted");
        const std::string rest =
            recorded_trace.substr(std::min<std::size_t>(after, recorded_trace.size()));
        return {.items = rest, .next = recorded_trace.size(), .has_gap = is_trace_late};
    }
    std::string dump(const std::string& gpu_path) override {
        note("dump " + gpu_path, {});
        return "the dump of " + gpu_path + "\n";
    }

    /// vgpud tells something.
    void tell(std::uint64_t vf, const std::string& kind, const std::string& text) {
        const std::uint64_t seq = ++told;
        events.push_back({{"Seq", seq},
                          {"TimeUs", std::uint64_t{1'700'000'000'000'000} + seq * 1'500'000},
                          {"Gpu", std::string("gpu0")},
                          {"Vf", vf},
                          {"Kind", kind},
                          {"Text", text}});
    }

    FakeService() { vfs.front().merge(agent_properties()); }

    std::vector<Properties> gpus{gpu_properties("gpu0", "ok"), gpu_properties("gpu1", "pf-lost")};
    std::vector<Properties> vfs{
        vf_properties(1, "train", 0.125), vf_properties(2, "inference-of-the-large-model", 0.25),
        vf_properties(3, "a-name-that-is-as-long-as-names-may-be-sixty-three-characters-x", 0.625)};
    bool is_read_only = false;
    std::string recorded_trace;
    bool is_trace_late = false;
    bool is_trace_anew = false;  ///< another vgpud is asked next for what follows
    std::string plan_text;       ///< what plan() answers
    std::string config_given;    ///< to plan() or apply(), the last one
    std::string job_step = "create gpu0/vf3 'c'";
    std::vector<Properties> jobs;
    Properties job_end{{"State", std::string("done")},
                       {"Progress", 1.0},
                       {"Step", std::string("done")},
                       {"Error", std::string()},
                       {"ErrorName", std::string()},
                       {"Report.ok", true},
                       {"Report.text", std::string("gfx900: a barrier")},
                       {"Report.duration_ms", std::uint64_t{812}}};
    bool can_cancel = true;       ///< the job
    bool is_interrupted = false;  ///< the wait for the job, in the middle
    std::vector<Properties> events;
    std::uint64_t told = 0;
    struct Scene {
        BusChange changes;
        std::function<void()> happens;
    };
    std::vector<Scene> script;      ///< what wait_for_change() answers
    bool is_there = true;           ///< recent_events() fails without
    std::function<bool()> running;  ///< what is_running() answers; empty: true
    std::vector<std::string> asked;
    int objects_read = 0, lists_read = 0;
    std::string names_asked;      ///< properties of the last list of VFs
    std::string error_name;       ///< what changing calls fail with
    std::string list_error_name;  ///< what the lists fail with
    std::chrono::milliseconds call_limit{0};

private:
    void fail_list() {
        ++lists_read;
        if (!list_error_name.empty())
            throw ServiceError(list_error_name, "no list, as the test wants.");
    }
    void note(std::string what, const Options& options) {
        if (!error_name.empty()) throw ServiceError(error_name, "VGPU-0: as the test wants.");
        for (const auto& [name, value] : options) {
            what += " " + name;
            if (const auto* number = std::get_if<std::uint64_t>(&value))
                what += "=" + std::to_string(*number);
            if (const auto* number = std::get_if<std::int64_t>(&value))
                what += "=" + std::to_string(*number);
            if (const auto* real = std::get_if<double>(&value)) what += fmt::format("={:g}", *real);
            if (const auto* text = std::get_if<std::string>(&value)) what += "=" + *text;
        }
        asked.push_back(std::move(what));
    }
};

}  // namespace vgpu::cli::testing
