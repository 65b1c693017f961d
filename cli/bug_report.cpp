// SPDX-License-Identifier: MIT
#include "cli/bug_report.h"

#include "cli/diagnosis.h"
#include "cli/format.h"
#include "daemon/simulator/recording.h"
#include "text/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <sstream>
#include <system_error>

namespace vgpu::cli {

namespace {

constexpr std::string_view kReadme =
    R"(A bug report of vgpu, made by 'vgpuctl report'.

versions.json        vgpuctl, vgpud, kernel release, QEMU
doctor.json          what 'vgpuctl doctor' finds
list.json            properties of every GPU and VF, with names, UUIDs, descriptions
events.json          the events that vgpud keeps
run-table/GPU.json   the run table in force
trace/GPU.trace      recent scheduling, for 'vgpuctl trace show FILE'
dump/GPU.txt         the PF core's report; requires the right to control VFs
metrics.txt          the metrics
configuration.json   vgpud's configuration; possible secrets are removed
kernel-messages.txt  the kernel's lines about vgpu_pf

Not in it: the environment, contents of VRAM and of guests' memory, processes
of guests. Names of the host and of users are replaced by HOST and USER.
Review it before you send it.
)";

[[noreturn]] void unreadable(const std::string& path, int error) {
    throw ServiceError("org.vgpu1.Error.System",
                       path + ": " + std::generic_category().message(error));
}

/// The redacted configuration. Throws if the file is not JSON, because vgpuctl cannot find secrets
/// in other text.
std::string configuration_of(const std::string& path) {
    const auto text = text::whole_file(path);
    if (!text) unreadable(path, text.error());
    const auto redacted = redacted_configuration(*text);
    if (!redacted)
        throw ServiceError("org.vgpu1.Error.System",
                           path + " is not JSON, so its secrets cannot be found");
    return *redacted;
}

/// The kernel log, in the format of /dev/kmsg. Does not wait for new records. Throws ServiceError
/// if the log is unreadable.
std::string kernel_log_of(const std::string& path) {
    // larger than the kernel's default log buffer; a read returns one record
    constexpr std::size_t kMax = 4u << 20;
    const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) unreadable(path, errno);
    std::string text;
    std::array<char, 8192> record{};
    while (text.size() < kMax) {
        const ssize_t got = ::read(fd, record.data(), record.size());
        // EPIPE: the kernel has overwritten the record; the next read returns a later one
        if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;
        if (got <= 0) break;
        text.append(record.data(), static_cast<std::size_t>(got));
    }
    ::close(fd);
    return text;
}

/// Only the lines about vgpu_pf and vgpu-pf, because other lines may name devices, users and
/// addresses.
std::string module_lines(const std::string& log) {
    std::istringstream lines(log);
    std::string kept;
    for (std::string line; std::getline(lines, line);)
        if (line.find("vgpu_pf") != std::string::npos || line.find("vgpu-pf") != std::string::npos)
            kept += line + "\n";
    return kept.empty() ? "(no line about vgpu_pf)\n" : kept;
}

/// Removes guests' process lists, because they are private.
nlohmann::ordered_json without_processes(nlohmann::ordered_json vfs) {
    for (auto& vf : vfs)
        if (vf.contains("agent")) vf["agent"].erase("process_list");
    return vfs;
}

/// The run table. Its times are planned, not measured.
nlohmann::ordered_json table_json(const RunTable& table) {
    nlohmann::ordered_json entries = nlohmann::ordered_json::array();
    for (const RunTable::Slice& slice : table.slices)
        entries.push_back({{"vf", slice.vf}, {"quantum_us", slice.quantum_us}});
    return {{"generation", table.generation}, {"entries", std::move(entries)}};
}

/// Replaces names in each text of the recording separately, because the recording (CBOR) stores the
/// length of a text before the text. Throws ServiceError if `trace` is empty or damaged.
std::string trace_without_names(const std::string& trace, const Identity& identity) {
    if (trace.empty())
        throw ServiceError("org.vgpu1.Error.System", "vgpud has recorded nothing of this GPU yet");
    auto replaced = simulator::with_texts(
        trace, [&](const std::string& text) { return without_names(text, identity); });
    if (!replaced) throw ServiceError("org.vgpu1.Error.System", replaced.error());
    return *std::move(replaced);
}

std::string versions_of(const HostFacts& facts) {
    return document_text("vgpuctl-report-versions-1", {{"vgpuctl", facts.vgpuctl_version},
                                                       {"vgpud", json_of(facts.service.manager)},
                                                       {"kernel", facts.kernel_release},
                                                       {"qemu", facts.qemu_version.value_or("")}});
}

}  // namespace

BugReport::BugReport(const ReportSources& sources) : sources_(sources) {
    add_without_names("versions.json", [this] { return versions_of(sources_.facts); });
    add_without_names("doctor.json", [this] {
        return document_text("vgpuctl-doctor-1", findings_json(diagnose(sources_.facts)));
    });
    add_without_names("configuration.json",
                      [this] { return configuration_of(sources_.configuration); });
    add_without_names("kernel-messages.txt",
                      [this] { return module_lines(kernel_log_of(sources_.kernel_log)); });
    try {
        const auto service = sources_.connect();
        service->limit_calls(kServiceTimeout);
        add_vgpud_pieces(*service);
    } catch (const ServiceError& error) {
        leave_out("vgpud's data", error);
    }
}

/// Adds the pieces that vgpud supplies. Throws ServiceError if list_gpus() fails; the report then
/// lacks all these pieces.
void BugReport::add_vgpud_pieces(Service& service) {
    const std::vector<Properties> gpus = service.list_gpus();
    add_without_names("list.json", [&] {
        return document_text(
            "vgpuctl-list-1",
            {{"gpus", json_of(gpus)}, {"vfs", without_processes(json_of(service.list_vfs()))}});
    });
    add_without_names("events.json", [&] {
        constexpr std::uint64_t kAll = 512;  // vgpud keeps no more events
        return document_text("vgpuctl-report-events-1",
                             {{"events", json_of(service.recent_events(0, kAll))}});
    });
    add_without_names("metrics.txt", [&] { return service.metrics(); });
    for (const Properties& gpu : gpus) add_gpu(service, gpu);
}

/// Adds the pieces of one GPU. Each piece has its own call of vgpud, so a PF core that hangs
/// affects only the pieces of this GPU.
void BugReport::add_gpu(Service& service, const Properties& gpu) {
    const std::string id = text_of(gpu, "Id"), path = text_of(gpu, "Path");
    add_without_names(fmt::format("run-table/{}.json", id), [&] {
        return document_text("vgpuctl-report-run-table-1", table_json(service.run_table(path)));
    });
    add_unchanged(fmt::format("trace/{}.trace", id), [&] {
        return trace_without_names(service.read_trace(path, 0).items, sources_.identity);
    });
    add_without_names(fmt::format("dump/{}.txt", id), [&] { return service.dump(path); });
}

/// Adds the text that `make` returns, with the names of the host and of users replaced.
void BugReport::add_without_names(const std::string& name,
                                  const std::function<std::string()>& make) {
    add_unchanged(name, [&] { return without_names(make(), sources_.identity); });
}

/// Adds the text that `make` returns, which must not contain names of the host or of users. If
/// `make` throws ServiceError, the piece is missing.
void BugReport::add_unchanged(const std::string& name, const std::function<std::string()>& make) {
    try {
        pieces_.emplace_back(name, make());
    } catch (const ServiceError& error) {
        leave_out(name, error);
    }
}

void BugReport::leave_out(const std::string& name, const ServiceError& error) {
    missing_.push_back({name, without_names(error.what(), sources_.identity)});
}

std::vector<ArchiveEntry> BugReport::entries() const {
    std::vector<ArchiveEntry> all{{"README.txt", std::string(kReadme)}};
    all.insert(all.end(), pieces_.begin(), pieces_.end());
    std::string text;
    for (const Missing& one : missing_) text += fmt::format("{}: {}\n", one.piece, one.why);
    if (!missing_.empty()) all.emplace_back("MISSING.txt", text);
    return all;
}

}  // namespace vgpu::cli
