// SPDX-License-Identifier: MIT
#include "daemon/service/trace/event.h"

#include "daemon/backend/vf_limit.h"
#include "daemon/service/state/crc32c.h"

#include <cstring>
#include <set>
#include <string>

namespace vgpu::daemon::trace {

namespace {

using scheduler::FluidClass;
using scheduler::FluidClient;
using scheduler::FluidImage;

/// Limit of service in ns, larger than any run. Because of the limits in this file and in
/// archive.h, a replay of a hostile recording is safe: sums and products fit in 128 bits, and lists
/// are not longer than a GPU allows.
constexpr std::int64_t kServiceLimit = std::int64_t{1} << 56;
/// Limit of |lag| in ns.
constexpr std::int64_t kLagLimit = std::int64_t{1} << 50;
constexpr std::int64_t kGenerationLimit = INT64_MAX;
constexpr std::int64_t kLongestGapMs = 60'000;

template <typename A> void walk_vf(A& archive, std::uint32_t& vf) {
    archive.number(vf, 1, VGPU_PF_MAX_VFS);
}

template <typename A, typename T> void walk_service(A& archive, T& ns) {
    archive.number(ns, 0, kServiceLimit);
}

/// Stores an enumerator as its number, so enumerators may be renamed but not reordered. `max`: the
/// last enumerator.
template <typename A, typename Enum> void walk_enum(A& archive, Enum& value, Enum max) {
    auto number = static_cast<std::uint32_t>(value);
    archive.number(number, 0, static_cast<std::int64_t>(max));
    value = static_cast<Enum>(number);
}

/// Each walk() writes its type with a Writer and reads it with a Reader. The order of the calls in
/// walk() is the file format.
template <typename A> void walk(A& archive, GpuSchedule::Member& member) {
    walk_vf(archive, member.vf);
    archive.number(member.weight, scheduler::kMinWeight, scheduler::kMaxWeight);
    archive.number(member.quantum_us, scheduler::kMinQuantumUs, scheduler::kMaxQuantumUs);
    // the members of VfQos that are real numbers, in the order of vf_settings.def
#define VF_SETTING(...)
#define VF_REAL(key, path, section, kind, property, help) \
    archive.real(member.qos.key, kind.min, kind.max);
#include "schemas/vf_settings.def"
    walk_enum(archive, member.qos.mode, scheduler::SlotMode::Gang);
    walk_enum(archive, member.qos.priority_class, scheduler::PriorityClass::Low);
}

template <typename A>
void walk_members(A& archive, std::vector<GpuSchedule::Member>& members, std::uint32_t& gap_ms) {
    archive.list(members, VGPU_PF_MAX_VFS, [](A& a, auto& member) { walk(a, member); });
    archive.number(gap_ms, 1, kLongestGapMs);
}

template <typename A> void walk(A& archive, MembersSet& event) {
    archive.time(event.at);
    walk_members(archive, event.members, event.max_gap_ms);
    walk_map(archive, event.names, VGPU_PF_MAX_VFS, [](A& a, auto& vf, auto& name) {
        walk_vf(a, vf);
        a.text(name);
    });
}

template <typename A> void walk(A& archive, Ran& event) {
    archive.time(event.end);
    walk_vf(archive, event.vf);
    walk_service(archive, event.ns);
    walk_service(archive, event.reserved_ns);
}

template <typename A> void walk(A& archive, Woke& event) {
    archive.time(event.at);
    walk_vf(archive, event.vf);
}

template <typename A> void walk(A& archive, WentIdle& event) {
    archive.time(event.at);
    walk_vf(archive, event.vf);
    archive.flag(event.is_inactive);
}

template <typename A> void walk(A& archive, Throttled& event) {
    archive.time(event.at);
    walk_vf(archive, event.vf);
}

template <typename A> void walk(A& archive, Missed& event) {
    walk_vf(archive, event.vf);
    walk_service(archive, event.ns);
    walk_service(archive, event.reserved_ns);
}

template <typename A> void walk(A&, Restarted&) {}

template <typename A> void walk(A& archive, TableMade& event) {
    archive.time(event.at);
    archive.number(event.generation, 0, kGenerationLimit);
    archive.flag(event.is_made);
    archive.number(event.digest, 0, UINT32_MAX);
}

template <typename A> void walk(A& archive, TableInstalled& event) {
    archive.time(event.at);
}

template <typename A> void walk(A& archive, TableRefused& event) {
    archive.time(event.at);
}

template <typename A> void walk(A& archive, Annotated& event) {
    archive.time(event.at);
    archive.number(event.vf, 0, kMaxVfsPerGpu);
    archive.text(event.kind);
    archive.text(event.text);
}

template <typename A> void walk(A& archive, FluidClient& client) {
    archive.number(client.weight, scheduler::kMinWeight, scheduler::kMaxWeight);
    archive.number(client.priority_class, 0, scheduler::kPriorityClasses - 1);
    archive.flag(client.is_awake);
    archive.wide(client.received);
    archive.number(client.debt_ns, 0, kLagLimit);
    archive.wide(client.slept_at);
}

/// Does not store awake_weight: complete_fluid() computes it, so a file cannot contradict itself.
template <typename A> void walk(A& archive, FluidImage& fluid) {
    for (FluidClass& priority_class : fluid.priority_classes) archive.wide(priority_class.now);
    walk_map(archive, fluid.clients, VGPU_PF_MAX_VFS, [](A& a, auto& vf, auto& client) {
        walk_vf(a, vf);
        walk(a, client);
    });
}

/// The whole plan is stored, because an older vgpud with another planner may have made it.
template <typename A> void walk(A& archive, scheduler::Plan& plan) {
    archive.list(plan.entries, VGPU_PF_TABLE_ENTRIES, [](A& a, scheduler::Entry& entry) {
        walk_vf(a, entry.vf);
        a.number(entry.quantum_us, 1, UINT32_MAX);
    });
    archive.number(plan.quantum_us, 0, UINT32_MAX);
    archive.number(plan.cycle_us, 0, kLagLimit / 1000);
    archive.number(plan.worst_gap_us, 0, kLagLimit / 1000);
    archive.number(plan.worst_lag_ns, 0, kLagLimit);
    archive.flag(plan.is_exact);
    archive.flag(plan.corrects);
}

template <typename A> void walk_times(A& archive, std::map<std::uint32_t, Nanoseconds>& times) {
    walk_map(archive, times, VGPU_PF_MAX_VFS, [](A& a, auto& vf, auto& at) {
        walk_vf(a, vf);
        a.time(at);
    });
}

template <typename A> void walk_set(A& archive, std::set<std::uint32_t>& vfs) {
    std::vector<std::uint32_t> list(vfs.begin(), vfs.end());
    archive.list(list, VGPU_PF_MAX_VFS, [](A& a, auto& vf) { walk_vf(a, vf); });
    vfs = {list.begin(), list.end()};
}

template <typename A> void walk_overhead(A& archive, Nanoseconds& overhead) {
    std::int64_t ns = overhead.count();
    archive.number(ns, 0, GpuSchedule::kMaxOverhead.count());
    overhead = Nanoseconds{ns};
}

template <typename A> void walk(A& archive, GpuSchedule::Image& image) {
    constexpr double kMaxQuanta = 1e9;
    walk_members(archive, image.members, image.max_gap_ms);
    FluidImage fluid = image.fluid.image();
    walk(archive, fluid);
    image.fluid = scheduler::Fluid(fluid);
    walk(archive, image.plan);
    walk_times(archive, image.woken);
    walk_times(archive, image.asleep_since);
    walk_set(archive, image.throttled);
    walk_map(archive, image.planned_asleep, VGPU_PF_MAX_VFS, [](A& a, auto& vf, auto& is_asleep) {
        walk_vf(a, vf);
        a.flag(is_asleep);
    });
    archive.time(image.now);
    archive.time(image.installed_at);
    std::int64_t interval_ns = image.interval.count();
    archive.number(interval_ns, 1, Nanoseconds{GpuSchedule::kMaxInterval}.count());
    image.interval = Nanoseconds{interval_ns};
    archive.real(image.lag_bound_quanta, 0, kMaxQuanta);
    walk_overhead(archive, image.overhead);
    walk_overhead(archive, image.planned_overhead);
    archive.time(image.last_end);
    archive.flag(image.is_stale);
}

void check_members(const std::vector<GpuSchedule::Member>& members) {
    std::set<std::uint32_t> vfs;
    for (const GpuSchedule::Member& member : members)
        if (!vfs.insert(member.vf).second) throw BadTrace(fmt::format("VF {} twice", member.vf));
}

/// Computes the awake_weight of each priority class from its clients. Throws BadTrace if a value is
/// out of range: the lag of an awake client, or the service by which the debt of a sleeping client
/// has shrunk. Virtual time counts in 2^-32 ns (fluid.h).
scheduler::Fluid complete_fluid(FluidImage image) {
    for (auto& [vf, client] : image.clients) {
        FluidClass& priority_class = image.priority_classes.at(client.priority_class);
        if (client.is_awake) priority_class.awake_weight += client.weight;
        const Wide since =
            priority_class.now - (client.is_awake ? client.received : client.slept_at);
        const Wide ns = since * client.weight / (Wide{1} << 32);
        const Wide max = client.is_awake ? kLagLimit : kServiceLimit;
        if (ns < -Wide{kLagLimit} || ns > max)
            throw BadTrace(fmt::format("VF {}: its lag is out of range", vf));
    }
    return scheduler::Fluid(image);
}

void check(Event& event) {
    if (auto* members = std::get_if<MembersSet>(&event)) check_members(members->members);
}

/// A default value of the variant's alternative `kind`. Throws BadTrace for an unknown kind.
template <std::size_t I = 0> Event empty_event(std::size_t kind) {
    if constexpr (I == std::variant_size_v<Event>) {
        throw BadTrace(fmt::format("an event of unknown kind {}", kind));
    } else {
        if (kind == I) return std::variant_alternative_t<I, Event>{};
        return empty_event<I + 1>(kind);
    }
}

struct EventApplier {
    GpuSchedule& schedule;

    bool operator()(const MembersSet& event) const {
        schedule.set_members(event.members, event.max_gap_ms, event.at);
        return true;
    }
    bool operator()(const Ran& event) const {
        schedule.on_run(event.vf, event.ns, event.end, event.reserved_ns);
        return true;
    }
    bool operator()(const Woke& event) const {
        schedule.on_wake(event.vf, event.at);
        return true;
    }
    bool operator()(const WentIdle& event) const {
        if (event.is_inactive)
            schedule.on_inactive_idle(event.vf, event.at);
        else
            schedule.on_idle(event.vf, event.at);
        return true;
    }
    bool operator()(const Throttled& event) const {
        schedule.on_throttled(event.vf);
        return true;
    }
    bool operator()(const Missed& event) const {
        schedule.on_missed(event.vf, event.ns, event.reserved_ns);
        return true;
    }
    bool operator()(const Restarted&) const {
        schedule.restart();
        return true;
    }
    /// Checks first that a table is due, because vgpud makes a table only then.
    bool operator()(const TableMade& event) const {
        const bool was_due = schedule.needs_table(event.at);
        const auto table = schedule.make_table(event.generation, event.at);
        return was_due && table.has_value() == event.is_made &&
               (!table || digest_of(*table) == event.digest);
    }
    bool operator()(const TableInstalled& event) const {
        schedule.installed(event.at);
        return true;
    }
    bool operator()(const TableRefused& event) const {
        schedule.refused(event.at);
        return true;
    }
    bool operator()(const Annotated&) const { return true; }
};

}  // namespace

std::uint32_t digest_of(const vgpu_pf_run_table& table) {
    std::string bytes(sizeof table, '\0');
    std::memcpy(bytes.data(), &table, sizeof table);
    return crc32c(bytes);
}

bool apply(const Event& event, GpuSchedule& schedule) {
    return std::visit(EventApplier{schedule}, event);
}

Json json_of(const Event& event, Nanoseconds& last) {
    Json json = Json::array({event.index()});
    Writer writer(json, last);
    std::visit([&](auto copy) { walk(writer, copy); }, event);
    return json;
}

Event event_of(const Json& json, Nanoseconds& last) {
    if (!json.is_array() || json.empty() || !json[0].is_number_unsigned())
        throw BadTrace("an item is not an event");
    Event event = empty_event(json[0].get<std::size_t>());
    Reader reader(json, last, 1);
    std::visit([&](auto& members) { walk(reader, members); }, event);
    reader.end();
    check(event);
    return event;
}

Json json_of(const GpuSchedule::Image& image, Nanoseconds& last) {
    Json json = Json::array();
    Writer writer(json, last);
    GpuSchedule::Image copy = image;
    walk(writer, copy);
    return json;
}

GpuSchedule::Image image_of(const Json& json, Nanoseconds& last) {
    GpuSchedule::Image image;
    Reader reader(json, last);
    walk(reader, image);
    reader.end();
    check_members(image.members);
    image.fluid = complete_fluid(image.fluid.image());
    return image;
}

}  // namespace vgpu::daemon::trace
