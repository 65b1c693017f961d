// SPDX-License-Identifier: MIT
//
// vgpuctl top: shows which VFs get the engine, until interrupted. The line of a VF has its share in
// the last 10 s, also as a bar with a mark at the ideal share, and its lag, waits and overruns.
#include "cli/interruption.h"
#include "cli/number_options.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "cli/vf_options.h"
#include "cli/vgpud_watch.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <chrono>

namespace vgpu::cli {

namespace {

/// Moves the cursor to the top left and clears the screen (ECMA-48), so that nothing scrolls.
constexpr std::string_view kHomeAndClear = "\x1b[H\x1b[J";

std::string gpu_lines(const std::vector<Properties>& gpus) {
    constexpr std::size_t kIndent = 4;
    std::string text;
    for (const Properties& gpu : gpus)
        text += wrapped_text(
            fmt::format("{}: {}, {} switches, p50 {}, p99 {}, {} free", text_of(gpu, "Id"),
                        text_of(gpu, "State"), text_of(gpu, "Switches"),
                        measured_of(gpu, "SwitchP50Ns"), measured_of(gpu, "SwitchP99Ns"),
                        size_of(gpu, "VramFreeBytes")),
            kIndent);
    return text;
}

/// A bar of ten cells for the recent share, with a mark at the ideal share: "######|....".
std::string share_bar(double share, double ideal) {
    constexpr std::size_t kCells = 10;
    const auto cells_in = [](double part) {
        return static_cast<std::size_t>(std::clamp(part, 0.0, 1.0) * kCells + 0.5);
    };
    std::string bar = std::string(cells_in(share), '#');
    bar.resize(kCells, '.');
    bar.insert(cells_in(ideal), "|");
    return bar;
}

/// The bar of a VF, or the state of a VF that cannot run. No state is longer than a bar.
std::string bar_cell(const Properties& vf, const std::string& ideal_name) {
    const std::string state = text_of(vf, "State");
    // a VF that takes turns on the engine alternates between these states
    const bool has_bar = state == "ready" || state == "running";
    return has_bar ? share_bar(real_of(vf, "ShareWindow"), real_of(vf, ideal_name)) : state;
}

std::string qos_cell(const Properties& vf, const std::string&) {
    return short_qos_text(vf);
}

std::string lag_cell(const Properties& vf, const std::string& name) {
    return lag_text(real_of(vf, name));
}

std::string wait_cell(const Properties& vf, const std::string& name) {
    const double ms = static_cast<double>(number_of(vf, name)) / 1e6;
    return ms > 0 ? fmt::format("{:.{}f}", ms, ms < 10 ? 2 : 1) : "-";
}

/// If the table is too wide, it keeps VF and SHARE, and omits the bar ("| IDEAL") last.
constexpr std::array kEngineColumns{
    PropertyColumn{{"VF"}, "Target", text_of},
    PropertyColumn{{"NAME", Align::Left, true, 7}, "Name", text_of},
    PropertyColumn{{"WGT", Align::Right, false, 6}, "Weight", text_of},
    PropertyColumn{{"QOS", Align::Left, false, 5}, "MinPct", qos_cell},
    PropertyColumn{{"SHARE", Align::Right}, "ShareWindow", percent_of},
    PropertyColumn{{"| IDEAL", Align::Left, false, 8}, "ShareIdeal", bar_cell},
    PropertyColumn{{"LAG", Align::Right, false, 3}, "LagQuanta", lag_cell},
    PropertyColumn{{"P50 ms", Align::Right, false, 1}, "WaitP50Ns", wait_cell},
    PropertyColumn{{"P99 ms", Align::Right, false, 4}, "WaitP99Ns", wait_cell},
    PropertyColumn{{"OVR", Align::Right, false, 2}, "Overruns", text_of},
};

/// Waits while vgpud does not run, and ends when it does not answer. --json: a document per refresh
/// (vgpuctl-top-1).
class TopVerb final : public Verb {
public:
    TopVerb()
        : Verb({Group::State, "top", "show which VFs get the engine, refreshed until interrupted",
                "top --once"}) {}
    void describe(CLI::App& command) override {
        command.add_flag("--once", once_, "print once and exit");
        command.add_option("--interval-ms", interval_ms_, "time between refreshes")
            ->transform(whole_within(100, 60'000))
            ->capture_default_str();
        table_.describe(command, {columns_of(kEngineColumns)});
    }

    ExitCode run(Invocation& invocation) override {
        if (once_) {
            print(invocation);
            return ExitCode::Ok;
        }
        const Interruption interruption;
        VgpudWatch vgpud(invocation);
        print(invocation);
        while (invocation.out && !interruption.wait(std::chrono::milliseconds(interval_ms_)))
            if (vgpud.is_running()) print(invocation);
        return ExitCode::Ok;
    }

private:
    void print(Invocation& invocation) const {
        const auto gpus = invocation.service.list_gpus();
        const auto vfs = invocation.service.list_vfs();
        const bool is_redrawn = invocation.is_terminal && !once_ && !invocation.is_json;
        if (is_redrawn) invocation.out << kHomeAndClear;
        invocation.print(
            "vgpuctl-top-1", {{"gpus", json_of(gpus)}, {"vfs", json_of(vfs)}},
            (table_.is_plain() ? "" : gpu_lines(gpus) + "\n") + table_.text(kEngineColumns, vfs));
        invocation.out.flush();
    }

    bool once_ = false;
    unsigned interval_ms_ = 1000;
    TableOptions table_;
};

}  // namespace

const MakeVerb make_top_verb = make_verb<TopVerb>;

}  // namespace vgpu::cli
