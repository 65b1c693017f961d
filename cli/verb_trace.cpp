// SPDX-License-Identifier: MIT
//
// vgpuctl trace ACTION FILE: makes or reads a recording of the inputs and decisions of a GPU's
// scheduler. The actions, of which only record calls vgpud:
//   record   writes what vgpud has recorded and, with --seconds or --follow, keeps recording
//   show     prints figures of a recording
//   replay   plans again from the recorded events, with this build's planner, and compares the
//            run tables
//   export   converts a recording to a trace for Perfetto (chrome), a picture (svg), or a scenario
//            for vgpuctl simulate
#include "cli/desired_document.h"
#include "cli/interruption.h"
#include "cli/number_options.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "cli/vgpud_watch.h"
#include "daemon/simulator/milliseconds.h"
#include "daemon/simulator/recording_export.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <ostream>

namespace vgpu::cli {

namespace {

using simulator::RecordedFigures;
using simulator::RecordedVf;
using simulator::Recording;
using simulator::Replay;

constexpr const char* kBadRecording = "org.vgpu1.Error.BadConfiguration";
constexpr std::chrono::milliseconds kReadInterval{500};

/// The output of an action: the file `path`, or `out` if `path` is "-". Throws System if the file
/// cannot be written.
class Sink {
public:
    Sink(const std::string& path, std::ostream& out) : path_(path), out_(out) {
        if (path_ == "-") return;
        file_.open(path_, std::ios::binary | std::ios::trunc);
        check();
    }
    void write(const std::string& bytes) {
        std::ostream& to = path_ == "-" ? out_ : file_;
        to << bytes << std::flush;
        if (path_ != "-") check();
    }

private:
    void check() const {
        if (!file_)
            throw ServiceError("org.vgpu1.Error.System",
                               fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
    }

    std::string path_;
    std::ostream& out_;
    std::ofstream file_;
};

/// A VF's part of the service of all VFs, 0 to 1, without idle time; 0 if no VF got service.
double share_in(const RecordedFigures& figures, const RecordedVf& vf) {
    return figures.service_ns == 0
               ? 0
               : static_cast<double>(vf.service_ns) / static_cast<double>(figures.service_ns);
}

/// The text of the action show. `recording` must have a chunk, as read_recording() ensures.
std::string recording_text(const Recording& recording, const RecordedFigures& figures,
                           const Replay& replayed) {
    TableRows rows;
    for (const auto& [number, vf] : figures.vfs)
        rows.push_back(
            {name_in(recording, number), std::to_string(vf.weight),
             percent_text(share_in(figures, vf)),
             fmt::format("{:.1f}", simulator::ms_of(vf.service_ns)), std::to_string(vf.runs),
             fmt::format("{:.2f}", simulator::ms_of(vf.longest_run_ns)), std::to_string(vf.wakes),
             fmt::format("{:.2f}", simulator::ms_of(vf.worst_lag_ns))});
    const std::vector<Column> columns{{"VF", Align::Left, true}, {"WEIGHT", Align::Right},
                                      {"SHARE", Align::Right},   {"SERVICE ms", Align::Right},
                                      {"RUNS", Align::Right},    {"LONGEST ms", Align::Right},
                                      {"WAKES", Align::Right},   {"LAG ms", Align::Right}};
    return fmt::format("{}: {:.1f} s from {:%Y-%m-%dT%H:%M:%SZ} on, by vgpud {}\n", recording.gpu,
                       simulator::ms_of(figures.period.end - figures.period.begin) / 1000,
                       fmt::gmtime(static_cast<std::time_t>(recording.chunks.front().unix_time)),
                       recording.vgpud) +
           TableOptions{}.text(columns, rows) +
           fmt::format("{} events, {} run tables, {} annotations; {} gaps{}\n", replayed.events,
                       replayed.tables, figures.annotations, replayed.gaps,
                       recording.is_cut ? "; the end is cut off" : "");
}

nlohmann::ordered_json recording_json(const Recording& recording, const RecordedFigures& figures,
                                      const Replay& replayed) {
    nlohmann::ordered_json vfs = nlohmann::ordered_json::array();
    for (const auto& [number, vf] : figures.vfs)
        vfs.push_back({{"vf", number},
                       {"name", name_in(recording, number)},
                       {"weight", vf.weight},
                       {"share", share_in(figures, vf)},
                       {"service_ns", vf.service_ns},
                       {"reserved_ns", vf.reserved_ns},
                       {"runs", vf.runs},
                       {"longest_run_ns", vf.longest_run_ns},
                       {"wakes", vf.wakes},
                       {"worst_lag_ns", vf.worst_lag_ns}});
    return {{"gpu", recording.gpu},
            {"vgpud", recording.vgpud},
            {"unix_time", recording.chunks.front().unix_time},
            {"elapsed_ns", (figures.period.end - figures.period.begin).count()},
            {"events", replayed.events},
            {"tables", replayed.tables},
            {"annotations", figures.annotations},
            {"gaps", replayed.gaps},
            {"is_cut", recording.is_cut},
            {"vfs", std::move(vfs)}};
}

/// Exits with 2 if FILE is not a recording. The action replay exits with 1 if a run table differs.
class TraceVerb final : public Verb {
public:
    TraceVerb()
        : Verb({Group::Diagnose, "trace", "record, replay and export what was scheduled",
                "trace record gpu0.trace --seconds 10"}) {}
    void describe(CLI::App& command) override {
        command.add_option("ACTION", action_, "record, show, replay or export")
            ->required()
            ->check(CLI::IsMember({"record", "show", "replay", "export"}));
        command.add_option("FILE", file_, "the recording; -: standard output or input")->required();
        command.add_option("--gpu", gpu_, "record: the GPU to record (default: the only one)");
        command.add_option("--seconds", seconds_, "record: continue for this time")
            ->type_name("SECONDS")
            ->transform(whole_within(0, 86'400));
        command.add_flag("--follow", is_following_, "record: continue until interrupted");
        command.add_option("--format", format_, "export: chrome, svg or scenario")
            ->check(CLI::IsMember({"chrome", "svg", "scenario"}))
            ->capture_default_str();
        command.add_option("-o,--output", output_, "export: file to write")
            ->type_name("FILE")
            ->capture_default_str();
    }

    ExitCode start(const VerbContext& context) override {
        if (action_ == "record") return Verb::start(context);
        auto recording = simulator::read_recording(content_of(file_));
        if (!recording) throw ServiceError(kBadRecording, file_ + ": " + recording.error());
        if (recording->is_cut && action_ != "show")
            context.err << "vgpuctl: " << file_ << ": the end is cut off\n";
        if (action_ == "show") return show(context, *recording);
        if (action_ == "replay") return replay(context, *recording);
        return export_to(context, *recording);
    }

    ExitCode run(Invocation& invocation) override {
        if (file_ == "-" && invocation.is_json)
            throw ServiceError(kBadRecording,
                               "a recording is not JSON; with --json name a FILE for it, not '-'");
        const std::string path = gpu_path(invocation.service);
        Sink sink(file_, invocation.out);
        const Interruption interruption;
        VgpudWatch vgpud(invocation);
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds_);
        std::uint64_t after = 0, bytes = 0;
        for (bool is_first = true;; is_first = false) {
            if (is_first || vgpud.is_running()) {
                const TracePiece piece = piece_after(after, path, invocation);
                // has_gap is normal for the first piece: vgpud keeps only the latest part
                if (piece.has_gap && !is_first)
                    invocation.err << "vgpuctl: a part was dropped before it could be read\n";
                sink.write(piece.items);
                after = piece.next;
                bytes += piece.items.size();
            }
            const bool continues = is_following_ || std::chrono::steady_clock::now() < until;
            if (!continues || !invocation.out || interruption.wait(kReadInterval)) break;
        }
        if (bytes == 0) invocation.err << "vgpuctl: vgpud has recorded nothing of this GPU yet\n";
        if (file_ == "-") return ExitCode::Ok;
        invocation.print("vgpuctl-trace-record-1", {{"file", file_}, {"bytes", bytes}},
                         fmt::format("{}: {} bytes\n", file_, bytes));
        return ExitCode::Ok;
    }

private:
    /// The next piece. If vgpud was restarted, warns, and returns all that the new vgpud has
    /// recorded; this piece does not continue the earlier recording.
    static TracePiece piece_after(std::uint64_t after, const std::string& path,
                                  Invocation& invocation) {
        try {
            return invocation.service.read_trace(path, after);
        } catch (const ServiceError& error) {
            if (after == 0 || error.name() != "org.vgpu1.Error.OutOfRange") throw;
        }
        invocation.err
            << "vgpuctl: vgpud was restarted; the recording continues with events since then\n";
        return invocation.service.read_trace(path, 0);
    }

    /// The path of the GPU. Without --gpu there must be exactly one GPU.
    std::string gpu_path(Service& service) const {
        if (!gpu_.empty()) {
            std::string path = service.resolve(gpu_);
            if (is_vf_path(path))
                throw ServiceError(kBadRecording,
                                   fmt::format("'{}' is a VF; trace records a whole GPU", gpu_));
            return path;
        }
        const std::vector<Properties> gpus = service.list_gpus();
        if (gpus.size() != 1)
            throw ServiceError(
                kBadRecording,
                fmt::format("there are {} GPUs; choose one with --gpu", gpus.size()));
        return text_of(gpus.front(), "Path");
    }

    static ExitCode show(const VerbContext& context, const Recording& recording) {
        const RecordedFigures figures = figures_of(recording);
        const Replay replayed = simulator::replay(recording);
        context.print("vgpuctl-trace-1", recording_json(recording, figures, replayed),
                      recording_text(recording, figures, replayed));
        return ExitCode::Ok;
    }

    /// Replays the recorded events with this build's planner.
    static ExitCode replay(const VerbContext& context, const Recording& recording) {
        const Replay replayed = simulator::replay(recording);
        const bool is_same = replayed.different == 0;
        std::string text =
            fmt::format("{} events, {} run tables: ", replayed.events, replayed.tables);
        text += is_same ? "decided as recorded\n"
                        : fmt::format(
                              "{} decided otherwise, first: {}\nrecorded by vgpud {}; "
                              "another release may decide otherwise\n",
                              replayed.different, replayed.first_difference, recording.vgpud);
        context.print("vgpuctl-trace-replay-1",
                      {{"vgpud", recording.vgpud},
                       {"events", replayed.events},
                       {"tables", replayed.tables},
                       {"gaps", replayed.gaps},
                       {"different", replayed.different},
                       {"first_difference", replayed.first_difference}},
                      text);
        return is_same ? ExitCode::Ok : ExitCode::Failed;
    }

    [[nodiscard]] std::string exported(const Recording& recording) const {
        if (format_ == "svg") return svg_picture(recording);
        if (format_ == "scenario") return scenario_text(recording);
        return chrome_trace(recording) + "\n";
    }

    /// With --json, the document contains the exported text or, with -o, the name of its file.
    [[nodiscard]] ExitCode export_to(const VerbContext& context, const Recording& recording) const {
        const bool has_file = output_ != "-";
        const std::string text = exported(recording);
        if (has_file || !context.is_json) Sink(output_, context.out).write(text);
        if (context.is_json)
            context.out << document_text("vgpuctl-trace-export-1",
                                         {{"format", format_},
                                          {"file", has_file ? output_ : ""},
                                          {"text", has_file ? "" : text}});
        return ExitCode::Ok;
    }

    std::string action_, file_, gpu_;
    unsigned seconds_ = 0;
    bool is_following_ = false;
    std::string format_ = "chrome";
    std::string output_ = "-";
};

}  // namespace

const MakeVerb make_trace_verb = make_verb<TraceVerb>;

}  // namespace vgpu::cli
