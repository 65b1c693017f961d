// SPDX-License-Identifier: MIT
//
// vgpuctl show TARGET: prints everything about one GPU or VF.
#include "cli/qos_options.h"
#include "cli/verbs.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <array>
#include <sstream>

namespace vgpu::cli {

namespace {

/// Prints one property, given the object's properties and the property's name. Names end with their
/// unit (Ns, Us, Ms, Bytes), which determines the formatter.
using Formatter = std::string (*)(const Properties&, const std::string&);

std::string plain(const Properties& from, const std::string& name) {
    return text_of(from, name);
}
std::string size(const Properties& from, const std::string& name) {
    return size_of(from, name);
}
std::string share(const Properties& from, const std::string& name) {
    return percent_text(real_of(from, name));
}
std::string lag(const Properties& from, const std::string& name) {
    return lag_text(real_of(from, name)) + " quanta";
}
std::string duration(const Properties& from, const std::string& name) {
    return duration_of(from, name);
}
/// 0 means that the GPU's quantum applies.
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

/// "5", "5 (kept)"
std::string claim(const Properties& from, const std::string& name) {
    return plain(from, name) + (flag_of(from, "OwnerKept") ? " (kept)" : "");
}

/// When the lease of the claim ends; "-" without a claim.
std::string lease_end(const Properties& from, const std::string& name) {
    if (number_of(from, "OwnerGeneration") == 0) return "-";
    const auto ends = static_cast<std::time_t>(number_of(from, name));
    return ends == 0 ? "never" : fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(ends));
}

/// A row of the page. Rows are printed in their order; a missing property is "-".
struct Line {
    const char* title;
    const char* property;
    Formatter format;
};

constexpr std::array kVfLines{
    Line{"Target", "Target", plain},
    Line{"Name", "Name", plain},
    Line{"UUID", "Uuid", plain},
    Line{"State", "State", plain},
    Line{"Last error", "LastError", plain},
    Line{"Socket", "Socket", plain},
    Line{"Handover", "Handover", plain},
    Line{"Attached", "Attached", plain},
    Line{"Client", "Client", plain},
    Line{"Owner", "Owner", plain},
    Line{"Owner's name", "OwnerName", plain},
    Line{"Claim", "OwnerGeneration", claim},
    Line{"Lease ends", "LeaseExpires", lease_end},
    Line{"Emptied at", "Scrub", plain},
    Line{"Orphan", "Orphan", plain},
    Line{"Trouble", "Trouble", plain},
    Line{"Guest driver", "Driver", plain},
    Line{"VRAM", "VramBytes", size},
    Line{"VRAM used", "GuestFbUsageBytes", size},
    Line{"Compute units", "CuMask", mask},
    Line{"Doorbell pages", "DoorbellPages", plain},
    Line{"Profile", "Profile", plain},
    Line{"Weight", "Weight", plain},
    Line{"Quantum", "QuantumUs", quantum},
    Line{"Reserved", "MinPct", reservation},
    Line{"Cap", "MaxPct", cap},
    Line{"Longest gap", "MaxGapMs", gap},
    Line{"Leaves within", "PreemptTimeoutMs", time_out},
    Line{"Without work", "Mode", plain},
    Line{"Band", "Band", plain},
    Line{"Share, ideal now", "ShareIdeal", share},
    Line{"Share, last 10 s", "ShareWindow", share},
    Line{"Share, in all", "ShareTotal", share},
    Line{"Lag", "LagQuanta", lag},
    Line{"Lag, worst", "MaxLagQuanta", lag},
    Line{"Service", "ServiceNs", duration},
    Line{"Service, reserved", "ReservedNs", duration},
    Line{"Held by its cap", "CappedNs", duration},
    Line{"Waits, median", "WaitP50Ns", duration},
    Line{"Waits, 99 %", "WaitP99Ns", duration},
    Line{"Switches", "Switches", plain},
    Line{"Overruns", "Overruns", plain},
    Line{"Overrun, worst", "OverrunMaxNs", duration},
    Line{"Resets", "Flrs", plain},
    Line{"Resets by guest", "GuestFlrs", plain},
    Line{"Hangs", "Hangs", plain},
    Line{"Faults", "Faults", plain},
    Line{"Bad packets", "BadPackets", plain},
    Line{"Bad accesses", "BadAccesses", plain},
    Line{"Illegal instr.", "IllegalInstructions", plain},
    Line{"Guard level", "GuardLevel", plain},
    Line{"Guard: resets", "GuardFlrEvents", plain},
    Line{"Guard: exclusive", "GuardExclusiveEvents", plain},
    Line{"Guard: kept it", "GuardExclusiveTimeoutEvents", plain},
    Line{"Guard: interrupts", "GuardInterruptEvents", plain},
};

/// Rows about the agent in the guest, printed if an agent was ever seen.
constexpr std::array kAgentLines{
    Line{"Agent", "Agent.Version", plain},
    Line{"Agent connected", "Agent.Connected", plain},
    Line{"Agent seen", "Agent.LastSeenMs", ago},
    Line{"Guest kernel", "Agent.Kernel", plain},
    Line{"Guest's driver", "Agent.Driver", plain},
    Line{"Guest's ROCr", "Agent.Rocr", plain},
    Line{"Guest's address", "Agent.PciAddress", plain},
    Line{"Unique id", "Agent.UniqueId", plain},
    Line{"Health", "Agent.Health", plain},
    Line{"Guest's resets", "Agent.Resets", plain},
    Line{"Guest's errors", "Agent.Errors", plain},
    Line{"Guest's VRAM", "Agent.VramTotalBytes", size},
    Line{"Guest's VRAM used", "Agent.VramUsedBytes", size},
    Line{"Processes", "Agent.Processes", plain},
    Line{"Quiesced", "Agent.Quiesced", plain},
    Line{"Misbehaved", "Agent.Misbehaved", plain},
};

constexpr std::array kGpuLines{
    Line{"GPU", "Id", plain},
    Line{"State", "State", plain},
    Line{"Message", "StateMessage", plain},
    Line{"PF core", "Home", plain},
    Line{"uapi", "Uapi", plain},
    Line{"softgpu pid", "SoftgpuPid", plain},
    Line{"vgpu-pf pid", "PfPid", plain},
    Line{"VFs", "TotalVfs", plain},
    Line{"VRAM", "VramBytes", size},
    Line{"VRAM free", "VramFreeBytes", size},
    Line{"VRAM unit", "VramUnitBytes", size},
    Line{"VRAM per VF, most", "VramApertureBytes", size},
    Line{"Compute units", "CuCount", plain},
    Line{"Quantum", "QuantumUs", microseconds},
    Line{"Longest gap, ms", "MaxGapMs", plain},
    Line{"Table entries", "TableEntries", plain},
    Line{"Table cycle", "TableCycleUs", microseconds},
    Line{"Table exact", "TableExact", plain},
    Line{"Switches", "Switches", plain},
    Line{"Switch p50", "SwitchP50Ns", duration},
    Line{"Switch p99", "SwitchP99Ns", duration},
    Line{"Switch, worst", "SwitchMaxNs", duration},
    Line{"Events lost", "EventsLost", plain},
    Line{"Whole resets", "WholeResets", plain},
};

/// An unknown property is "-", independent of the formatter.
std::string value_of(const Line& line, const Properties& properties) {
    return properties.contains(line.property) ? line.format(properties, line.property) : "-";
}

/// Wraps a long value below its column.
template <std::size_t N>
void print(std::ostream& out, const std::array<Line, N>& lines, const Properties& properties) {
    constexpr std::size_t kTitle = 19;
    for (const Line& line : lines)
        out << fmt::format("{:<{}}{}", std::string(line.title) + ":", kTitle,
                           wrapped_text(value_of(line, properties), kTitle, kTitle));
}

/// "PID VRAM-BYTES QUEUES COMM" as a line.
/// COMM comes last, since it may contain blanks; it is cut, since it may be long.
std::string process_line(const std::string& process) {
    std::istringstream words(process);
    std::uint64_t vram_bytes = 0;
    std::string pid, queues, comm;
    words >> pid >> vram_bytes >> queues;
    std::getline(words >> std::ws, comm);
    return fmt::format("  pid {}: {}, {}, {} queues\n", pid, comm.substr(0, 16),
                       size_text(vram_bytes), queues);
}

/// Facts of the host come first, because the agent's facts cannot be trusted.
void print_vf(std::ostream& out, const Properties& vf) {
    print(out, kVfLines, vf);
    if (text_of(vf, "Agent.Version") == "-") {
        out << "Agent:             none seen\n";
        return;
    }
    print(out, kAgentLines, vf);
    const auto list = vf.find("Agent.ProcessList");
    if (list == vf.end()) return;
    if (const auto* processes = std::get_if<Words>(&list->second))
        for (const std::string& process : *processes) out << process_line(process);
}

/// --json: vgpuctl-show-1, with every property of vgpud, including those that no line shows.
class ShowVerb final : public Verb {
public:
    [[nodiscard]] std::string name() const override { return "show"; }
    [[nodiscard]] std::string summary() const override { return "everything about a GPU or VF"; }
    void describe(CLI::App& command) override {
        command.add_option("TARGET", target_, "gpu0, gpu0/vf3, a VF's name or UUID")->required();
    }

    ExitCode run(Invocation& invocation) override {
        const std::string path = invocation.service.resolve(target_);
        const bool is_vf = is_vf_path(path);
        const auto list = is_vf ? invocation.service.list_vfs() : invocation.service.list_gpus();
        const Properties& one = with_path(list, path);
        if (invocation.output == Output::Json)
            invocation.out << document_text("vgpuctl-show-1",
                                            {{is_vf ? "vf" : "gpu", json_of(one)}});
        else if (is_vf)
            print_vf(invocation.out, one);
        else
            print(invocation.out, kGpuLines, one);
        return ExitCode::Ok;
    }

private:
    std::string target_;
};

}  // namespace

std::unique_ptr<Verb> make_show_verb() {
    return std::make_unique<ShowVerb>();
}

}  // namespace vgpu::cli
