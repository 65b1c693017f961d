// SPDX-License-Identifier: MIT
#include "daemon/simulator/scenario.h"

#include "daemon/service/scheduler/contract.h"
#include "daemon/service/words.h"
#include "daemon/simulator/peers.h"
#include "text/json_document.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace vgpu::simulator {

namespace {

using Json = nlohmann::json;
using daemon::scheduler::Contract;
using daemon::scheduler::ContractParty;
using daemon::scheduler::PriorityClass;
using daemon::scheduler::SlotMode;

constexpr std::size_t kMaxVfs = 4096;
/// quote_of(), allow() and word() cut a value from the document to this many bytes.
constexpr std::size_t kMaxQuoted = 80;

/// A mistake in the document. Thrown and caught only in this file.
class Wrong : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// A value as JSON, cut at kMaxQuoted bytes, for error texts.
std::string quote_of(const Json& value) {
    return value.dump().substr(0, kMaxQuoted);
}

/// A JSON object of the document. `where` is its path, for error texts. For a missing member, a
/// getter returns `otherwise`; for a value of a wrong type or out of range, a getter throws Wrong.
class Section {
public:
    Section(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
        if (!json.is_object()) throw Wrong(fmt::format("{} is not an object", where_));
    }

    /// Throws Wrong if the object has a member that is not in `keys`.
    void allow(std::initializer_list<std::string_view> keys) const {
        for (const auto& [key, value] : json_.items())
            if (std::find(keys.begin(), keys.end(), key) == keys.end())
                throw Wrong(fmt::format("{} has an unknown member '{}'", where_,
                                        key.substr(0, kMaxQuoted)));
    }

    [[nodiscard]] bool has(const char* key) const { return json_.contains(key); }
    [[nodiscard]] const Json& at(const char* key) const { return json_.at(key); }
    [[nodiscard]] std::string path(const char* key) const { return where_ + "." + key; }

    [[nodiscard]] double number(const char* key, double otherwise, double min, double max) const {
        if (!has(key)) return otherwise;
        const Json& value = json_.at(key);
        if (!value.is_number())
            throw Wrong(fmt::format("{} is {}; it must be a number", path(key), quote_of(value)));
        const double found = value.get<double>();
        if (found < min || found > max)
            throw Wrong(
                fmt::format("{} is {:g}; it must be {:g} to {:g}", path(key), found, min, max));
        return found;
    }

    [[nodiscard]] std::uint64_t whole(const char* key, std::uint64_t otherwise, double min,
                                      double max) const {
        const double found = number(key, static_cast<double>(otherwise), min, max);
        if (found != std::floor(found))
            throw Wrong(fmt::format("{} is {:g}; it must be a whole number", path(key), found));
        return static_cast<std::uint64_t>(found);
    }

    /// A time in ns. `unit`: ns per unit of the member; `otherwise` and `max` are in this unit.
    [[nodiscard]] std::int64_t ns(const char* key, double otherwise, double unit,
                                  double max) const {
        return std::llround(number(key, otherwise, 0, max) * unit);
    }

    [[nodiscard]] std::string text(const char* key, std::string_view otherwise) const {
        if (!has(key)) return std::string(otherwise);
        if (!json_.at(key).is_string())
            throw Wrong(
                fmt::format("{} is {}; it must be text", path(key), quote_of(json_.at(key))));
        return json_.at(key).get<std::string>();
    }

    /// The value of a boolean member; false if the member is absent.
    [[nodiscard]] bool flag(const char* key) const {
        if (!has(key)) return false;
        if (!json_.at(key).is_boolean()) throw Wrong(path(key) + " must be true or false");
        return json_.at(key).get<bool>();
    }

    /// The value for one of several known words.
    template <typename T>
    [[nodiscard]] T word(const char* key, T otherwise,
                         std::initializer_list<std::pair<std::string_view, T>> words) const {
        if (!has(key)) return otherwise;
        const std::string found = text(key, "");
        std::string known;
        for (const auto& [name, value] : words) {
            if (found == name) return value;
            known += (known.empty() ? "" : ", ") + std::string(name);
        }
        throw Wrong(fmt::format("{} is '{}'; it must be one of {}", path(key),
                                found.substr(0, kMaxQuoted), known));
    }

private:
    const Json& json_;
    std::string where_;
};

constexpr double kNsPerUs = 1e3;
constexpr double kNsPerMs = 1e6;
constexpr double kLongestMs = 3.6e6;  ///< one hour

DeviceModel device_of(const Json& json) {
    const Section section(json, "device");
    section.allow(
        {"switch_us", "decision_us", "overrun_part", "overrun_mean_us", "overrun_max_us"});
    DeviceModel device;
    device.switch_ns = section.ns("switch_us", 100, kNsPerUs, 1e6);
    device.decision_ns = section.ns("decision_us", 1, kNsPerUs, 1e6);
    device.overrun_part = section.number("overrun_part", 0, 0, 1);
    device.overrun_mean_ns = section.ns("overrun_mean_us", 500, kNsPerUs, 1e6);
    device.overrun_max_ns = section.ns("overrun_max_us", 3000, kNsPerUs, 1e6);
    return device;
}

/// Reads [[at_ms, work_ms], ...].
std::vector<RecordedJob> jobs_of(const Json& json, const std::string& where) {
    constexpr std::size_t kMaxJobs = 1'000'000;
    if (!json.is_array() || json.size() > kMaxJobs)
        throw Wrong(fmt::format("{} is not a list of at most {} jobs", where, kMaxJobs));
    std::vector<RecordedJob> jobs;
    for (const Json& job : json) {
        const bool is_pair = job.is_array() && job.size() == 2 && job[0].is_number() &&
                             job[1].is_number() && job[0] >= 0 && job[0] <= kLongestMs &&
                             job[1] > 0 && job[1] <= kLongestMs;
        if (!is_pair)
            throw Wrong(fmt::format("{}[{}] is {}; it must be [at_ms, work_ms], each up to {:g}",
                                    where, jobs.size(), quote_of(job), kLongestMs));
        jobs.push_back({.at_ns = std::llround(job[0].get<double>() * kNsPerMs),
                        .work_ns = std::llround(job[1].get<double>() * kNsPerMs)});
        if (jobs.back().work_ns == 0) throw Wrong(fmt::format("{}: a job without work", where));
        if (jobs.size() > 1 && jobs.back().at_ns < jobs[jobs.size() - 2].at_ns)
            throw Wrong(
                fmt::format("{}[{}] begins before the preceding job", where, jobs.size() - 1));
    }
    return jobs;
}

Workload work_of(const Json& json, const std::string& where) {
    const Section section(json, where);
    section.allow({"arrivals", "work_ms", "period_ms", "phase_ms", "deadline_ms", "jobs"});
    Workload work;
    work.arrivals = section.word<Arrivals>("arrivals", Arrivals::Backlogged,
                                           {{"backlogged", Arrivals::Backlogged},
                                            {"bursty", Arrivals::Bursty},
                                            {"periodic", Arrivals::Periodic},
                                            {"recorded", Arrivals::Recorded}});
    work.work_ns = section.ns("work_ms", 0, kNsPerMs, kLongestMs);
    work.period_ns = section.ns("period_ms", 0, kNsPerMs, kLongestMs);
    work.phase_ns = section.ns("phase_ms", 0, kNsPerMs, kLongestMs);
    work.deadline_ns = section.ns("deadline_ms", 0, kNsPerMs, kLongestMs);
    if (section.has("jobs") != (work.arrivals == Arrivals::Recorded))
        throw Wrong(where + ": jobs and arrivals 'recorded' require each other");
    if (work.arrivals == Arrivals::Recorded) {
        work.jobs = jobs_of(section.at("jobs"), where + ".jobs");
        return work;
    }
    if (work.arrivals != Arrivals::Backlogged && (work.work_ns == 0 || work.period_ns == 0))
        throw Wrong(
            fmt::format("{} consists of jobs and needs work_ms and period_ms above 0", where));
    constexpr std::int64_t kShortestPeriodNs = 10'000;
    if (work.arrivals != Arrivals::Backlogged && work.period_ns < kShortestPeriodNs)
        throw Wrong(fmt::format("{}.period_ms is below 0.01", where));
    return work;
}

/// Reads [{"at_ms", "kind", "stays_out"}, ...].
std::vector<VfFault> faults_of(const Json& json, const std::string& where) {
    constexpr std::size_t kMaxFaults = 1000;
    if (!json.is_array() || json.size() > kMaxFaults)
        throw Wrong(fmt::format("{} is not a list of at most {} faults", where, kMaxFaults));
    std::vector<VfFault> faults;
    for (const Json& one : json) {
        const Section section(one, fmt::format("{}[{}]", where, faults.size()));
        section.allow({"at_ms", "kind", "stays_out"});
        if (!section.has("kind"))
            throw Wrong(section.path("kind") + " is missing; it must be one of endless, hang");
        VfFault fault;
        fault.at_ns = section.ns("at_ms", 0, kNsPerMs, kLongestMs);
        fault.kind = section.word<BadKernel>(
            "kind", BadKernel::None, {{"endless", BadKernel::Endless}, {"hang", BadKernel::Hang}});
        fault.stays_out = section.flag("stays_out");
        if (fault.stays_out && fault.kind != BadKernel::Hang)
            throw Wrong(section.path("stays_out") +
                        " requires kind 'hang'; no other kind resets the VF");
        faults.push_back(fault);
    }
    return faults;
}

Contract contract_of(const Section& section) {
    Contract contract;
    contract.weight = static_cast<std::uint32_t>(section.whole("weight", 100, 1, 10'000));
    contract.priority_class = section.word<PriorityClass>("priority_class", PriorityClass::Normal,
                                                          {{"high", PriorityClass::High},
                                                           {"normal", PriorityClass::Normal},
                                                           {"low", PriorityClass::Low}});
    contract.mode = section.word<SlotMode>("mode", SlotMode::WorkConserving,
                                           {{"work-conserving", SlotMode::WorkConserving},
                                            {"strict", SlotMode::Strict},
                                            {"gang", SlotMode::Gang}});
    contract.min_pct = section.number("min_pct", 0, 0, 100);
    contract.max_pct = section.number("max_pct", 100, 0.01, 100);
    contract.burst_ms = section.number("burst_ms", 0, 0, 10'000);
    contract.latency_ms = section.number("latency_ms", 0, 0, 10'000);
    contract.phase_ms = section.number("phase_ms", 0, 0, 10'000);
    contract.max_gap_ms = section.number("max_gap_ms", contract.max_gap_ms, 1, 60'000);
    // 0 means the GPU's quantum, which is the default in Contract
    const double quantum_ms = section.number("quantum_ms", 0, 0, 1000);
    if (quantum_ms > 0) contract.quantum_ms = quantum_ms;
    const double timeout_ms = section.number("preempt_timeout_ms", 0, 0, 100'000);
    if (timeout_ms > 0) contract.preempt_timeout_ms = timeout_ms;
    return contract;
}

/// Adds the `count` VFs of one entry of "vfs".
void add_vfs(const Json& json, std::size_t index, Simulation& setup,
             std::vector<ContractParty>& parties) {
    const std::string where = fmt::format("vfs[{}]", index);
    const Section section(json, where);
    section.allow({"name", "count", "joins_later", "weight", "priority_class", "mode", "min_pct",
                   "max_pct", "burst_ms", "latency_ms", "phase_ms", "max_gap_ms", "quantum_ms",
                   "preempt_timeout_ms", "work", "faults"});
    const std::string name = section.text("name", fmt::format("vf{}", setup.vfs.size() + 1));
    const std::size_t count = section.whole("count", 1, 1, kMaxVfs);
    if (setup.vfs.size() + count > kMaxVfs)
        throw Wrong(fmt::format("{}: more than {} VFs", where, kMaxVfs));
    const Contract contract = contract_of(section);
    Workload work = section.has("work") ? work_of(section.at("work"), where + ".work") : Workload{};
    if (section.has("faults")) work.faults = faults_of(section.at("faults"), where + ".faults");
    const bool joins_later = section.flag("joins_later");
    const double preempt_timeout_ms = section.number("preempt_timeout_ms", 0, 0, 100'000);
    for (std::size_t i = 0; i < count; ++i) {
        VfSetup vf{.name = count == 1 ? name : fmt::format("{}-{}", name, i + 1),
                   .contract = contract,
                   .preempt_timeout_ms = preempt_timeout_ms,
                   .work = work,
                   .joins_later = joins_later};
        // spreads the phases of an entry's VFs over the period
        if (work.arrivals == Arrivals::Periodic)
            vf.work.phase_ns +=
                static_cast<std::int64_t>(i) * work.period_ns / static_cast<std::int64_t>(count);
        setup.vfs.push_back(vf);
        parties.push_back(
            {.vf = static_cast<std::uint32_t>(setup.vfs.size()), .contract = contract});
    }
}

std::uint32_t number_of(const Simulation& setup, const std::string& name,
                        const std::string& where) {
    for (std::size_t i = 0; i < setup.vfs.size(); ++i)
        if (setup.vfs[i].name == name) return static_cast<std::uint32_t>(i + 1);
    throw Wrong(fmt::format("{}.vf is '{}'; no VF has that name", where, name));
}

Change change_of(const Json& json, std::size_t index, const Simulation& setup) {
    const std::string where = fmt::format("changes[{}]", index);
    const Section section(json, where);
    section.allow({"at_ms", "vf", "what", "weight"});
    Change change;
    change.at_ns = section.ns("at_ms", 0, kNsPerMs, kLongestMs);
    change.vf = number_of(setup, section.text("vf", ""), where);
    change.kind = section.word<ChangeKind>(
        "what", ChangeKind::Weight,
        {{"weight", ChangeKind::Weight}, {"leave", ChangeKind::Leave}, {"join", ChangeKind::Join}});
    change.weight = static_cast<std::uint32_t>(section.whole("weight", 100, 1, 10'000));
    return change;
}

const Json& list_at(const Json& json, const char* key) {
    if (!json.at(key).is_array()) throw Wrong(fmt::format("{} is not a list", key));
    return json.at(key);
}

std::vector<std::string> policies_of(const Json& json) {
    if (!json.contains("policies")) return policy_names();
    std::vector<std::string> names;
    for (const Json& name : list_at(json, "policies")) {
        const auto& known = policy_names();
        if (!name.is_string() || std::find(known.begin(), known.end(), name) == known.end())
            throw Wrong(
                fmt::format("policies has {}; known: {}", quote_of(name), fmt::join(known, ", ")));
        names.push_back(name);
    }
    return names;
}

void admit(Simulation& setup, const std::vector<ContractParty>& parties) {
    const daemon::scheduler::Engine engine{.switch_ns = setup.device.switch_ns};
    const auto admission = daemon::scheduler::admit_for_table(parties, engine);
    if (!admission) throw Wrong("not admitted: " + admission.error().cause);
    for (std::size_t i = 0; i < setup.vfs.size(); ++i)
        setup.vfs[i].policy = admission->terms[i].policy;
}

/// Called last, because other parts of the document refer to VFs by their original names.
void make_names_printable(Simulation& setup) {
    setup.name = daemon::printable(setup.name);
    for (VfSetup& vf : setup.vfs) vf.name = daemon::printable(vf.name);
}

Scenario scenario_of(const Json& json) {
    const Section section(json, "scenario");
    section.allow({"name", "seed", "duration_ms", "device", "vfs", "changes", "policies"});
    Scenario scenario;
    Simulation& setup = scenario.setup;
    setup.name = section.text("name", "unnamed");
    setup.seed = section.whole("seed", 1, 0, 1e15);
    setup.duration_ns = section.ns("duration_ms", 10'000, kNsPerMs, kLongestMs);
    if (setup.duration_ns == 0) throw Wrong("scenario.duration_ms is 0");
    if (section.has("device")) setup.device = device_of(section.at("device"));
    if (!section.has("vfs")) throw Wrong("scenario has no vfs");
    std::vector<ContractParty> parties;
    for (std::size_t i = 0; const Json& vf : list_at(json, "vfs")) add_vfs(vf, i++, setup, parties);
    if (setup.vfs.empty()) throw Wrong("scenario has no vfs");
    admit(setup, parties);
    if (section.has("changes"))
        for (std::size_t i = 0; const Json& change : list_at(json, "changes"))
            setup.changes.push_back(change_of(change, i++, setup));
    std::stable_sort(setup.changes.begin(), setup.changes.end(),
                     [](const Change& a, const Change& b) { return a.at_ns < b.at_ns; });
    scenario.policies = policies_of(json);
    make_names_printable(setup);
    return scenario;
}

}  // namespace

tl::expected<Scenario, std::string> parse_scenario(std::string_view text) {
    const auto json = text::read_json(text, text::Comments::Allowed);
    if (!json) return tl::make_unexpected(daemon::printable(json.error()));
    try {
        return scenario_of(*json);
    } catch (const std::exception& error) {
        return tl::make_unexpected(daemon::printable(error.what()));
    }
}

const std::vector<std::string>& policy_names() {
    static const std::vector<std::string> names{kProductName, "gim", "gvt-g", "xe", "sfq"};
    return names;
}

std::unique_ptr<Policy> policy_named(std::string_view name) {
    if (name == "gim") return std::make_unique<GimRoundRobin>();
    if (name == "gvt-g") return std::make_unique<GvtCredit>();
    if (name == "xe") return std::make_unique<XeSlices>();
    if (name == "sfq") return std::make_unique<StartTimeFair>();
    return nullptr;
}

}  // namespace vgpu::simulator
