// SPDX-License-Identifier: MIT
//
// vgpuctl simulate FILE: predicts how much engine time each VF gets, from the VFs' contracts and
// work. Runs vgpud's planner and the PF core in simulated time. Does not ask vgpud.
#include "cli/desired_document.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "daemon/simulator/comparison.h"
#include "daemon/simulator/milliseconds.h"

#include <fmt/format.h>
#include <fstream>

namespace vgpu::cli {

namespace {

using simulator::Figures;
using simulator::ms_of;
using simulator::part_of;
using simulator::ProductOutcome;
using simulator::Scenario;
using simulator::VfFigures;

constexpr const char* kBadScenario = "org.vgpu1.Error.BadConfiguration";

std::string ms_text(std::int64_t ns) {
    return fmt::format("{:.2f}", ms_of(ns));
}

std::string scenario_heading(const Scenario& scenario) {
    return fmt::format("{}: {} VFs, {:.1f} s, seed {}\n", scenario.setup.name,
                       scenario.setup.vfs.size(), ms_of(scenario.setup.duration_ns) / 1000,
                       scenario.setup.seed);
}

/// The cells of the VF setup.vfs[i], whose figures are figures.vfs[i + 1]; figures.vfs[0] is
/// unused.
std::vector<std::string> vf_cells(const Scenario& scenario, const Figures& figures, std::size_t i) {
    const simulator::VfSetup& setup = scenario.setup.vfs[i];
    const VfFigures& vf = figures.vfs[i + 1];
    const bool has_jobs = vf.jobs > 0;
    return {setup.name,
            std::to_string(setup.contract.weight),
            percent_text(part_of(vf.service_ns, figures)),
            percent_text(part_of(vf.reserved_ns, figures)),
            ms_text(vf.longest_wait_ns),
            has_jobs ? std::to_string(vf.jobs) : "-",
            has_jobs ? ms_text(simulator::quantile(vf.response_ns, 0.5)) : "-",
            has_jobs ? ms_text(simulator::quantile(vf.response_ns, 0.99)) : "-",
            setup.work.deadline_ns > 0 ? std::to_string(vf.missed) : "-"};
}

/// One line for each VF that was reset, and a line with the time for which the engine was unusable.
std::string resets_text(const Scenario& scenario, const Figures& figures) {
    std::string text;
    for (std::size_t i = 0; i < scenario.setup.vfs.size(); ++i) {
        const VfFigures& vf = figures.vfs[i + 1];
        if (vf.resets == 0) continue;
        text += fmt::format("reset: {}, {} x; hung in the engine for {} ms, jobs lost: {}\n",
                            scenario.setup.vfs[i].name, vf.resets, ms_text(vf.hung_ns), vf.lost);
    }
    if (figures.hung_ns > 0)
        text += fmt::format("the engine was unusable for {} ms\n", ms_text(figures.hung_ns));
    return text;
}

std::vector<Column> outcome_columns() {
    return {{"VF", Align::Left, true},  {"WEIGHT", Align::Right},  {"SHARE", Align::Right},
            {"RESERVED", Align::Right}, {"WAIT ms", Align::Right}, {"JOBS", Align::Right},
            {"P50 ms", Align::Right},   {"P99 ms", Align::Right},  {"MISSED", Align::Right}};
}

std::string outcome_text(const Scenario& scenario, const ProductOutcome& outcome,
                         const TableOptions& table) {
    const Figures& figures = outcome.figures;
    TableRows rows;
    for (std::size_t i = 0; i < scenario.setup.vfs.size(); ++i)
        rows.push_back(vf_cells(scenario, figures, i));
    const std::string vfs = table.text(outcome_columns(), rows);
    if (table.is_plain()) return vfs;
    return scenario_heading(scenario) + vfs + resets_text(scenario, figures) +
           fmt::format(
               "engine: {} useful, {} switching, {} idle; {} world switches\n"
               "furthest from its ideal share: {:.2f} ms, {:.2f} of the longest slice\n",
               percent_text(part_of(figures.service_ns, figures)),
               percent_text(part_of(figures.switching_ns, figures)),
               percent_text(part_of(figures.idle_ns, figures)), figures.switches,
               outcome.worst_lag_ms, outcome.worst_lag_ms / simulator::longest_slice_ms(scenario));
}

nlohmann::ordered_json vf_json(const Scenario& scenario, const Figures& figures, std::size_t i) {
    const VfFigures& vf = figures.vfs[i + 1];
    return {{"name", scenario.setup.vfs[i].name},
            {"weight", scenario.setup.vfs[i].contract.weight},
            {"share", part_of(vf.service_ns, figures)},
            {"reserved_share", part_of(vf.reserved_ns, figures)},
            {"service_ns", vf.service_ns},
            {"longest_wait_ns", vf.longest_wait_ns},
            {"jobs", vf.jobs},
            {"dropped", vf.dropped},
            {"missed", vf.missed},
            {"resets", vf.resets},
            {"lost", vf.lost},
            {"hung_ns", vf.hung_ns},
            {"response_p50_ns", simulator::quantile(vf.response_ns, 0.5)},
            {"response_p99_ns", simulator::quantile(vf.response_ns, 0.99)}};
}

nlohmann::ordered_json outcome_json(const Scenario& scenario, const ProductOutcome& outcome) {
    const Figures& figures = outcome.figures;
    nlohmann::ordered_json vfs = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < scenario.setup.vfs.size(); ++i)
        vfs.push_back(vf_json(scenario, figures, i));
    return {{"scenario", scenario.setup.name},
            {"elapsed_ns", figures.elapsed_ns},
            {"service_ns", figures.service_ns},
            {"switching_ns", figures.switching_ns},
            {"idle_ns", figures.idle_ns},
            {"hung_ns", figures.hung_ns},
            {"switches", figures.switches},
            {"worst_lag_ms", outcome.worst_lag_ms},
            {"vfs", std::move(vfs)}};
}

/// Exits with 2 if the scenario is invalid or the recording cannot be written. --json:
/// vgpuctl-simulate-1, with --compare vgpuctl-compare-1.
class SimulateVerb final : public Verb {
public:
    SimulateVerb()
        : Verb({Group::Diagnose, "simulate", "predict what VFs would get, without a GPU",
                "simulate scenario.json"}) {}
    void describe(CLI::App& command) override {
        command.add_option("FILE", file_, "a scenario (docs/scheduling.md); -: standard input")
            ->required();
        auto* compare = command.add_flag("--compare", compares_,
                                         "compare with the schedulers of other systems");
        command.add_option("--trace", recording_file_, "write a recording for vgpuctl trace")
            ->type_name("FILE")
            ->excludes(compare);
        table_.describe(command, {outcome_columns()});
        command.get_option("--output")->excludes(compare);
        command.get_option("--noheadings")->excludes(compare);
    }

    ExitCode start(const VerbContext& context) override {
        const auto scenario = simulator::parse_scenario(content_of(file_));
        if (!scenario) throw ServiceError(kBadScenario, file_ + ": " + scenario.error());
        return compares_ ? compare(context, *scenario) : simulate(context, *scenario);
    }

private:
    [[nodiscard]] ExitCode simulate(const VerbContext& context, const Scenario& scenario) const {
        const auto outcome = [&] {
            const Spinner spinner(context, "simulate " + scenario.setup.name);
            return simulator::simulate(scenario);
        }();
        if (!outcome) throw ServiceError(kBadScenario, file_ + ": " + outcome.error());
        if (!recording_file_.empty()) {
            std::ofstream file(recording_file_, std::ios::binary);
            if (!(file << outcome->recording << std::flush))
                throw ServiceError(kBadScenario, "cannot write " + recording_file_);
        }
        context.print("vgpuctl-simulate-1", outcome_json(scenario, *outcome),
                      outcome_text(scenario, *outcome, table_));
        return ExitCode::Ok;
    }

    /// Runs the scenario under each scheduler in its list `policies`.
    [[nodiscard]] static ExitCode compare(const VerbContext& context, const Scenario& scenario) {
        const auto rows = [&] {
            const Spinner spinner(context, "simulate " + scenario.setup.name);
            return simulator::compare(scenario);
        }();
        context.print("vgpuctl-compare-1",
                      {{"scenario", scenario.setup.name}, {"rows", simulator::json_of(rows)}},
                      scenario_heading(scenario) + simulator::table_of(scenario, rows));
        return ExitCode::Ok;
    }

    std::string file_;
    std::string recording_file_;
    bool compares_ = false;
    TableOptions table_;
};

}  // namespace

const MakeVerb make_simulate_verb = make_verb<SimulateVerb>;

}  // namespace vgpu::cli
