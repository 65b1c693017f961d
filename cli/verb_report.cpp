// SPDX-License-Identifier: MIT
//
// vgpuctl report: writes an archive for a bug report. Works without vgpud, and lists the pieces
// that are missing.
#include "cli/bug_report.h"
#include "cli/host_collector.h"
#include "cli/progress.h"
#include "cli/verbs.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>
#include <array>
#include <chrono>
#include <cstdlib>

namespace vgpu::cli {

namespace {

/// The names that the report must hide: the host's, the user's and, under sudo, that of the user
/// who called sudo, because paths may contain that user's home directory.
Identity identity_here() {
    Identity identity;
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) == 0) identity.host = host.data();
    for (const char* variable : {"USER", "LOGNAME", "SUDO_USER"})
        if (const char* name = std::getenv(variable); name != nullptr)
            identity.users.emplace_back(name);
    if (const passwd* user = ::getpwuid(::getuid()); user != nullptr)
        identity.users.emplace_back(user->pw_name);
    return identity;
}

/// A file name for the archive, with the time in UTC. Omits the host's name, which is private.
std::string default_name() {
    const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    return fmt::format("vgpu-report-{:%Y%m%d-%H%M%S}.tar.gz", fmt::gmtime(now));
}

/// Exits with 0 even if pieces are missing. --json: vgpuctl-report-1.
class ReportVerb final : public Verb {
public:
    ReportVerb()
        : Verb({Group::Diagnose, "report", "write an archive for a bug report",
                "report -o report.tar.gz"}) {}
    void describe(CLI::App& command) override {
        command.add_option("-o,--output", file_, "file to write (default: named after the time)")
            ->type_name("FILE");
        command.add_option("--config", configuration_, "configuration of vgpud")
            ->type_name("FILE")
            ->capture_default_str();
        command.add_option("--run-dir", host_sources_.run_dir, "run_dir of vgpud")
            ->capture_default_str();
    }

    ExitCode start(const VerbContext& context) override {
        const std::string file = file_.empty() ? default_name() : file_;
        const ReportSources sources{.connect = context.connect,
                                    .facts = HostCollector(host_sources_).collect(context.connect),
                                    .identity = identity_here(),
                                    .configuration = configuration_};
        const BugReport report = [&] {
            const Spinner spinner(context, "collect the report");
            return BugReport(sources);
        }();
        write_archive(file, "vgpu-report", report.entries());
        print(context, file, report);
        return ExitCode::Ok;
    }

private:
    static void print(const VerbContext& context, const std::string& file,
                      const BugReport& report) {
        nlohmann::ordered_json pieces = nlohmann::ordered_json::array();
        nlohmann::ordered_json missing = nlohmann::ordered_json::array();
        std::string text = fmt::format("{}: {} pieces, {} missing\n", file, report.pieces().size(),
                                       report.missing().size());
        for (const auto& [name, content] : report.pieces()) pieces.push_back(name);
        for (const BugReport::Missing& one : report.missing()) {
            missing.push_back({{"piece", one.piece}, {"why", one.why}});
            text += fmt::format("missing: {}: {}\n", one.piece, one.why);
        }
        context.print(
            "vgpuctl-report-1",
            {{"file", file}, {"pieces", std::move(pieces)}, {"missing", std::move(missing)}},
            text + "Review it before you send it; README.txt describes its content.\n");
    }

    HostSources host_sources_;
    std::string file_;
    std::string configuration_ = "/etc/vgpu/vgpud.json";
};

}  // namespace

const MakeVerb make_report_verb = make_verb<ReportVerb>;

}  // namespace vgpu::cli
