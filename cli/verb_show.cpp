// SPDX-License-Identifier: MIT
//
// vgpuctl show TARGET: prints the properties of one GPU or VF, one a line. With --json, also prints
// the properties that have no line.
#include "cli/verbs.h"
#include "cli/vf_options.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <array>
#include <map>
#include <span>
#include <sstream>
#include <utility>

namespace vgpu::cli {

namespace {

std::string lag(const Properties& from, const std::string& name) {
    return lag_text(real_of(from, name)) + " quanta";
}
/// The quantum of a VF; 0 means that the GPU's quantum applies.
std::string quantum(const Properties& from, const std::string& name) {
    const std::uint64_t us = number_of(from, name);
    return us == 0 ? "the GPU's" : fmt::format("{} us", us);
}
std::string microseconds(const Properties& from, const std::string& name) {
    return fmt::format("{} us", number_of(from, name));
}
std::string reservation(const Properties& from, const std::string&) {
    return reservation_text(from);
}
std::string cap(const Properties& from, const std::string&) {
    return cap_text(from);
}
std::string gap(const Properties& from, const std::string& name) {
    const double ms = real_of(from, name);
    return ms > 0 ? fmt::format("{:g} ms", ms) : "the GPU's";
}
std::string time_out(const Properties& from, const std::string& name) {
    const double ms = real_of(from, name);
    return ms > 0 ? fmt::format("{:g} ms", ms) : "as provisioned";
}
std::string ago(const Properties& from, const std::string& name) {
    return fmt::format("{} ms ago", number_of(from, name));
}
std::string mask(const Properties& from, const std::string& name) {
    const std::uint64_t bits = number_of(from, name);
    return bits == 0 ? "all" : fmt::format("{:#x}", bits);
}

/// The generation of the claim: "5", "5 (persistent)".
std::string claim(const Properties& from, const std::string& name) {
    return text_of(from, name) + (flag_of(from, "OwnerPersistent") ? " (persistent)" : "");
}

/// The end of the lease; "-" without a claim.
std::string lease_end(const Properties& from, const std::string& name) {
    if (number_of(from, "OwnerGeneration") == 0) return "-";
    const auto ends = static_cast<std::time_t>(number_of(from, name));
    return ends == 0 ? "never" : fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(ends));
}

/// A line of the page. The arrays of lines below are in print order. A missing property is "-".
struct Line {
    const char* title;
    const char* property;
    Formatter format;
};

constexpr std::array kVfLines{
    Line{"Target", "Target", text_of},
    Line{"Name", "Name", text_of},
// one line for each setting of the kind VF_TEXT; the settings of other kinds are listed below
#define VF_SETTING(...)
#define VF_TEXT(key, member, section, kind, property, help) Line{#property, #property, text_of},
#include "schemas/vf_settings.def"
    Line{"UUID", "Uuid", text_of},
    Line{"State", "State", text_of},
    Line{"Last error", "LastError", text_of},
    Line{"Address", "Address", text_of},
    Line{"vGPU type", "VgpuType", text_of},
    Line{"Socket", "Socket", text_of},
    Line{"Assignment mode", "AssignmentMode", text_of},
    Line{"Attached", "Attached", text_of},
    Line{"Client", "Client", text_of},
    Line{"Owner", "Owner", text_of},
    Line{"Owner name", "OwnerName", text_of},
    Line{"Claim", "OwnerGeneration", claim},
    Line{"Lease ends", "LeaseExpires", lease_end},
    Line{"Scrub on release", "ScrubOnRelease", text_of},
    Line{"Orphan", "Orphan", text_of},
    Line{"Condition", "Condition", text_of},
    Line{"Guest driver", "Driver", text_of},
    Line{"VRAM", "VramBytes", size_of},
    Line{"VRAM used", "GuestFbUsageBytes", size_of},
    Line{"Compute units", "CuMask", mask},
    Line{"Doorbell pages", "DoorbellPages", text_of},
    Line{"Profile", "Profile", text_of},
    Line{"Weight", "Weight", text_of},
    Line{"Quantum", "QuantumUs", quantum},
    Line{"Reserved", "MinPct", reservation},
    Line{"Cap", "MaxPct", cap},
    Line{"Longest gap", "MaxGapMs", gap},
    Line{"Preempt timeout", "PreemptTimeoutMs", time_out},
    Line{"Mode", "Mode", text_of},
    Line{"Priority class", "PriorityClass", text_of},
    Line{"Share, ideal now", "ShareIdeal", percent_of},
    Line{"Share, last 10 s", "ShareWindow", percent_of},
    Line{"Share, total", "ShareTotal", percent_of},
    Line{"Lag", "LagQuanta", lag},
    Line{"Lag, worst", "MaxLagQuanta", lag},
    Line{"Quantum in force", "DriverQuantumUs", microseconds},
    Line{"Longest wait", "WorstWaitUs", microseconds},
    Line{"Service", "ServiceNs", duration_of},
    Line{"Service, reserved", "ReservedNs", duration_of},
    Line{"Throttled", "ThrottledNs", duration_of},
    Line{"Waits, median", "WaitP50Ns", measured_of},
    Line{"Waits, 99 %", "WaitP99Ns", measured_of},
    Line{"Switches", "Switches", text_of},
    Line{"Overruns", "Overruns", text_of},
    Line{"Overrun, worst", "OverrunMaxNs", measured_of},
    Line{"Resets", "Flrs", text_of},
    Line{"Resets by guest", "GuestFlrs", text_of},
    Line{"Hangs", "Hangs", text_of},
    Line{"Faults", "Faults", text_of},
    Line{"Bad packets", "BadPackets", text_of},
    Line{"Bad accesses", "BadAccesses", text_of},
    Line{"Illegal instr.", "IllegalInstructions", text_of},
    Line{"Guard level", "GuardLevel", text_of},
    Line{"Guard: resets", "GuardFlrEvents", text_of},
    Line{"Guard: exclusive", "GuardExclusiveEvents", text_of},
    Line{"Guard: timeouts", "GuardExclusiveTimeoutEvents", text_of},
    Line{"Guard: interrupts", "GuardInterruptEvents", text_of},
};

/// Lines of a VF whose guest has, or had, an agent.
constexpr std::array kAgentLines{
    Line{"Agent", "Agent.Version", text_of},
    Line{"Agent connected", "Agent.Connected", text_of},
    Line{"Agent seen", "Agent.LastSeenMs", ago},
    Line{"Guest kernel", "Agent.Kernel", text_of},
    Line{"Guest's driver", "Agent.Driver", text_of},
    Line{"Guest's ROCr", "Agent.Rocr", text_of},
    Line{"Guest's address", "Agent.PciAddress", text_of},
    Line{"Unique id", "Agent.UniqueId", text_of},
    Line{"Health", "Agent.Health", text_of},
    Line{"Guest's resets", "Agent.Resets", text_of},
    Line{"Guest's errors", "Agent.Errors", text_of},
    Line{"Guest's VRAM", "Agent.VramTotalBytes", size_of},
    Line{"Guest's VRAM used", "Agent.VramUsedBytes", size_of},
    Line{"Processes", "Agent.Processes", text_of},
    Line{"Quiesced", "Agent.Quiesced", text_of},
    Line{"Misbehaved", "Agent.Misbehaved", text_of},
};

constexpr std::array kGpuLines{
    Line{"GPU", "Id", text_of},
    Line{"State", "State", text_of},
    Line{"Message", "StateMessage", text_of},
    Line{"Driver", "Driver", text_of},
    Line{"Managed", "Manage", text_of},
    Line{"Address", "Address", text_of},
    Line{"PF core", "Platform", text_of},
    Line{"uapi", "Uapi", text_of},
    Line{"softgpu pid", "SoftgpuPid", text_of},
    Line{"vgpu-pf pid", "PfPid", text_of},
    Line{"VFs", "TotalVfs", text_of},
    Line{"VRAM", "VramBytes", size_of},
    Line{"VRAM free", "VramFreeBytes", size_of},
    Line{"VRAM unit", "VramUnitBytes", size_of},
    Line{"VRAM per VF, max", "VramApertureBytes", size_of},
    Line{"Compute units", "CuCount", text_of},
    Line{"Quantum", "QuantumUs", microseconds},
    Line{"Longest gap, ms", "MaxGapMs", text_of},
    Line{"Table entries", "TableEntries", text_of},
    Line{"Table cycle", "TableCycleUs", microseconds},
    Line{"Table exact", "TableExact", text_of},
    Line{"Switches", "Switches", text_of},
    Line{"Switch p50", "SwitchP50Ns", measured_of},
    Line{"Switch p99", "SwitchP99Ns", measured_of},
    Line{"Switch, worst", "SwitchMaxNs", measured_of},
    Line{"Events lost", "EventsLost", text_of},
    Line{"Device resets", "DeviceResets", text_of},
};

/// "Title:             value". Long values wrap within their column.
std::string line_of(std::string_view title, const std::string& value) {
    constexpr std::size_t kTitle = 19;
    return fmt::format("{:<{}}{}", fmt::format("{}:", title), kTitle,
                       wrapped_text(value, kTitle, kTitle));
}

std::string page_of(std::span<const Line> lines, const Properties& properties) {
    std::string text;
    for (const Line& line : lines)
        text += line_of(line.title, value_of(properties, line.property, line.format));
    return text;
}

/// The changes that a GPU's driver makes only under a condition, only approximately, or not at all.
/// There is one line for each title below, with changes such as "quantum_us (steps of 1000)".
std::string abilities_text(const Properties& gpu) {
    constexpr std::array kTitles{
        std::pair{"vf-idle", "With the VF idle"}, std::pair{"all-idle", "With all VFs idle"},
        std::pair{"reload", "After a reload"},    std::pair{"reboot", "After a reboot"},
        std::pair{"approximate", "Approximated"}, std::pair{"never", "Not offered"}};
    constexpr std::string_view kPrefix = "Abilities.", kSuffix = ".needs";
    std::map<std::string, Words> by_needs;
    for (auto at = gpu.lower_bound(std::string(kPrefix));
         at != gpu.end() && at->first.starts_with(kPrefix); ++at) {
        if (!at->first.ends_with(kSuffix)) continue;
        const std::string ability = at->first.substr(0, at->first.size() - kSuffix.size());
        const std::uint64_t unit = number_of(gpu, ability + ".unit");
        const std::string needs = text_of(gpu, at->first);
        by_needs[needs].push_back(ability.substr(kPrefix.size()) +
                                  (unit > 1 ? fmt::format(" (steps of {})", unit) : ""));
        if (needs != "never" && flag_of(gpu, ability + ".is_approximate"))
            by_needs["approximate"].push_back(ability.substr(kPrefix.size()));
    }
    std::string text;
    for (const auto& [needs, title] : kTitles)
        if (const auto at = by_needs.find(needs); at != by_needs.end())
            text += line_of(title, fmt::format("{}", fmt::join(at->second, ", ")));
    return text;
}

/// The line that says how the driver keeps the VF's contract: "weight approximated, quantum_us
/// kept". "" if vgpud does not report this.
std::string contract_text(const Properties& vf) {
    constexpr std::string_view kPrefix = "Contract.";
    Words words;
    for (auto at = vf.lower_bound(std::string(kPrefix));
         at != vf.end() && at->first.starts_with(kPrefix); ++at)
        words.push_back(at->first.substr(kPrefix.size()) + " " + text_of(vf, at->first));
    return words.empty() ? "" : line_of("Contract", fmt::format("{}", fmt::join(words, ", ")));
}

/// The line of a process, which vgpud reports as "PID BYTES QUEUES COMM". COMM comes last, because
/// it may contain blanks; the line shows its first 16 bytes.
std::string process_line(const std::string& process) {
    std::istringstream words(process);
    std::uint64_t vram_bytes = 0;
    std::string pid, queues, comm;
    words >> pid >> vram_bytes >> queues;
    std::getline(words >> std::ws, comm);
    return fmt::format("  pid {}: {}, {}, {} queues\n", pid, comm.substr(0, 16),
                       size_text(vram_bytes), queues);
}

/// Prints the host's facts before the agent's, because the agent's facts cannot be trusted.
std::string vf_page(const Properties& vf) {
    std::string text = page_of(kVfLines, vf) + contract_text(vf);
    if (text_of(vf, "Agent.Version") == "-") return text + "Agent:             none seen\n";
    text += page_of(kAgentLines, vf);
    const auto list = vf.find("Agent.ProcessList");
    if (list == vf.end()) return text;
    if (const auto* processes = std::get_if<Words>(&list->second))
        for (const std::string& process : *processes) text += process_line(process);
    return text;
}

/// --json: vgpuctl-show-1, with every property that vgpud reports.
class ShowVerb final : public Verb {
public:
    ShowVerb()
        : Verb({Group::State, "show", "show everything about a GPU or VF", "show gpu0/vf1"}) {}
    void describe(CLI::App& command) override {
        command.add_option("TARGET", target_, "gpu0, or a VF as gpu0/vf3, its name or UUID")
            ->required();
    }

    ExitCode run(Invocation& invocation) override {
        const std::string path = invocation.service.resolve(target_);
        const bool is_vf = is_vf_path(path);
        const Properties object = invocation.service.object(path);
        invocation.print(
            "vgpuctl-show-1", {{is_vf ? "vf" : "gpu", json_of(object)}},
            is_vf ? vf_page(object) : page_of(kGpuLines, object) + abilities_text(object));
        return ExitCode::Ok;
    }

private:
    std::string target_;
};

}  // namespace

const MakeVerb make_show_verb = make_verb<ShowVerb>;

}  // namespace vgpu::cli
