// SPDX-License-Identifier: MIT
//
// main() of vgpud: reads the options, connects the parts of vgpud, and runs the main loop, which
// serves D-Bus. Each GPU has a separate thread (service/gpu/host.h). service/ makes the decisions;
// adapters/, backend/ and dbus/ do the I/O.
#include "daemon/adapters/agent_sockets.h"
#include "daemon/adapters/device_channel.h"
#include "daemon/adapters/domain_event_source.h"
#include "daemon/adapters/event_loop.h"
#include "daemon/adapters/gpu_thread.h"
#include "daemon/adapters/heap_trimmer.h"
#include "daemon/adapters/log_control.h"
#include "daemon/adapters/owner_probe.h"
#include "daemon/adapters/platform_assignment.h"
#include "daemon/adapters/process_launcher.h"
#include "daemon/adapters/run_lock.h"
#include "daemon/adapters/service_manager.h"
#include "daemon/adapters/state_files.h"
#include "daemon/adapters/system_clock.h"
#include "daemon/adapters/uapi_client.h"
#include "daemon/adapters/unique_fd.h"
#include "daemon/adapters/vm_sockets.h"
#include "daemon/backend/sriov/assignment.h"
#include "daemon/backend/sriov/bounded_sysfs.h"
#include "daemon/backend/sriov/host_sysfs.h"
#include "daemon/backend/xe/backend.h"
#include "daemon/dbus/log_control_object.h"
#include "daemon/dbus/objects.h"
#include "daemon/service/agents/agents.h"
#include "daemon/service/config/config.h"
#include "daemon/service/jobs/jobs.h"
#include "daemon/service/manager.h"
#include "daemon/service/owners/assignments.h"
#include "daemon/service/owners/domains.h"
#include "daemon/service/views/event_log.h"
#include "pf-driver/process/log_limit.h"
#include "text/whole_file.h"

#include <fmt/format.h>
#include <malloc.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>

namespace vgpu::daemon {
namespace {

constexpr int kExitOk = 0;
constexpr int kExitFailed = 1;

struct CommandLine {
    std::string config = "/etc/vgpu/vgpud.json";
    std::string bus_address;
    bool is_session = false;
    bool is_system = false;
    bool is_supervising = false;
    bool is_without_polkit = false;
    bool is_recovering_state = false;
    std::string device_user;
    std::string log_level = "info";
};

void add_command_line_options(CLI::App& app, CommandLine& line) {
    app.add_option("--config", line.config, "JSON configuration (comments allowed)")
        ->capture_default_str();
    auto* bus = app.add_option_group("bus");
    bus->add_flag("--system", line.is_system, "serve on the system bus (default)");
    bus->add_flag("--session", line.is_session, "serve on the session bus");
    bus->add_option("--bus", line.bus_address, "serve on the bus at this D-Bus address");
    bus->require_option(0, 1);
    app.add_flag("--supervise", line.is_supervising, "restart softgpu and vgpu-pf when they die");
    app.add_flag("--no-polkit", line.is_without_polkit,
                 "without polkit: only root and the user of vgpud may change anything");
    app.add_flag("--recover-state", line.is_recovering_state,
                 "salvage the intact part of a damaged state, keep the damaged files, and exit");
    app.add_option("--device-user", line.device_user,
                   "user that softgpu and vgpu-pf run as (default: the user of vgpud)");
    app.add_option("--log-level", line.log_level, "error, warning, info or debug")
        ->check(CLI::IsMember({"error", "warning", "info", "debug"}))
        ->capture_default_str();
    app.set_version_flag("--version", fmt::format("vgpud {}", VGPU_VERSION));
}

Result<std::string> read_file(const std::string& path) {
    auto content = text::whole_file(path);
    if (!content) return fail_errno(ErrorId::ConfigInvalid, content.error(), "cannot read " + path);
    return *std::move(content);
}

Result<> make_directory(const std::string& path) {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return fail_errno(ErrorId::System, error.value(), "cannot create " + path);
    return {};
}

Result<> make_directories(const Config& config) {
    TRY_VOID(make_directory(config.state_dir));
    TRY_VOID(make_directory(config.run_dir));
    for (const GpuConfig& gpu : config.gpus)
        if (gpu.softgpu) TRY_VOID(make_directory(paths_of(config, gpu).directory));
    return {};
}

spdlog::level::level_enum level_of(EventKind kind) {
    switch (row_of(kind).severity) {
        case EventSeverity::Info:
            return spdlog::level::info;
        case EventSeverity::Warning:
            return spdlog::level::warn;
        case EventSeverity::Error:
            break;
    }
    return spdlog::level::err;
}

/// vgpud's log. For each GPU, VF and log level, limits the rate of lines, so that guests, VMMs and
/// callers cannot flood the log (pf-driver/process/log_limit.h). Used in the main loop only.
class LineLog {
public:
    explicit LineLog(const Clock& clock) : clock_(clock) {}

    void write(const AdminEvent& admin_event) {
        const std::string target = admin_event.vf == 0
                                       ? admin_event.gpu
                                       : fmt::format("{}/vf{}", admin_event.gpu, admin_event.vf);
        write(level_of(admin_event.kind),
              fmt::format("{}: {}: {}", target, name_of(admin_event.kind), admin_event.text));
    }

    void write(spdlog::level::level_enum level, const std::string& line) {
        const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.now());
        std::uint32_t left_out = 0;
        if (!vgpu_log_admit(&limit_, static_cast<std::uint64_t>(now.count()),
                            static_cast<std::uint32_t>(level), line.data(), line.size(), &left_out))
            return;
        if (left_out == 0) return spdlog::log(level, "{}", line);
        spdlog::log(level, "{} ({} more lines about this were left out)", line, left_out);
    }

private:
    const Clock& clock_;
    vgpu_log_limit limit_{};
};

/// The command that starts vgpu-libvirt, which reports libvirt's domains; empty if not configured.
std::vector<std::string> libvirt_command(const Config& config) {
    if (config.libvirt_uri.empty()) return {};
    return {config.libvirt_program, "--connect", config.libvirt_uri};
}

/// The current time for the event log, in us since 1970.
std::uint64_t time_us() {
    const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(since_1970).count());
}

/// Throws sdbus::Error if there is no bus. Despite its name,
/// createSessionBusConnectionWithAddress() connects to the bus at any address.
std::unique_ptr<sdbus::IConnection> connect_bus(const CommandLine& line) {
    if (line.is_session) return sdbus::createSessionBusConnection();
    if (line.bus_address.empty()) return sdbus::createSystemBusConnection();
    return sdbus::createSessionBusConnectionWithAddress(line.bus_address);
}

Result<adapters::UniqueFd> catch_signals() {
    sigset_t signals;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, SIGTERM);
    ::sigaddset(&signals, SIGINT);
    ::sigaddset(&signals, SIGHUP);
    // Ignores SIGPIPE, so that a write to a closed connection fails with EPIPE and does not kill
    // vgpud. GPU threads start later, and inherit the signal mask. The threads of BoundedSysfs
    // already run, but block all signals themselves.
    ::signal(SIGPIPE, SIG_IGN);
    if (::sigprocmask(SIG_BLOCK, &signals, nullptr) != 0)
        return fail_errno(ErrorId::System, errno, "cannot block signals");
    adapters::UniqueFd fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd.is_open()) return fail_errno(ErrorId::System, errno, "cannot make a signalfd");
    return fd;
}

/// Reads one signal from the signalfd `signals`. True if vgpud must end.
bool is_end(int signals, LineLog& lines) {
    signalfd_siginfo signal{};
    if (::read(signals, &signal, sizeof signal) != sizeof signal) return false;
    if (signal.ssi_signo != SIGHUP) return true;
    lines.write(
        spdlog::level::info,
        "SIGHUP ignored: the configuration is read only at start; restart vgpud to change it");
    return false;
}

sriov::SriovConfig sriov_config_of(const PciConfig& config) {
    constexpr unsigned kMiBShift = 20;
    return {.address = config.address,
            .is_observing = config.is_observing,
            .model = config.model
                         ? std::optional(sriov::PciModel{config.model->first, config.model->second})
                         : std::nullopt,
            .accepts_approximations = config.accepts_approximations,
            .vfs = config.vfs,
            .vram_bytes = std::uint64_t{config.vram_mb} << kMiBShift,
            .pf_quantum_ms = config.pf_quantum_ms};
}

/// Makes the parts of vgpud in the order of their dependencies, and runs the main loop on the main
/// thread. The threads of the GPUs run from start_gpus() until ~EndServices().
class Daemon {
public:
    Daemon(const Config& config, const CommandLine& line, LogPort& log_port,
           std::optional<adapters::DeviceUser> device_user)
        : line_(line),
          log_port_(log_port),
          processes_(device_user),
          state_(config.state_dir),
          vm_sockets_(config.run_dir),
          domain_event_source_(libvirt_command(config), clock_),
          agent_sockets_(device_user ? std::optional(device_user->uid) : std::nullopt),
          manager_(state_, clock_) {
        const auto supervision = line.is_supervising ? Supervision::On : Supervision::Off;
        for (const GpuConfig& gpu : config.gpus) {
            GpuPaths paths = paths_of(config, gpu);
            Driver driver = gpu.pci ? driver_of(*gpu.pci) : driver_of(paths);
            GpuModel::Ports ports{
                .backend = std::move(driver.backend),
                .managed_processes = gpu.softgpu ? std::make_unique<ManagedProcesses>(
                                                       config, gpu, processes_, supervision)
                                                 : nullptr,
                .store = manager_.store(),
                .clock = clock_,
                .owners = &owners_,
                .assignment_mode = std::move(driver.assignment_mode)};
            manager_.add(std::make_unique<GpuModel>(gpu, std::move(paths), std::move(ports)));
        }
    }

    /// Serves until SIGTERM or SIGINT. If the state directory cannot be read, vgpud still shows all
    /// GPUs, but changes nothing. run() starts the GPUs and makes the D-Bus objects before it
    /// requests the bus name, so that the first caller finds the objects with the GPUs' states.
    Result<> run() {
        TRY(const adapters::UniqueFd signals, catch_signals());
        for (const auto& [gpu, problem] : manager_.store().problems())
            spdlog::error("the state of {} is read-only: {}", gpu.empty() ? "all GPUs" : gpu,
                          text_of(problem));
        const auto bus = connect_bus(line_);
        const EndServices end_before_bus{manager_, agents_, assignments_};
        dbus::PeerCredentials peer_credentials([this] { return connect_bus(line_); });
        const auto authority = make_authority(*bus, peer_credentials);
        start_gpus();
        heap_trimmer_.record_work();
        dbus::Objects objects(*bus, manager_, agents_, jobs_, assignments_, domains_,
                              peer_credentials, *authority, clock_, events_);
        const dbus::LogControlObject log_control(*bus, peer_credentials, log_port_);
        bus->requestName(dbus::ServiceName{"org.vgpu1"});
        objects.show_first();
        std::puts("vgpud: ready");
        std::fflush(stdout);
        serve(*bus, peer_credentials, objects, signals.get());
        service_manager_.stopping();
        return {};
    }

private:
    /// Ends Assignments, Agents and Manager, which hold D-Bus messages of open requests. run()
    /// declares an EndServices after the bus connection and before the D-Bus objects. So, even
    /// after an exception, the D-Bus objects are destroyed first, then ~EndServices() runs, and
    /// then the bus connection closes.
    struct EndServices {
        Manager& manager;
        Agents& agents;
        Assignments& assignments;
        ~EndServices() {
            assignments.end();
            agents.end();
            manager.end();
        }
    };

    /// The interfaces to the driver of one GPU.
    struct Driver {
        std::unique_ptr<Backend> backend;
        std::unique_ptr<AssignmentPort> assignment_mode;
    };

    /// The interfaces to a GPU that our PF core drives.
    static Driver driver_of(const GpuPaths& paths) {
        return {.backend = std::make_unique<adapters::UapiClient>(paths.uapi_socket),
                .assignment_mode = std::make_unique<adapters::PlatformAssignment>(
                    paths.uapi_socket, paths.vf_socket_dir)};
    }

    /// The interfaces to a GPU with a vendor's driver. XeBackend serves all vendors' drivers; with
    /// a driver other than xe, XeBackend offers only what SriovBackend offers
    /// (backend/sriov/backend.h).
    [[nodiscard]] Driver driver_of(const PciConfig& config) const {
        const auto link = std::make_shared<sriov::SriovLink>(
            std::make_shared<sriov::BoundedSysfs>(std::make_shared<sriov::HostSysfs>()),
            sriov_config_of(config));
        link->uevents = std::make_unique<sriov::UeventSocket>();
        auto perf = config.counts_busy_time ? std::make_unique<xe::HostPerf>() : nullptr;
        return {.backend = std::make_unique<xe::XeBackend>(link, clock_, std::move(perf)),
                .assignment_mode = std::make_unique<sriov::SriovAssignment>(link)};
    }

    /// Starts the threads of the GPUs, and waits until each thread has finished one iteration, so
    /// that the first caller sees the states of GPUs that already run. Waits at most
    /// kFirstSnapshot; slower GPUs finish their first iteration later.
    void start_gpus() {
        constexpr Nanoseconds kFirstSnapshot = std::chrono::seconds(2);
        const Nanoseconds until = clock_.now() + kFirstSnapshot;
        for (const auto& gpu : manager_.gpus())
            gpu->start(std::make_unique<adapters::GpuThread>(clock_), [this] { changes_.raise(); });
        for (const auto& gpu : manager_.gpus())
            gpu->wait_for_first(std::max(Nanoseconds(0), until - clock_.now()));
    }

    [[nodiscard]] bool is_any_starting() const {
        const auto& gpus = manager_.gpus();
        return std::any_of(gpus.begin(), gpus.end(), [](const auto& gpu) {
            return gpu->snapshot()->gpu.state == GpuState::Starting;
        });
    }

    /// Handles at most kMaxPerIteration D-Bus messages, so that no caller can flood vgpud. Also
    /// stops after max(kCallTime, `other_work`), so that requests can take half of the time even
    /// while objects.step() parses large documents (dbus::DeferredWork). `other_work`: see serve().
    /// A large message fills the socket's buffer, so a message behind it arrives only after vgpud
    /// has read the large one. So while documents wait to be parsed, this function waits up to
    /// `other_work` / 8 for each further message.
    void handle_requests(sdbus::IConnection& bus, Nanoseconds other_work,
                         bool are_documents_waiting) {
        constexpr int kMaxPerIteration = 64;
        constexpr Nanoseconds kCallTime = std::chrono::milliseconds(5);
        const Nanoseconds until = clock_.now() + std::max(kCallTime, other_work);
        for (int i = 0; i < kMaxPerIteration; ++i) {
            if (!bus.processPendingRequest() &&
                !(are_documents_waiting && is_readable(bus, other_work / 8)))
                return;
            heap_trimmer_.record_work();
            if (clock_.now() >= until) return;
        }
    }

    [[nodiscard]] bool is_readable(sdbus::IConnection& bus, Nanoseconds timeout) const {
        adapters::PollSet poll_set;
        const auto poll_data = bus.getEventLoopPollData();
        poll_set.watch(poll_data.fd, poll_data.events);
        poll_set.wake_by(clock_.now() + timeout);
        adapters::wait_for(poll_set, clock_);
        return poll_set.is_ready(poll_data.fd);
    }

    /// Writes events to the log and to the list that `vgpuctl events` prints. objects.step() sends
    /// the D-Bus signals of the same events.
    void log(const std::vector<AdminEvent>& admin_events) {
        for (const AdminEvent& admin_event : admin_events) {
            lines_.write(admin_event);
            events_.add(admin_event, time_us());
        }
    }

    void handle_changes(const adapters::PollSet& poll_set, dbus::Objects& objects) {
        if (poll_set.is_ready(changes_.fd()) && changes_.clear()) objects.record_change();
    }

    /// Passes the lines of vgpu-libvirt to domains_. If vgpu-libvirt has ended, the states of
    /// domains are unknown, but Assignments keeps the domains' names.
    void read_domain_events(const adapters::PollSet& poll_set, dbus::Objects& objects) {
        domain_event_source_.dispatch(poll_set);
        if (const std::string problem = domain_event_source_.take_problem(); !problem.empty())
            lines_.write(spdlog::level::warn,
                         "libvirt: owners are shown without names: " + problem);
        const auto lines = domain_event_source_.take_lines();
        for (const std::string& line : lines) domains_.take(line);
        const bool is_lost = domain_event_source_.take_loss();
        if (is_lost) domains_.forget();
        if (is_lost || !lines.empty()) objects.record_domain_changes();
    }

    [[nodiscard]] std::unique_ptr<dbus::Authority> make_authority(
        sdbus::IConnection& bus, dbus::PeerCredentials& peer_credentials) const {
        if (line_.is_without_polkit)
            return std::make_unique<dbus::OwnerAuthority>(peer_credentials);
        return std::make_unique<dbus::PolkitAuthority>(bus);
    }

    /// The main loop. Each iteration handles D-Bus requests, answers of the GPUs' threads and the
    /// due work of timed_parts_. Then it waits for more of these or for other input (signals,
    /// agents, vgpu-libvirt), and handles that input. `other_work` is the time that the last
    /// iteration took from the end of handle_requests() to the wait. Before that wait, an iteration
    /// waits for a caller only in handle_requests(), and for GPUs' threads only in ListGpus,
    /// ListVfs and Capacity (at most 20 ms, dbus/objects.cpp). In most iterations a caller only
    /// reads a property; GpuHost::is_newer() then keeps the cost of unchanged GPUs low.
    void serve(sdbus::IConnection& bus, dbus::PeerCredentials& peer_credentials,
               dbus::Objects& objects, int signals) {
        Nanoseconds other_work = Nanoseconds::zero();
        for (;;) {
            if (!service_manager_.is_ready())
                service_manager_.ready_if(!is_any_starting(), "serving org.vgpu1");
            handle_requests(bus, other_work, objects.are_documents_waiting());
            peer_credentials.discard_messages();
            const Nanoseconds handled_at = clock_.now();
            manager_.finish();
            for (TimedPart* part : timed_parts_) part->step();
            if (jobs_.has_changes()) objects.record_change();
            if (assignments_.take_new_domain_names()) objects.record_domain_changes();
            std::vector<AdminEvent> admin_events = manager_.take_admin_events();
            for (AdminEvent& admin_event : agents_.take_admin_events())
                admin_events.push_back(std::move(admin_event));
            log(admin_events);
            objects.step(admin_events);
            other_work = clock_.now() - handled_at;
            adapters::PollSet poll_set = poll_set_of(bus, objects);
            if (peer_credentials.bus() != nullptr) watch_bus(poll_set, *peer_credentials.bus());
            poll_set.watch(signals, POLLIN);
            adapters::wait_for(poll_set, clock_);
            if (poll_set.is_ready(signals) && is_end(signals, lines_)) return;
            agent_sockets_.dispatch(poll_set);
            read_domain_events(poll_set, objects);
            handle_changes(poll_set, objects);
        }
    }

    static void watch_bus(adapters::PollSet& poll_set, const sdbus::IConnection& bus) {
        const auto poll_data = bus.getEventLoopPollData();
        poll_set.watch(poll_data.fd, poll_data.events);
        if (poll_data.timeout_usec != UINT64_MAX)
            poll_set.wake_by(std::chrono::microseconds(poll_data.timeout_usec));
    }

    /// The descriptors and times that wake up the main loop, except the signalfd and the connection
    /// of PeerCredentials. Made again before each wait, so that no closed descriptor is watched.
    adapters::PollSet poll_set_of(sdbus::IConnection& bus, const dbus::Objects& objects) {
        adapters::PollSet poll_set;
        watch_bus(poll_set, bus);
        poll_set.watch(changes_.fd(), POLLIN);
        if (objects.needs_step()) poll_set.wake_by(objects.next_step());
        agent_sockets_.watch(poll_set);
        domain_event_source_.watch(poll_set);
        for (const TimedPart* part : timed_parts_)
            if (const auto at = part->next_step()) poll_set.wake_by(*at);
        return poll_set;
    }

    const CommandLine& line_;
    LogPort& log_port_;
    adapters::SystemClock clock_;
    LineLog lines_{clock_};
    adapters::ServiceManager service_manager_{clock_};
    adapters::ProcessLauncher processes_;
    adapters::OwnerProbe owners_;
    adapters::StateFiles state_;
    adapters::VmSockets vm_sockets_;
    adapters::DomainEventSource domain_event_source_;
    adapters::Wakeup changes_;
    adapters::HeapTrimmer heap_trimmer_{clock_};
    adapters::AgentSockets agent_sockets_;
    Manager manager_;
    Agents agents_{manager_, agent_sockets_, clock_};
    Jobs jobs_{manager_, clock_};
    Assignments assignments_{manager_, vm_sockets_, clock_};
    Domains domains_{assignments_};
    EventLog events_;
    /// The parts whose step() serve() calls, in this order.
    const std::array<TimedPart*, 5> timed_parts_{&agents_, &assignments_, &jobs_, &heap_trimmer_,
                                                 &service_manager_};
};

/// Carries out --recover-state. Requires the lock of the state directory. Does not change intact
/// files.
Result<> recover_state(const std::string& state_dir) {
    adapters::StateFiles files(state_dir);
    StateStore store(files);
    store.load();
    if (store.problems().empty())
        fmt::print("the state in {} is intact; nothing was changed\n", state_dir);
    TRY(const auto solved, store.recover());
    for (const std::string& what : solved)
        fmt::print("{}; the damaged file is kept as *.damaged\n", what);
    for (const auto& [gpu, problem] : store.problems())
        if (problem.id != ErrorId::StateCorrupt) return tl::make_unexpected(problem);
    return {};
}

Result<> start(const CommandLine& line, LogPort& log_port) {
    TRY(const std::string text, read_file(line.config));
    TRY(const Config config, parse_config(text, line.config, adapters::present_pf_devices()));
    TRY_VOID(make_directories(config));
    // Take both locks before reading the state, because another vgpud may be changing the state.
    TRY(const adapters::RunLock lock, adapters::RunLock::take(config.run_dir));
    TRY(const adapters::RunLock state_lock, adapters::RunLock::lock_state(config.state_dir));
    if (line.is_recovering_state) return recover_state(config.state_dir);
    std::optional<adapters::DeviceUser> device_user;
    if (!line.device_user.empty()) {
        TRY(device_user, adapters::device_user(line.device_user));
    }
    Daemon daemon(config, line, log_port, device_user);
    try {
        return daemon.run();
    } catch (const sdbus::Error& error) {
        return fail(ErrorId::System,
                    fmt::format("D-Bus: {}: {} (is another vgpud on this bus, or is the bus gone?)",
                                error.getName(), error.getMessage()));
    }
}

/// Limits the number of malloc arenas, because an arena for each GPU thread would keep megabytes of
/// freed memory.
void limit_heaps() {
    constexpr int kHeaps = 2;
    static_cast<void>(::mallopt(M_ARENA_MAX, kHeaps));
}

int main_of(int argc, char** argv) {
    limit_heaps();
    CommandLine line;
    CLI::App app("vgpud shares SR-IOV GPUs between VFs; D-Bus service org.vgpu1", "vgpud");
    add_command_line_options(app, line);
    CLI11_PARSE(app, argc, argv);
    adapters::LogControl log_control(line.log_level);
    if (const auto started = start(line, log_control); !started) {
        fmt::print(stderr, "vgpud: {}\n", text_of(started.error()));
        return kExitFailed;
    }
    return kExitOk;
}

}  // namespace
}  // namespace vgpu::daemon

int main(int argc, char** argv) {
    return vgpu::daemon::main_of(argc, argv);
}
