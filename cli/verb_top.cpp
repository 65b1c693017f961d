// SPDX-License-Identifier: MIT
//
// vgpuctl top: shows which VFs get the engine, refreshed until interrupted: shares of the last 10 s
// as bars with the ideal marked, lags in quanta, waits for the engine, overruns.
#include "cli/interruption.h"
#include "cli/number_options.h"
#include "cli/qos_options.h"
#include "cli/verbs.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>

namespace vgpu::cli {

namespace {

/// Moves the cursor to the top and clears below (ECMA-48): does not scroll and does not flicker.
constexpr std::string_view kHomeAndClear = "\x1b[H\x1b[J";

std::string gpu_lines(const std::vector<Properties>& gpus) {
    constexpr std::size_t kIndent = 4;
    std::string text;
    for (const Properties& gpu : gpus)
        text += wrapped_text(
            fmt::format("{}: {}, {} switches, p50 {}, p99 {}, {} free", text_of(gpu, "Id"),
                        text_of(gpu, "State"), text_of(gpu, "Switches"),
                        duration_of(gpu, "SwitchP50Ns"), duration_of(gpu, "SwitchP99Ns"),
                        size_of(gpu, "VramFreeBytes")),
            kIndent);
    return text;
}

/// "######|...": recent share of the engine, with a mark at the ideal share.
/// Ten cells, rounded, and the mark between them: eleven letters.
std::string bar_text(double share, double ideal) {
    constexpr std::size_t kCells = 10;
    const auto cell = [](double part) {
        return static_cast<std::size_t>(std::clamp(part, 0.0, 1.0) * kCells + 0.5);
    };
    std::string bar = std::string(cell(share), '#');
    bar.resize(kCells, '.');
    bar.insert(cell(ideal), "|");
    return bar;
}

std::string ms_text(std::uint64_t ns) {
    const double ms = static_cast<double>(ns) / 1e6;
    return fmt::format("{:.{}f}", ms, ms < 10 ? 2 : 1);
}

/// A VF that cannot run shows its state in place of the bar; no state is longer than a bar.
/// Target, share and bar always stay, because they matter most; other columns give way.
std::string engine_table(const std::vector<Properties>& vfs) {
    std::vector<std::vector<std::string>> rows;
    for (const Properties& vf : vfs) {
        const double share = real_of(vf, "ShareWindow");
        const std::string state = text_of(vf, "State");
        // every world switch changes a VF from one to the other
        const bool has_bar = state == "ready" || state == "running";
        rows.push_back({text_of(vf, "Target"), text_of(vf, "Name"), text_of(vf, "Weight"),
                        short_qos_text(vf), percent_text(share),
                        has_bar ? bar_text(share, real_of(vf, "ShareIdeal")) : state,
                        lag_text(real_of(vf, "LagQuanta")), ms_text(number_of(vf, "WaitP50Ns")),
                        ms_text(number_of(vf, "WaitP99Ns")), text_of(vf, "Overruns")});
    }
    return table_text({{"VF"},
                       {"NAME", Align::Left, true, 7},
                       {"WGT", Align::Right, false, 6},
                       {"QOS", Align::Left, false, 5},
                       {"SHARE", Align::Right},
                       {"| IDEAL", Align::Left, false, 8},
                       {"LAG", Align::Right, false, 3},
                       {"P50 ms", Align::Right, false, 1},
                       {"P99 ms", Align::Right, false, 4},
                       {"OVR", Align::Right, false, 2}},
                      rows);
}

/// Calls Manager.ListGpus and ListVfColumns repeatedly and keeps no state; ends if vgpud does not
/// answer. --json prints a document (vgpuctl-top-1) for each refresh.
class TopVerb final : public Verb {
public:
    [[nodiscard]] std::string name() const override { return "top"; }
    [[nodiscard]] std::string summary() const override { return "who gets the engine, live"; }
    void describe(CLI::App& command) override {
        command.add_flag("--once", once_, "print once and end");
        command.add_option("--interval-ms", interval_ms_, "time between refreshes")
            ->transform(whole_within(100, 60'000))
            ->capture_default_str();
    }

    ExitCode run(Invocation& invocation) override {
        if (once_) {
            print(invocation);
            return ExitCode::Ok;
        }
        const Interruption interruption;
        do {
            print(invocation);
        } while (invocation.out && !interruption.wait(std::chrono::milliseconds(interval_ms_)));
        return ExitCode::Ok;
    }

private:
    void print(Invocation& invocation) const {
        const auto gpus = invocation.service.list_gpus();
        const auto vfs = invocation.service.list_vfs();
        if (invocation.output == Output::Json) {
            invocation.out << document_text("vgpuctl-top-1",
                                            {{"gpus", json_of(gpus)}, {"vfs", json_of(vfs)}});
        } else {
            if (invocation.is_terminal && !once_) invocation.out << kHomeAndClear;
            invocation.out << gpu_lines(gpus) << "\n" << engine_table(vfs);
        }
        invocation.out.flush();
    }

    bool once_ = false;
    unsigned interval_ms_ = 1000;
};

}  // namespace

std::unique_ptr<Verb> make_top_verb() {
    return std::make_unique<TopVerb>();
}

}  // namespace vgpu::cli
