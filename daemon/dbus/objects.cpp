// SPDX-License-Identifier: MIT
#include "daemon/dbus/objects.h"

#include "daemon/service/words.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>

namespace vgpu::daemon::dbus {

namespace {

constexpr std::uint32_t kApiVersion = 1;
/// ListVfs, ListGpus and Capacity wait at most this long for fresh values. A GPU that is already
/// late with an earlier answer causes no wait.
constexpr Nanoseconds kRefreshLimit = std::chrono::milliseconds(20);

/// The parsed options of ListVfs or ListGpus.
struct Listing {
    std::vector<GpuHost*> gpus;
    PropertyFilter filter;
    Nanoseconds max_age{0};  ///< values up to this age count as fresh
};

/// Asks all `gpus` first, then waits for their answers, at most kRefreshLimit in all.
void refresh_gpus(const std::vector<GpuHost*>& gpus, Freshness freshness,
                  Nanoseconds max_age = Nanoseconds::zero()) {
    std::vector<GpuHost*> waited_for;
    for (GpuHost* gpu : gpus)
        if (gpu->request_refresh(freshness, max_age)) waited_for.push_back(gpu);
    const auto until = std::chrono::steady_clock::now() + kRefreshLimit;
    for (GpuHost* gpu : waited_for)
        gpu->await_refresh(
            std::max(Nanoseconds::zero(), Nanoseconds{until - std::chrono::steady_clock::now()}));
}

Result<Nanoseconds> max_age_of(const OptionReader& reader) {
    constexpr Range kMilliseconds{0, 10'000};
    TRY(const auto ms, reader.number("max_age_ms", kMilliseconds));
    return std::chrono::milliseconds(ms.value_or(0));
}

Result<Listing> vfs_to_list(const Manager& manager, const Options& options) {
    constexpr std::array<std::string_view, 3> kKnown{"gpu", "max_age_ms", "properties"};
    const OptionReader reader(options);
    TRY_VOID(reader.only(kKnown));
    TRY(const auto gpu, reader.text("gpu"));
    if (gpu) TRY_VOID(manager.gpu_of(*gpu));
    TRY(const auto names, reader.text("properties"));
    Listing listing;
    TRY(listing.filter, PropertyFilter::of_vf(names.value_or("")));
    TRY(listing.max_age, max_age_of(reader));
    for (const auto& each : manager.gpus())
        if (!gpu || each->id() == *gpu) listing.gpus.push_back(each.get());
    return listing;
}

Result<Listing> gpus_to_list(const Manager& manager, const Options& options) {
    constexpr std::array<std::string_view, 2> kKnown{"max_age_ms", "properties"};
    const OptionReader reader(options);
    TRY_VOID(reader.only(kKnown));
    TRY(const auto names, reader.text("properties"));
    Listing listing;
    TRY(listing.filter, PropertyFilter::of_gpu(names.value_or("")));
    TRY(listing.max_age, max_age_of(reader));
    for (const auto& each : manager.gpus()) listing.gpus.push_back(each.get());
    return listing;
}

/// The VFs to list. Each element of `vfs` points to a view in a snapshot of `seen`, or to a copy in
/// `completed`, which complete() has changed. `completed` is a deque, because its elements must not
/// move.
struct ListedVfs {
    std::vector<std::shared_ptr<const GpuSnapshot>> seen;
    std::deque<VfView> completed;
    std::vector<const VfView*> vfs;
    PropertyFilter filter;
};

/// Returns a completed copy of `view`, which `listed` keeps, if complete() may change a requested
/// property; otherwise `view` itself.
const VfView& complete_if_needed(const Context& context, const VfView& view, ListedVfs& listed) {
    const bool has_something_to_add = listed.filter.includes("Agent") || needs_domain_facts(view);
    if (!has_something_to_add || !listed.filter.needs_completion()) return view;
    complete(context, listed.completed.emplace_back(view));
    return listed.completed.back();
}

/// Reads the VFs for ListVfs. Throws sdbus::Error for invalid options.
ListedVfs vfs_of(const Context& context, const Dict& options) {
    auto query = vfs_to_list(context.manager, options_of(options));
    if (!query) throw to_dbus(query.error());
    refresh_gpus(query->gpus, query->filter.freshness(), query->max_age);
    ListedVfs listed{.seen = {}, .completed = {}, .vfs = {}, .filter = std::move(query->filter)};
    for (const GpuHost* gpu : query->gpus) {
        listed.seen.push_back(gpu->snapshot());
        for (const auto& [vf, view] : listed.seen.back()->vfs)
            listed.vfs.push_back(&complete_if_needed(context, view, listed));
    }
    return listed;
}

struct EventQuery {
    std::uint64_t after = 0;
    std::size_t limit = EventLog::kCapacity;
};

Result<EventQuery> event_query(const Options& options) {
    constexpr std::array<std::string_view, 2> kKnown{"after", "limit"};
    const OptionReader reader(options);
    TRY_VOID(reader.only(kKnown));
    TRY(const auto after, reader.number("after", {}));
    TRY(const auto limit, reader.number("limit", {1, EventLog::kCapacity}));
    return EventQuery{.after = after.value_or(0), .limit = limit.value_or(EventLog::kCapacity)};
}

Result<std::vector<VfSelector>> selectors_of(
    const std::vector<sdbus::Struct<std::string, std::string>>& query) {
    TRY_VOID(check_selector_count(query.size()));
    std::vector<VfSelector> selectors;
    for (const auto& one : query) {
        TRY(VfSelector selector, selector_of(std::get<0>(one), std::get<1>(one)));
        selectors.push_back(std::move(selector));
    }
    return selectors;
}

std::vector<Dict> dicts_of(const std::vector<AssignedVf>& given) {
    std::vector<Dict> all;
    for (const AssignedVf& one : given)
        all.push_back(
            {{"Path", sdbus::Variant{sdbus::ObjectPath{vf_path(one.target.gpu, one.target.vf)}}},
             {"Target", sdbus::Variant{one.target.gpu + "/vf" + std::to_string(one.target.vf)}},
             {"Generation", sdbus::Variant{one.generation}},
             {"Socket", sdbus::Variant{one.path}}});
    return all;
}

Dict dict_of(const CapacityRow& row) {
    return {{"Gpu", sdbus::Variant{row.gpu}},
            {"GpuState", sdbus::Variant{std::string(name_of(row.gpu_state))}},
            {"Profile", sdbus::Variant{row.profile}},
            {"Total", sdbus::Variant{row.total}},
            {"Free", sdbus::Variant{row.free}},
            {"Claimed", sdbus::Variant{row.claimed}},
            {"Unavailable", sdbus::Variant{row.unavailable}}};
}

}  // namespace

ManagerObject::ManagerObject(Context& context)
    : AdaptorInterfaces(context.bus, sdbus::ObjectPath{"/org/vgpu1"}), context_(context) {
    registerAdaptor();
}

ManagerObject::~ManagerObject() {
    calls_.end_all(stopping());
    unregisterAdaptor();
}

void ManagerObject::CreateVf(sdbus::Result<sdbus::ObjectPath>&& result, std::string gpu,
                             SentOptions options) {
    check_argument("gpu", gpu);
    run_if_authorized<sdbus::ObjectPath>(
        context_, {calls_, current_sender(getObject())}, kProvisionAction, std::move(result),
        [&manager = context_.manager, gpu = std::move(gpu),
         values = options_of(options)](const Done<sdbus::ObjectPath>& done) {
            manager.create(gpu, values, [done](const Result<Target>& made) {
                if (!made) return done(tl::make_unexpected(made.error()));
                done(sdbus::ObjectPath{vf_path(made->gpu, made->vf)});
            });
        });
}

Dict ManagerObject::ListVfs(const SentOptions& options) {
    const ListedVfs listed = vfs_of(context_, options);
    return columns_of(listed.vfs, listed.filter);
}

std::vector<Dict> ManagerObject::ListGpus(const SentOptions& options) {
    const auto query = gpus_to_list(context_.manager, options_of(options));
    if (!query) throw to_dbus(query.error());
    refresh_gpus(query->gpus, Freshness::Gpu, query->max_age);
    std::vector<Dict> all;
    for (const GpuHost* gpu : query->gpus)
        all.push_back(properties_of(gpu->snapshot()->gpu, query->filter));
    return all;
}

std::vector<Dict> ManagerObject::Capacity(const SentOptions& options) {
    const Options values = options_of(options);
    if (const auto known = OptionReader(values).only({}); !known) throw to_dbus(known.error());
    std::vector<GpuHost*> gpus;
    for (const auto& gpu : context_.manager.gpus()) gpus.push_back(gpu.get());
    refresh_gpus(gpus, Freshness::Events);
    std::vector<Dict> all;
    for (const CapacityRow& row : capacity_.update(context_.manager)) all.push_back(dict_of(row));
    return all;
}

sdbus::ObjectPath ManagerObject::Resolve(const std::string& target, const SentOptions& options) {
    check_argument("target", target);
    const Options values = options_of(options);
    if (const auto known = OptionReader(values).only({}); !known) throw to_dbus(known.error());
    const auto found = context_.manager.resolve(target);
    if (!found) throw to_dbus(found.error());
    return sdbus::ObjectPath{found->vf == 0 ? gpu_path(found->gpu)
                                            : vf_path(found->gpu, found->vf)};
}

std::vector<Dict> ManagerObject::RecentEvents(const SentOptions& options) {
    const auto query = event_query(options_of(options));
    if (!query) throw to_dbus(query.error());
    std::vector<Dict> all;
    for (const LoggedEvent& event : context_.events.since(query->after, query->limit))
        all.push_back(dict_of(event));
    return all;
}

void ManagerObject::Plan(sdbus::Result<std::string>&& result, std::string config,
                         SentOptions options) {
    check_document(config);
    const auto text = std::make_shared<const std::string>(std::move(config));
    run_for_any_caller<std::string>(
        context_, {calls_, current_sender(getObject())}, std::move(result),
        [this, text, values = options_of(options)](const Done<std::string>& done) {
            context_.deferred_work.add(
                [&jobs = context_.jobs, text, values, done] { jobs.plan(*text, values, done); });
        });
}

void ManagerObject::Apply(sdbus::Result<sdbus::ObjectPath>&& result, std::string config,
                          SentOptions options) {
    check_document(config);
    const auto text = std::make_shared<const std::string>(std::move(config));
    run_if_authorized<sdbus::ObjectPath>(
        context_, {calls_, current_sender(getObject())}, kProvisionAction, std::move(result),
        [this, text, values = options_of(options)](const Done<sdbus::ObjectPath>& done) {
            context_.deferred_work.add([&jobs = context_.jobs, text, values, done] {
                done(jobs.apply(*text, values).map(job_path));
            });
        });
}

void ManagerObject::Export(sdbus::Result<std::string>&& result, SentOptions options) {
    run_for_any_caller<std::string>(context_, {calls_, current_sender(getObject())},
                                    std::move(result), [&](const Done<std::string>& done) {
                                        context_.jobs.export_document(options_of(options), done);
                                    });
}

void ManagerObject::AutoConfig(sdbus::Result<std::string>&& result, SentOptions options) {
    run_for_any_caller<std::string>(context_, {calls_, current_sender(getObject())},
                                    std::move(result), [&](const Done<std::string>& done) {
                                        context_.jobs.automatic_document(options_of(options), done);
                                    });
}

void ManagerObject::Assign(sdbus::Result<std::vector<Dict>>&& result, std::string owner,
                           std::vector<sdbus::Struct<std::string, std::string>> selectors,
                           SentOptions options) {
    check_owner(owner);
    auto parsed = selectors_of(selectors);
    if (!parsed) throw to_dbus(parsed.error());
    run_if_authorized<std::vector<Dict>>(
        context_, {calls_, current_sender(getObject())}, kAssignAction, std::move(result),
        [&assignments = context_.assignments, owner = std::move(owner), parsed = *std::move(parsed),
         values = options_of(options)](const Done<std::vector<Dict>>& done) {
            assignments.assign(owner, parsed, values,
                               [done](const Result<std::vector<AssignedVf>>& given) {
                                   if (!given) return done(tl::make_unexpected(given.error()));
                                   done(dicts_of(*given));
                               });
        });
}

void ManagerObject::Grant(sdbus::Result<>&& result, std::string owner, std::uint32_t uid,
                          std::uint32_t gid, SentOptions options) {
    check_owner(owner);
    run_if_authorized(context_, {calls_, current_sender(getObject())}, kAssignAction,
                      std::move(result),
                      [&assignments = context_.assignments, owner = std::move(owner), uid, gid,
                       values = options_of(options)](const Done<>& done) {
                          done(assignments.grant(owner, uid, gid, values));
                      });
}

void ManagerObject::Unassign(sdbus::Result<std::uint32_t>&& result, std::string owner,
                             SentOptions options) {
    check_owner(owner);
    run_if_authorized<std::uint32_t>(
        context_, {calls_, current_sender(getObject())}, kAssignAction, std::move(result),
        [&assignments = context_.assignments, owner = std::move(owner),
         values = options_of(options)](const Done<std::uint32_t>& done) {
            assignments.unassign(owner, values, done);
        });
}

void ManagerObject::Adopt(sdbus::Result<std::uint32_t>&& result, std::string owner,
                          SentOptions options) {
    check_owner(owner);
    run_if_authorized<std::uint32_t>(
        context_, {calls_, current_sender(getObject())}, kAssignAction, std::move(result),
        [&assignments = context_.assignments, owner = std::move(owner),
         values = options_of(options)](const Done<std::uint32_t>& done) {
            assignments.adopt(owner, values, done);
        });
}

void ManagerObject::signal(const JobEvent& event) {
    const sdbus::ObjectPath path = job_path(event.id);
    if (event.result.empty())
        emitJobAdded(event.id, path);
    else
        emitJobRemoved(event.id, path, event.result);
}

void ManagerObject::refresh() {
    capacity_.update(context_.manager);
    if (std::exchange(signalled_capacity_, capacity_.count()) == capacity_.count()) return;
    emitPropertiesChangedSignal(InterfaceName{org::vgpu1::Manager_adaptor::INTERFACE_NAME},
                                {PropertyName{"CapacityCounter"}});
}

std::uint64_t ManagerObject::CapacityCounter() {
    capacity_.update(context_.manager);
    return capacity_.count();
}

std::string ManagerObject::Version() {
    return VGPU_VERSION;
}

std::uint32_t ManagerObject::ApiVersion() {
    return kApiVersion;
}

bool ManagerObject::ReadOnly() {
    return context_.manager.store().is_read_only();
}

std::string ManagerObject::StateMessage() {
    return context_.manager.store().condition();
}

std::uint64_t ManagerObject::StateGeneration() {
    return context_.manager.store().generation();
}

Objects::Objects(sdbus::IConnection& bus, Manager& manager, Agents& agents, Jobs& jobs,
                 Assignments& assignments, const Domains& domains,
                 PeerCredentials& peer_credentials, Authority& authority, const Clock& clock,
                 const EventLog& events)
    : context_{.bus = bus,
               .manager = manager,
               .agents = agents,
               .jobs = jobs,
               .assignments = assignments,
               .domains = domains,
               .peer_credentials = peer_credentials,
               .authority = authority,
               .deferred_work = deferred_,
               .clock = clock,
               .events = events,
               .request_limits = request_limits_,
               .show_new_jobs = [this] { make_job_objects(context_.jobs.list()); },
               .follow_objects = [this] { update_before_reply(); },
               .emit_changes = [this] { signal_after_reply(); }},
      manager_(context_) {
    for (const auto& gpu : manager.gpus())
        gpus_.push_back(std::make_unique<GpuObject>(context_, gpu->id()));
}

void Objects::show_first() {
    update_vf_objects(changed_gpus({}), Signals::Omitted);
    for (const auto& gpu : gpus_) gpu->refresh();
    update_and_signal_jobs();
}

void Objects::step(const std::vector<AdminEvent>& admin_events) {
    const Nanoseconds now = context_.clock.now();
    // Refresh before signalling events, because a listener may look up the object of an event.
    const bool is_due = has_changes_ && now >= next_refresh();
    if (is_due || !admin_events.empty()) {
        const bool needs_all = is_due && has_domain_changes_;
        // Call changed_gpus() even if all GPUs are refreshed, because it stores the snapshots.
        const std::set<std::string> changed = changed_gpus(admin_events);
        refresh(needs_all ? all_gpus() : changed);
    }
    if (is_due) {
        refreshed_at_ = now;
        has_changes_ = has_domain_changes_ = false;
    }
    for (const AdminEvent& admin_event : admin_events) manager_.signal(admin_event);
    deferred_.step();
}

/// The GPUs with a new snapshot or an event. Stores the snapshots for the next comparison.
std::set<std::string> Objects::changed_gpus(const std::vector<AdminEvent>& admin_events) {
    std::set<std::string> changed;
    // an event of vgpud itself names no GPU (AdminEvent)
    for (const AdminEvent& admin_event : admin_events)
        if (context_.manager.find_gpu(admin_event.gpu) != nullptr) changed.insert(admin_event.gpu);
    for (const auto& gpu : context_.manager.gpus()) {
        auto snapshot = gpu->snapshot();
        if (snapshots_[gpu->id()] == snapshot) continue;
        snapshots_[gpu->id()] = std::move(snapshot);
        changed.insert(gpu->id());
    }
    return changed;
}

std::set<std::string> Objects::all_gpus() const {
    std::set<std::string> all;
    for (const std::string& id : context_.manager.gpu_ids()) all.insert(id);
    return all;
}

void Objects::refresh(const std::set<std::string>& gpus) {
    update_vf_objects(gpus);
    emit_changes(gpus);
    update_and_signal_jobs();
}

void Objects::update_before_reply() {
    unsignalled_gpus_.merge(changed_gpus({}));
    update_vf_objects(unsignalled_gpus_);
    if (context_.jobs.has_changes()) make_job_objects(context_.jobs.list());
}

/// Signals changed properties before the end of the jobs that changed them.
void Objects::signal_after_reply() {
    emit_changes(std::exchange(unsignalled_gpus_, {}));
    if (context_.jobs.has_changes()) update_and_signal_jobs();
}

void Objects::emit_changes(const std::set<std::string>& gpus) {
    for (const auto& gpu : gpus_)
        if (gpus.contains(gpu->id())) gpu->refresh();
    for (const std::string& gpu : gpus)
        for (auto at = first_vf_of(gpu); is_vf_of(at, gpu); ++at) at->second->refresh();
    if (!gpus.empty()) manager_.refresh();
}

/// A VF that was recreated gets a new object.
void Objects::update_vf_objects(const std::set<std::string>& gpus, Signals signals) {
    for (const std::string& gpu : gpus) {
        const auto seen = context_.manager.find_gpu(gpu)->snapshot();
        for (auto at = first_vf_of(gpu); is_vf_of(at, gpu);) {
            const auto known = seen->vfs.find(at->first.vf);
            const bool is_same_vf =
                known != seen->vfs.end() && known->second.record.spec.uuid == at->second->vf_uuid();
            at = is_same_vf ? std::next(at) : vfs_.erase(at);
        }
        for (const auto& [vf, view] : seen->vfs) {
            const Target target{.gpu = gpu, .vf = vf};
            if (!vfs_.contains(target))
                vfs_[target] = std::make_unique<VfObject>(context_, target, view, signals);
        }
    }
}

/// Updates each job object to the last state of its job, and only then signals new and ended jobs.
void Objects::update_and_signal_jobs() {
    const std::vector<JobEvent> changes = context_.jobs.take_changes();
    const std::vector<JobView> views = context_.jobs.list();
    std::erase_if(jobs_, [&views](const auto& entry) {
        return std::ranges::find(views, entry.first, &JobView::id) == views.end();
    });
    make_job_objects(views);
    for (const JobView& view : views) jobs_.at(view.id)->show(view);
    for (const JobEvent& one : changes) manager_.signal(one);
}

void Objects::make_job_objects(const std::vector<JobView>& views) {
    for (const JobView& view : views)
        if (!jobs_.contains(view.id)) jobs_[view.id] = std::make_unique<JobObject>(context_, view);
}

}  // namespace vgpu::daemon::dbus
