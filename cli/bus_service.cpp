// SPDX-License-Identifier: MIT
//
// BusService: implements Service with the generated proxies. Converts answers to plain values, and
// errors to ServiceErrors.
#include "cli/service.h"

#include "cli/bus_call.h"
#include "daemon/exporter/bus_values.h"
#include "daemon/exporter/reader.h"

#include <poll.h>
#include <sdbus-c++/sdbus-c++.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <optional>
#include <type_traits>
#include <utility>

#include "vgpu1/gpu_proxy.h"
#include "vgpu1/job_proxy.h"
#include "vgpu1/manager_proxy.h"
#include "vgpu1/vf_proxy.h"

namespace vgpu::cli {

namespace {

using exporter::all_properties;
using exporter::Dict;
using exporter::kService;
using exporter::properties_of;
using exporter::rows_of;

/// A proxy of a GPU, VF or job, for one call. The constructor does not call vgpud.
template <typename Interface> class Proxy final : public sdbus::ProxyInterfaces<Interface> {
public:
    Proxy(sdbus::IConnection& bus, const std::string& path)
        : sdbus::ProxyInterfaces<Interface>(bus, kService, path) {
        this->registerProxy();
    }
    ~Proxy() { this->unregisterProxy(); }
};

class ManagerProxy final : public sdbus::ProxyInterfaces<org::vgpu1::Manager_proxy> {
public:
    explicit ManagerProxy(sdbus::IConnection& bus) : ProxyInterfaces(bus, kService, "/org/vgpu1") {
        registerProxy();
    }
    ~ManagerProxy() { unregisterProxy(); }

    /// True if an event has arrived since the last call.
    bool take_event() { return std::exchange(has_event_, false); }

private:
    void onEvent(const std::string&, const std::uint32_t&, const std::string&,
                 const std::string&) override {
        has_event_ = true;
    }

    void onJobAdded(const std::uint32_t&, const sdbus::ObjectPath&) override {}
    void onJobRemoved(const std::uint32_t&, const sdbus::ObjectPath&, const std::string&) override {
    }

    bool has_event_ = false;
};

/// The name of the property for a key of vgpud's dictionaries: "TimeUs" for "time_us".
std::string property_name(const std::string& key) {
    std::string name;
    bool is_start = true;
    for (const char letter : key) {
        const bool is_gap = letter == '_';
        if (!is_gap)
            name += is_start ? static_cast<char>(std::toupper(static_cast<unsigned char>(letter)))
                             : letter;
        is_start = is_gap;
    }
    return name;
}

/// The content of a memfd, cut at 16 MiB.
std::string text_in(const sdbus::UnixFd& memory) {
    constexpr std::size_t kMax = 16u << 20;
    std::string text;
    std::array<char, 65536> buffer{};
    while (text.size() < kMax) {
        const ssize_t got =
            ::pread(memory.get(), buffer.data(), buffer.size(), static_cast<off_t>(text.size()));
        if (got <= 0) break;
        text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return text;
}

Dict dict_of(const Options& options) {
    Dict dict;
    for (const auto& [name, value] : options)
        dict[name] = std::visit([](const auto& plain) { return sdbus::Variant{plain}; }, value);
    return dict;
}

/// Runs `work`, which calls vgpud only through BusCall. BusCall turns errors of these calls into
/// ServiceErrors, so an sdbus::Error here means that the connection to the bus is lost. The
/// function then throws Disconnected. `job_fate`: what happens to the job, for the error text; may
/// be empty.
template <typename Work> auto with_bus_errors(Work work, const std::string& job_fate) {
    try {
        return work();
    } catch (const sdbus::Error& error) {
        throw ServiceError("org.freedesktop.DBus.Error.Disconnected",
                           "the bus is gone" + job_fate + ": " + error.getMessage());
    }
}

Dict list_options(const std::string& names, std::uint32_t max_age_ms) {
    Dict options;
    if (!names.empty()) options["properties"] = sdbus::Variant{names};
    if (max_age_ms > 0) options["max_age_ms"] = sdbus::Variant{max_age_ms};
    return options;
}

class BusService final : public Service {
public:
    explicit BusService(std::unique_ptr<sdbus::IConnection> bus)
        : bus_(std::move(bus)), manager_(*bus_), call_(*bus_) {}

    Properties manager() override {
        return call_(Limit::Read, [this] {
            return all_properties(*bus_, kService, "/org/vgpu1",
                                  org::vgpu1::Manager_proxy::INTERFACE_NAME);
        });
    }
    std::vector<Properties> list_gpus_with(const std::string& names,
                                           std::uint32_t max_age_ms) override {
        return call_(Limit::Read, [&] {
            return properties_of(manager_.ListGpus(list_options(names, max_age_ms)));
        });
    }
    std::vector<Properties> list_vfs_with(const std::string& names,
                                          std::uint32_t max_age_ms) override {
        return call_(Limit::Read,
                     [&] { return rows_of(manager_.ListVfs(list_options(names, max_age_ms))); });
    }
    std::vector<Properties> capacity() override {
        return call_(Limit::Read, [&] { return properties_of(manager_.Capacity({})); });
    }
    Properties object(const std::string& path) override {
        return call_(Limit::Read, [&] {
            const char* const interface = path.find("/vf/") == std::string::npos
                                              ? org::vgpu1::Gpu_proxy::INTERFACE_NAME
                                              : org::vgpu1::Vf_proxy::INTERFACE_NAME;
            Properties properties = all_properties(*bus_, kService, path, interface);
            properties["Path"] = path;
            properties["Target"] = target_of_path(path);
            return properties;
        });
    }
    std::string resolve(const std::string& target) override {
        return call_(Limit::Read, [&] { return std::string(manager_.Resolve(target, {})); });
    }
    std::string create_vf(const std::string& gpu, const Options& options) override {
        return call_(Limit::Change,
                     [&] { return std::string(manager_.CreateVf(gpu, dict_of(options))); });
    }
    void set_gpu(const std::string& path, const Options& options) override {
        call_(Limit::Change,
              [&] { Proxy<org::vgpu1::Gpu_proxy>(*bus_, path).Set(dict_of(options)); });
    }
    void set_vf(const std::string& path, const Options& options) override {
        call_(Limit::Change,
              [&] { Proxy<org::vgpu1::Vf_proxy>(*bus_, path).Set(dict_of(options)); });
    }
    std::uint64_t claim_vf(const std::string& path, const std::string& owner,
                           const Options& options) override {
        return call_(Limit::Change, [&] {
            return std::uint64_t{
                Proxy<org::vgpu1::Vf_proxy>(*bus_, path).Claim(owner, dict_of(options))};
        });
    }
    void release_vf(const std::string& path, const std::string& owner, std::uint64_t generation,
                    const Options& options) override {
        call_(Limit::Change, [&] {
            Proxy<org::vgpu1::Vf_proxy>(*bus_, path).Release(owner, generation, dict_of(options));
        });
    }
    std::vector<Properties> assign_vfs(
        const std::string& owner, const std::vector<std::pair<std::string, std::string>>& selectors,
        const Options& options) override {
        return call_(Limit::Change, [&] {
            std::vector<sdbus::Struct<std::string, std::string>> sent;
            for (const auto& [by, value] : selectors) sent.emplace_back(by, value);
            return properties_of(manager_.Assign(owner, sent, dict_of(options)));
        });
    }
    void grant_vfs(const std::string& owner, std::uint32_t uid, std::uint32_t gid) override {
        call_(Limit::Change, [&] { manager_.Grant(owner, uid, gid, {}); });
    }
    std::uint64_t unassign_vfs(const std::string& owner) override {
        return call_(Limit::Change, [&] { return std::uint64_t{manager_.Unassign(owner, {})}; });
    }
    std::uint64_t adopt_vfs(const std::string& owner, const Options& options) override {
        return call_(Limit::Change,
                     [&] { return std::uint64_t{manager_.Adopt(owner, dict_of(options))}; });
    }
    void limit_calls(std::chrono::milliseconds limit) override { call_.cap(limit); }
    void control(const std::string& path, VfAction action, const Options& options) override {
        call_(Limit::Change, [&] {
            Proxy<org::vgpu1::Vf_proxy> vf(*bus_, path);
            return action == VfAction::Pause ? vf.Pause(dict_of(options))
                                             : vf.Stop(dict_of(options));
        });
    }
    std::string start_job(const std::string& path, VfJob job, const Options& options) override {
        using Vf = org::vgpu1::Vf_proxy;
        // in the order of VfJob
        static constexpr std::array kMethods{
            &Vf::Destroy,  &Vf::Reset,   &Vf::Resume, &Vf::ClearQuarantine,
            &Vf::SelfTest, &Vf::Quiesce, &Vf::Thaw};
        return call_(Limit::Change, [&] {
            watch_name_owner();  // before the call, so that await_job() notices if vgpud ends
            Proxy<Vf> vf(*bus_, path);
            return std::string((vf.*kMethods.at(static_cast<std::size_t>(job)))(dict_of(options)));
        });
    }

    std::vector<Properties> recent_events(std::uint64_t after, std::uint64_t limit) override {
        return call_(Limit::Read, [&] {
            std::vector<Properties> events;
            const Dict options{{"after", sdbus::Variant{after}}, {"limit", sdbus::Variant{limit}}};
            for (const Dict& event : manager_.RecentEvents(options)) {
                Properties named;
                for (auto& [key, value] : properties_of(event)) named[property_name(key)] = value;
                events.push_back(std::move(named));
            }
            return events;
        });
    }
    bool is_running() override {
        return call_(Limit::Read, [this] {
            constexpr const char* kBus = "org.freedesktop.DBus";
            bool has_owner = false;
            sdbus::createProxy(*bus_, kBus, "/org/freedesktop/DBus")
                ->callMethod("NameHasOwner")
                .onInterface(kBus)
                .withArguments(std::string(kService))
                .storeResultsTo(has_owner);
            return has_owner;
        });
    }
    BusChange wait_for_change(const std::vector<pollfd>& stop_on) override {
        return with_bus_errors(
            [&] {
                watch_name_owner();
                return next_change(stop_on);
            },
            "");
    }
    std::string plan(const std::string& config, const Options& options) override {
        return call_(Limit::Inventory, [&] { return manager_.Plan(config, dict_of(options)); });
    }
    std::string apply(const std::string& config, const Options& options) override {
        return call_(Limit::Change, [&] {
            watch_name_owner();  // before the call, so that await_job() notices if vgpud ends
            return std::string(manager_.Apply(config, dict_of(options)));
        });
    }
    std::string export_config(const Options& options) override {
        return call_(Limit::Inventory, [&] { return manager_.Export(dict_of(options)); });
    }
    std::string auto_config(const Options& options) override {
        return call_(Limit::Inventory, [&] { return manager_.AutoConfig(dict_of(options)); });
    }
    std::optional<Properties> await_job(const std::string& path,
                                        const std::function<bool(const Properties&)>& is_enough,
                                        const std::vector<pollfd>& stop_on) override {
        // short, because job_at() may already have read the D-Bus signal JobRemoved from the
        // socket, and poll() then does not wake for it
        constexpr int kRetryMs = 100;
        const auto begin = std::chrono::steady_clock::now();
        return with_bus_errors(
            [&]() -> std::optional<Properties> {
                for (;;) {
                    Properties now = job_at(path);
                    const bool enough = is_enough(now);
                    if (enough || is_over(std::get<std::string>(now.at("State")))) return now;
                    const auto max = call_.max();
                    if (max && std::chrono::steady_clock::now() - begin >= *max)
                        throw ServiceError("org.freedesktop.DBus.Error.Timeout",
                                           "the job has not ended in time; it continues: see "
                                           "'vgpuctl jobs'");
                    if (is_stopped_while_waiting(stop_on, kRetryMs)) return std::nullopt;
                }
            },
            "; the job continues, or the next vgpud finishes it: see 'vgpuctl jobs' when the bus "
            "is back");
    }
    /// Reads vgpud's ObjectManager, which has the jobs of all callers.
    std::vector<Properties> list_jobs() override {
        return call_(Limit::Read, [&] {
            std::map<sdbus::ObjectPath, std::map<std::string, Dict>> objects;
            sdbus::createProxy(*bus_, kService, "/org/vgpu1")
                ->callMethod("GetManagedObjects")
                .onInterface("org.freedesktop.DBus.ObjectManager")
                .storeResultsTo(objects);
            std::vector<Properties> jobs;
            for (auto& [path, interfaces] : objects) {
                const auto job = interfaces.find(org::vgpu1::Job_proxy::INTERFACE_NAME);
                if (job == interfaces.end()) continue;
                job->second.erase("Plan");
                jobs.push_back(properties_of(job->second));
                jobs.back()["Path"] = std::string(path);
            }
            std::sort(jobs.begin(), jobs.end(), [](const Properties& a, const Properties& b) {
                return a.at("Id") < b.at("Id");
            });
            return jobs;
        });
    }
    void cancel_job(const std::string& path) override {
        call_(Limit::Change, [&] { Proxy<org::vgpu1::Job_proxy>(*bus_, path).Cancel({}); });
    }
    std::string metrics() override {
        return call_(Limit::Read, [this] {
            return exporter::metrics_text(exporter::read_vgpud(*bus_),
                                          exporter::MetricsFormat::OpenMetrics);
        });
    }
    RunTable run_table(const std::string& gpu_path) override {
        return call_(Limit::Read, [&] {
            const auto [entries, generation] =
                Proxy<org::vgpu1::Gpu_proxy>(*bus_, gpu_path).GetRunTable({});
            RunTable table{.slices = {}, .generation = generation};
            for (const auto& entry : entries)
                table.slices.push_back(
                    {.vf = std::get<0>(entry), .quantum_us = std::get<1>(entry)});
            return table;
        });
    }
    TracePiece read_trace(const std::string& gpu_path, std::uint64_t after) override {
        return call_(Limit::Inventory, [&] {
            watch_name_owner();
            Dict options;
            if (after > 0) options["after"] = sdbus::Variant{after};
            Dict piece = Proxy<org::vgpu1::Gpu_proxy>(*bus_, gpu_path).ReadTrace(options);
            // read pending signals: NameOwnerChanged reports that vgpud was restarted, and the new
            // vgpud has other items at the position `after`
            while (bus_->processPendingRequest()) {
            }
            if (std::exchange(name_owner_change_, std::nullopt) && after > 0)
                throw ServiceError("org.vgpu1.Error.OutOfRange", "vgpud was restarted");
            const auto items = piece["items"].get<std::vector<std::uint8_t>>();
            return TracePiece{.items = {items.begin(), items.end()},
                              .next = piece["next"].get<std::uint64_t>(),
                              .has_gap = piece["late"].get<bool>()};
        });
    }
    std::string dump(const std::string& gpu_path) override {
        return call_(Limit::Change, [&] {
            return text_in(Proxy<org::vgpu1::Gpu_proxy>(*bus_, gpu_path).Dump({}));
        });
    }

private:
    /// True if a job in this state has ended. Also true for an unknown state, so that await_job()
    /// does not wait forever.
    static bool is_over(const std::string& job_state) {
        return job_state != "waiting" && job_state != "running" && job_state != "rolling-back";
    }

    /// The properties of a job. Throws Disconnected if the vgpud that began the job has ended,
    /// because the next vgpud reuses job numbers.
    Properties job_at(const std::string& path) {
        check_owner_unchanged();  // before the call, which would make the bus start the next vgpud
        std::optional<Properties> found;
        std::optional<ServiceError> failure;
        try {
            found = call_(Limit::Read, [&] {
                return all_properties(*bus_, kService, path, org::vgpu1::Job_proxy::INTERFACE_NAME);
            });
        } catch (const ServiceError& error) {
            failure = error;
        }
        check_owner_unchanged();  // a new vgpud may have answered the call
        if (failure) throw ServiceError(*failure);
        return *found;
    }

    void check_owner_unchanged() {
        while (bus_->processPendingRequest()) {
        }
        if (name_owner_change_)
            throw ServiceError("org.freedesktop.DBus.Error.Disconnected",
                               "vgpud ended before the job; the next vgpud finishes an apply or "
                               "rolls it back, and the device finishes what it has begun: see "
                               "'vgpuctl jobs' and 'vgpuctl events'");
    }

    /// Asks the bus, once, to report when a process gets or loses the bus name org.vgpu1.
    void watch_name_owner() {
        if (bus_proxy_) return;
        bus_proxy_ = sdbus::createProxy(*bus_, "org.freedesktop.DBus", "/org/freedesktop/DBus");
        bus_proxy_->uponSignal("NameOwnerChanged")
            .onInterface("org.freedesktop.DBus")
            .call([this](const std::string& name, const std::string&, const std::string& owner) {
                if (name == kService)
                    name_owner_change_ = owner.empty() ? BusChange::Gone : BusChange::Back;
            });
        bus_proxy_->finishRegistration();
    }

    /// Waits for the next change. Reports a change of the name's owner before an event, because a
    /// vgpud that is gone has no events to read.
    BusChange next_change(const std::vector<pollfd>& stop_on) {
        for (;;) {
            while (bus_->processPendingRequest()) {
            }
            if (name_owner_change_) return *std::exchange(name_owner_change_, std::nullopt);
            if (manager_.take_event()) return BusChange::Event;
            if (is_stopped_while_waiting(stop_on)) return BusChange::Stopped;
        }
    }

    /// Waits until the bus or one of `stop_on` is ready, at most `max_ms` (none: as long as sd-bus
    /// allows). True if one of `stop_on` is ready.
    [[nodiscard]] bool is_stopped_while_waiting(const std::vector<pollfd>& stop_on,
                                                std::optional<int> max_ms = {}) const {
        const auto poll_data = bus_->getEventLoopPollData();
        std::vector<pollfd> fds{{.fd = poll_data.fd, .events = poll_data.events, .revents = 0}};
        fds.insert(fds.end(), stop_on.begin(), stop_on.end());
        ::poll(fds.data(), fds.size(), max_ms.value_or(poll_data.getPollTimeout()));
        for (std::size_t i = 1; i < fds.size(); ++i)
            if (fds[i].revents != 0) return true;
        return false;
    }

    std::unique_ptr<sdbus::IConnection> bus_;
    ManagerProxy manager_;
    BusCall call_;
    std::unique_ptr<sdbus::IProxy> bus_proxy_;
    std::optional<BusChange> name_owner_change_;
};

}  // namespace

std::unique_ptr<Service> connect_service(const std::string& bus) {
    try {
        return std::make_unique<BusService>(exporter::open_bus(bus));
    } catch (const sdbus::Error& error) {
        throw ServiceError("org.freedesktop.DBus.Error.FileNotFound",
                           "cannot connect to the bus '" + bus + "': " + error.getMessage());
    }
}

}  // namespace vgpu::cli
