// SPDX-License-Identifier: MIT
#include "daemon/simulator/recording_export.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

namespace vgpu::simulator {

using daemon::GpuSchedule;
using daemon::Nanoseconds;
using namespace daemon::trace;
using OrderedJson = nlohmann::ordered_json;

namespace {

constexpr double kNsPerUs = 1e3;

double us_of(Nanoseconds ns) {
    return static_cast<double>(ns.count()) / kNsPerUs;
}

std::string text_of(const OrderedJson& json) {
    return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

// --- Trace Event Format

/// Phases ("ph"): M metadata, X an event with a duration, i an instant, C a counter. Each VF is a
/// thread; thread 0 is vgpud.
class ChromeTrace {
public:
    explicit ChromeTrace(const Recording& recording)
        : recording_(recording), begin_(period_of(recording).begin) {}

    std::string text() {
        name("process_name", 0, recording_.gpu);
        name("thread_name", 0, "vgpud");
        for (const auto& [vf, figures] : figures_of(recording_).vfs) record_vf(vf);
        replay(recording_, [this](const Event& event, const GpuSchedule& schedule) {
            std::visit([&](const auto& one) { add(one, schedule); }, event);
        });
        return text_of({{"displayTimeUnit", "ms"},
                        {"otherData", {{"gpu", recording_.gpu}, {"vgpud", recording_.vgpud}}},
                        {"traceEvents", std::move(events_)}});
    }

private:
    void name(const char* what, std::uint32_t thread, const std::string& name) {
        events_.push_back(
            {{"ph", "M"}, {"name", what}, {"pid", 1}, {"tid", thread}, {"args", {{"name", name}}}});
    }

    /// Names the thread of a VF, once.
    void record_vf(std::uint32_t vf) {
        if (named_.insert(vf).second) name("thread_name", vf, name_in(recording_, vf));
    }

    OrderedJson& push(const char* phase, const std::string& name, std::uint32_t thread,
                      Nanoseconds at) {
        events_.push_back({{"ph", phase},
                           {"name", name},
                           {"pid", 1},
                           {"tid", thread},
                           {"ts", us_of(at - begin_)}});
        return events_.back();
    }

    OrderedJson& instant(const std::string& name, std::uint32_t thread, Nanoseconds at) {
        OrderedJson& event = push("i", name, thread, at);
        event["s"] = "t";  // scope: the thread
        return event;
    }

    void add(const Ran& ran, const GpuSchedule& schedule) {
        OrderedJson& run = push("X", "run", ran.vf, begin_of(ran));
        run["dur"] = us_of(Nanoseconds{ran.ns});
        run["args"] = {{"reserved_us", us_of(Nanoseconds{ran.reserved_ns})}};
        OrderedJson& lags = push("C", "lag ms", 0, ran.end);
        for (const std::uint32_t vf : named_)
            if (schedule.fluid().has(vf))
                lags["args"][name_in(recording_, vf)] =
                    ms_of(Nanoseconds{schedule.fluid().lag_ns(vf)});
    }
    void add(const Woke& woke, const GpuSchedule&) { instant("work", woke.vf, woke.at); }
    void add(const WentIdle& idle, const GpuSchedule&) { instant("no work", idle.vf, idle.at); }
    void add(const Throttled& cap, const GpuSchedule&) { instant("throttled", cap.vf, cap.at); }
    void add(const MembersSet& set, const GpuSchedule&) {
        OrderedJson& event = instant("contracts", 0, set.at);
        for (const GpuSchedule::Member& member : set.members)
            event["args"][name_in(recording_, member.vf)] = member.weight;
    }
    void add(const TableMade& table, const GpuSchedule&) {
        instant(fmt::format("table {}", table.generation), 0, table.at);
    }
    void add(const TableInstalled& table, const GpuSchedule& schedule) {
        instant("installed", 0, table.at)["args"] = {
            {"entries", schedule.plan().entries.size()},
            {"cycle_us", schedule.plan().cycle_us},
            {"worst_gap_us", schedule.plan().worst_gap_us}};
    }
    void add(const TableRefused& table, const GpuSchedule&) { instant("refused", 0, table.at); }
    void add(const Annotated& event, const GpuSchedule&) {
        instant(event.kind, event.vf, event.at)["args"] = {{"text", event.text}};
    }
    void add(const Missed&, const GpuSchedule&) {}
    void add(const Restarted&, const GpuSchedule&) {}

    const Recording& recording_;
    Nanoseconds begin_;
    std::set<std::uint32_t> named_;
    OrderedJson events_ = OrderedJson::array();
};

}  // namespace

Period period_of(const Recording& recording) {
    Period period{.begin = Nanoseconds::max(), .end = Nanoseconds::min()};
    for (const RecordedChunk& chunk : recording.chunks)
        for (const Event& event : chunk.events) {
            const auto* ran = std::get_if<Ran>(&event);
            const auto at = time_of(event);
            if (!at) continue;
            period.begin = std::min(period.begin, ran != nullptr ? begin_of(*ran) : *at);
            period.end = std::max(period.end, *at);
        }
    if (period.begin > period.end) return {};
    return period;
}

RecordedFigures figures_of(const Recording& recording) {
    RecordedFigures figures{.period = period_of(recording)};
    const auto record_members = [&](const std::vector<GpuSchedule::Member>& members) {
        for (const GpuSchedule::Member& member : members)
            figures.vfs[member.vf].weight = member.weight;
    };
    for (const RecordedChunk& chunk : recording.chunks) record_members(chunk.image.members);
    replay(recording, [&](const Event& event, const GpuSchedule& schedule) {
        if (const auto* set = std::get_if<MembersSet>(&event)) record_members(set->members);
        if (std::holds_alternative<Annotated>(event)) ++figures.annotations;
        if (const auto* woke = std::get_if<Woke>(&event)) ++figures.vfs[woke->vf].wakes;
        const auto* ran = std::get_if<Ran>(&event);
        if (ran == nullptr) return;
        RecordedVf& vf = figures.vfs[ran->vf];
        ++vf.runs;
        vf.service_ns += ran->ns;
        vf.reserved_ns += ran->reserved_ns;
        figures.service_ns += ran->ns;
        vf.longest_run_ns = std::max(vf.longest_run_ns, ran->ns);
        for (auto& [number, one] : figures.vfs)
            one.worst_lag_ns =
                std::max(one.worst_lag_ns, std::abs(schedule.fluid().lag_ns(number)));
    });
    return figures;
}

std::string chrome_trace(const Recording& recording) {
    return ChromeTrace(recording).text();
}

}  // namespace vgpu::simulator
