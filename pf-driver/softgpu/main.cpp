// SPDX-License-Identifier: MIT
//
// The program softgpu: parses options, takes the socket directory's lock, builds the GPU and serves
// until SIGTERM or SIGINT. It prints "softgpu: ready DIR" once all sockets are bound and, without
// --unconfined, the process is confined.
#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "pf-driver/softgpu/base/clock.h"
#include "pf-driver/softgpu/base/limited_sink.h"
#include "pf-driver/softgpu/base/log.h"
#include "pf-driver/softgpu/base/priority.h"
#include "pf-driver/softgpu/confinement.h"
#include "pf-driver/softgpu/gpu.h"
#include "pf-driver/softgpu/gpu_control.h"

namespace {

using namespace vgpu;
using namespace vgpu::softgpu;

/// The command line. CLI11 parses an option directly into `gpu` if Gpu::Spec has a field of the
/// same type for the option. spec_of() converts the other options of the GPU.
struct Options {
    Gpu::Spec gpu;
    std::uint64_t vram_mb = 2048;
    std::uint64_t aperture_mb = 256;
    std::uint32_t idle_grace_us = static_cast<std::uint32_t>(Gpu::Spec{}.idle_grace.count());
    bool is_true_copy = false;
    bool has_control = false;
    bool is_unconfined = false;
    std::string host_view;
    std::string doorbell_mode = "trap";
    std::string isa_tier = "interpreter";
    std::string log_level = "info";
};

void add_options(CLI::App& app, Options& options) {
    app.set_version_flag("--version", "softgpu " VGPU_VERSION);
    app.add_option("--name", options.gpu.name, "name in logs and statistics");
    app.add_option("--vfs", options.gpu.vfs, "virtual functions, 1 to 16");
    app.add_option("--vram-mb", options.vram_mb, "VRAM of the device");
    app.add_option("--aperture-mb", options.aperture_mb, "BAR0 of every VF, a power of two");
    app.add_option("--cus", options.gpu.compute_units, "compute units, 1 to 64");
    app.add_option("--threads", options.gpu.threads,
                   "worker threads, 1 to 64, that execute packets and waves");
    app.add_option("--idle-grace-us", options.idle_grace_us,
                   "how long a VF without work keeps its quantum")
        ->capture_default_str();
    app.add_option("--socket-dir", options.gpu.socket_dir, "directory for pf.sock, vf1.sock ...")
        ->required();
    app.add_option("--doorbell-mode", options.doorbell_mode, "trap, or poll mapped pages")
        ->check(CLI::IsMember({"trap", "poll"}));
    app.add_option("--isa-tier", options.isa_tier,
                   "what runs waves: interpreter, or translator (hot code as AVX-512 code)")
        ->check(CLI::IsMember({"interpreter", "translator"}))
        ->capture_default_str();
    app.add_flag(
           "--host-view{bridge}", options.host_view,
           "serve host.sock, the whole card for a VM: =bridge (own ids) or =vmd (Intel VMD's)")
        ->check(CLI::IsMember({"bridge", "vmd"}));
    app.add_flag("--true-copy", options.is_true_copy, "world switches copy and poison all state");
    app.add_flag("--control", options.has_control,
                 "serve control.sock (fault injection, counters)");
    app.add_flag("--unconfined", options.is_unconfined,
                 "keep all rights, for debuggers; without it softgpu confines itself");
    app.add_option("--log-level", options.log_level, "how much to log")
        ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error", "off"}))
        ->capture_default_str();
}

/// Limits sizes to 16 TiB before it converts them to bytes, so that a huge size does not wrap into
/// a valid one.
Gpu::Spec spec_of(const Options& options) {
    constexpr std::uint64_t kMaxMegabytes = 1ull << 24;
    Gpu::Spec spec = options.gpu;
    spec.vram = Bytes{std::min(options.vram_mb, kMaxMegabytes) << 20};
    spec.aperture = Bytes{std::min(options.aperture_mb, kMaxMegabytes) << 20};
    spec.idle_grace = std::chrono::microseconds(options.idle_grace_us);
    if (options.host_view == "bridge") spec.host_view = host_view::EndpointKind::Bridge;
    if (options.host_view == "vmd") spec.host_view = host_view::EndpointKind::Vmd;
    if (options.doorbell_mode == "poll") spec.doorbell_mode = iov::DoorbellMode::Poll;
    if (options.isa_tier == "translator") spec.isa_tier = IsaTier::Translator;
    if (options.is_true_copy) spec.switch_mode = iov::SwitchMode::TrueCopy;
    return spec;
}

/// Makes the directory and locks it against other softgpu processes; the lock lives as long as the
/// returned fd.
Result<OwnedFd> lock_directory(const std::string& directory) {
    if (::mkdir(directory.c_str(), S_IRWXU) != 0 && errno != EEXIST)
        return fail_errno(errno, "cannot make the socket directory " + directory);
    const std::string path = directory + "/softgpu.lock";
    OwnedFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!fd) return fail_errno(errno, "cannot open " + path);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
    if (errno != EWOULDBLOCK) return fail_errno(errno, "cannot lock " + path);
    return fail(EBUSY, fmt::format("another softgpu serves {}; stop it or choose another "
                                   "--socket-dir",
                                   directory));
}

/// Raises the weight of softgpu's session. With autogroup, Linux divides the CPUs among sessions
/// first, and then among the threads of each session. At equal weights, a session of VMs that spin
/// while they wait for the GPU takes nine tenths of the CPUs (docs/decisions/0004). Does nothing if
/// softgpu does not lead its session; vgpud starts softgpu as a session leader. Best effort.
void raise_session() {
    constexpr int kSessionNice = -5;
    if (::getsid(0) != ::getpid()) return;
    std::ofstream("/proc/self/autogroup") << kSessionNice;
}

/// Lowers the nice value: world switches are fast only if the host runs softgpu's threads without
/// delay. Best effort.
void raise_priority() {
    constexpr int kNice = -10;
    if (::setpriority(PRIO_PROCESS, 0, kNice) != 0)
        log::debug(
            "running at normal priority (no CAP_SYS_NICE): quanta may end late on a busy host");
}

/// Raises the soft limit of file descriptors to the hard limit, because each client needs
/// descriptors for its connection, interrupts and memory. The low soft limit only protects programs
/// that use select(). Best effort.
void raise_descriptor_limit() {
    rlimit descriptors{};
    if (::getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return;
    descriptors.rlim_cur = descriptors.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &descriptors);
}

/// Makes a descriptor for SIGTERM and SIGINT, and blocks both before any thread starts. SIGHUP has
/// no effect, because there is no configuration to read again.
Result<OwnedFd> open_signals() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGHUP, SIG_IGN);
    OwnedFd fd(::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
    if (!fd) return fail_errno(errno, "cannot receive signals");
    return fd;
}

/// The threads start after drop_files(), so they inherit only the rights that remain.
Result<> start_confined(Gpu& gpu) {
    TRY_VOID(drop_files());
    gpu.start();
    return drop_calls();
}

/// The order matters. Signals are blocked before the first thread starts. The directory is locked
/// before a stale socket is replaced. "ready" is printed when all sockets are bound and, without
/// --unconfined, the process is confined. `gpu` is declared before `control`, so the GPU outlives
/// its control socket.
Result<> serve(const Options& options) {
    TRY(const OwnedFd signals, open_signals());
    TRY(const OwnedFd lock, lock_directory(options.gpu.socket_dir));
    raise_session();
    raise_priority();
    const SteadyClock clock;
    const Gpu::Spec spec = spec_of(options);
    TRY_VOID(seal_paths(spec, options.has_control));
    TRY(const auto gpu, Gpu::create(spec, clock));
    TRY_VOID(gpu->listen());
    TRY_VOID(gpu->server().watch(signals.get(), [&gpu] { gpu->stop(); }));
    std::unique_ptr<GpuControl> control;
    if (options.has_control) {
        TRY(control, GpuControl::create(*gpu, options.gpu.socket_dir + "/control.sock"));
    }
    if (options.is_unconfined)
        gpu->start();
    else
        TRY_VOID(start_confined(*gpu));
    fmt::print("softgpu: ready {}\n", options.gpu.socket_dir);
    std::fflush(stdout);
    gpu->run();
    log::info("{}: stopped", options.gpu.name);
    return {};
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"softgpu: a software SR-IOV GPU", "softgpu"};
    Options options;
    add_options(app, options);
    CLI11_PARSE(app, argc, argv);
    static const SteadyClock clock;  // static: the log uses it until the process exits
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "softgpu",
        std::make_shared<LimitedSink>(std::make_shared<spdlog::sinks::stderr_sink_mt>(), clock)));
    spdlog::set_pattern("%H:%M:%S.%e %l " + options.gpu.name + ": %v");
    spdlog::set_level(spdlog::level::from_str(options.log_level));
    (void)lock_memory();
    raise_descriptor_limit();
    const Result<> served = serve(options);
    if (served) return EXIT_SUCCESS;
    fmt::print(stderr, "softgpu: {}\n", served.error().message);
    return EXIT_FAILURE;
}
