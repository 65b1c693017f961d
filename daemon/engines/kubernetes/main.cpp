// SPDX-License-Identifier: MIT
//
// vgpu-dra: parses the options, and creates and runs the parts of one mode: dra (dynamic resource
// allocation) or device-plugin.
#include "daemon/engines/kubernetes/api_server.h"
#include "daemon/engines/kubernetes/device_plugin.h"
#include "daemon/engines/kubernetes/host_lock.h"
#include "daemon/engines/kubernetes/host_pci.h"
#include "daemon/engines/kubernetes/kubelet_plugin.h"
#include "daemon/engines/kubernetes/main_loop.h"
#include "daemon/engines/kubernetes/names.h"
#include "daemon/engines/kubernetes/publisher.h"
#include "daemon/engines/kubernetes/socket_watch.h"
#include "text/number.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <thread>

namespace vgpu::kubernetes {
namespace {

/// How long a call to vgpud waits for a vgpud that is starting.
constexpr std::chrono::milliseconds kVgpudWait{5000};
/// Time limit of a call to the API server. It is shorter than the time for which the kubelet waits
/// for an answer of vgpu-dra.
constexpr std::chrono::milliseconds kApiWait{10'000};
/// Longest name of a cluster: an owner k8s:CLUSTER:UID.0 may have at most kMaxOwner bytes
/// (names.h), and a UID has 36. In the mode device-plugin, long ids of GPUs need a shorter name
/// (plugin_devices()).
constexpr std::size_t kMaxCluster = 29;

constexpr const char *kDra = "dra", *kDevicePlugin = "device-plugin";

struct CommandLine {
    std::string mode = kDra;
    std::string node;
    std::string cluster = "kubernetes";
    std::string bus = "system";
    ApiAddress api;
    std::string kubelet_dir = "/var/lib/kubelet";
    std::string cdi_dir = "/var/run/cdi";
    std::string socket_user = "0:0";
    bool is_withdrawing = false;
};

/// The parts that both modes use.
struct Host {
    explicit Host(const CommandLine& line) : vgpud(line.bus, kVgpudWait), watch(line.bus) {}

    VgpudClient vgpud;
    VgpudWatch watch;
    HostPci pci;
    SocketUser user;
};

Result<SocketUser> socket_user(const std::string& text) {
    const std::string_view all(text);
    const std::size_t colon = std::min(all.find(':'), all.size());
    const auto uid = text::number_in<std::uint32_t>(all.substr(0, colon));
    const auto gid = text::number_in<std::uint32_t>(all.substr(std::min(colon + 1, all.size())));
    if (!uid || !gid)
        return fail(ErrorId::OutOfRange,
                    fmt::format("--socket-user {} is not UID:GID, such as 107:107", text));
    return SocketUser{.uid = *uid, .gid = *gid};
}

Result<> check(const CommandLine& line) {
    if (!is_subdomain(line.node))
        return fail(
            ErrorId::OutOfRange,
            fmt::format("'{}' is not the name of a node; set --node or NODE_NAME", line.node));
    const bool is_word = std::ranges::all_of(line.cluster, [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
    });
    if (line.cluster.empty() || line.cluster.size() > kMaxCluster || !is_word)
        return fail(ErrorId::OutOfRange,
                    fmt::format("--cluster '{}' is not a word of at most {} letters, digits, '_' "
                                "and '-'",
                                line.cluster, kMaxCluster));
    return {};
}

/// Runs the loop until SIGTERM or SIGINT. All threads block both signals, so only sigwait() gets
/// them.
void run_until_signal(MainLoop& loop, const sigset_t& signals) {
    std::thread waiter([&loop, &signals] {
        int number = 0;
        sigwait(&signals, &number);
        loop.stop();
    });
    loop.run();
    waiter.join();
}

std::string plugin_directory(const CommandLine& line) {
    return fmt::format("{}/plugins/{}", line.kubelet_dir, kDriver);
}

/// Publishes the devices of this host. For Extent::Everything, first ends the claims in vgpud whose
/// ResourceClaims are gone, and reads the published slices even if the devices are unchanged.
Result<> run_dra_pass(Host& host, const CommandLine& line, Publisher& publisher, Claims& claims,
                      Extent extent) {
    if (extent == Extent::Everything)
        for (const std::string& one : claims.reconcile()) log_line(one);
    TRY(const auto vfs, host.vgpud.vfs());
    TRY(const auto devices, devices_of(vfs, line.cluster, host.pci));
    if (extent == Extent::Changes && publisher.knows(devices)) return {};
    return publisher.publish(devices);
}

void log_registration(const std::string& refusal) {
    if (refusal.empty())
        log_line(fmt::format("the kubelet registered the driver {}", kDriver));
    else
        log_line(fmt::format("the kubelet refuses the driver {}: {}", kDriver, refusal));
}

/// Runs the mode dra. Each registration requests a pass over everything: while the driver's socket
/// was gone, the kubelet may have removed the driver's ResourceSlices.
Result<> serve_dra(Host& host, const CommandLine& line, const sigset_t& signals) {
    ApiAddress address = line.api;
    if (address.server.empty()) {
        TRY(address, address_in_cluster());
    }
    ApiServer api(address, kApiWait);
    Publisher publisher(api, line.node);
    Claims claims(api, host.vgpud, host.pci, ClaimFiles(plugin_directory(line), line.cdi_dir),
                  {.node = line.node, .cluster = line.cluster, .user = host.user});
    MainLoop loop(host.watch, [&](Extent extent) {
        return run_dra_pass(host, line, publisher, claims, extent);
    });
    const KubeletPlugin::SocketPaths paths{
        .dra_socket = plugin_directory(line) + "/dra.sock",
        .registration_socket =
            fmt::format("{}/plugins_registry/{}-reg.sock", line.kubelet_dir, kDriver)};
    TRY(auto plugin, KubeletPlugin::start(paths, claims, line.node, [&loop](const auto& refusal) {
            log_registration(refusal);
            loop.resync();
        }));
    run_until_signal(loop, signals);
    plugin.reset();
    if (line.is_withdrawing) TRY_VOID(publisher.withdraw());
    return {};
}

Result<> serve_device_plugin(Host& host, const CommandLine& line, const sigset_t& signals) {
    const std::string directory = line.kubelet_dir + "/device-plugins";
    Allocations allocations(host.vgpud, host.pci, line.cluster, host.user);
    DevicePlugin plugin(directory, allocations);
    std::atomic<bool> has_kubelet_started = false;
    MainLoop loop(host.watch, [&](Extent) -> Result<> {
        if (has_kubelet_started.exchange(false)) {
            const auto served = plugin.serve_again();
            if (!served) has_kubelet_started = true;
            if (!served) return served;
        }
        TRY(const auto vfs, host.vgpud.vfs());
        TRY(const auto devices, plugin_devices(vfs, line.cluster, host.pci));
        return plugin.update(devices);
    });
    TRY(const auto watch, SocketWatch::start(directory, "kubelet.sock", [&] {
            has_kubelet_started = true;
            loop.resync();
        }));
    run_until_signal(loop, signals);
    return {};
}

Result<> serve(const CommandLine& line, const sigset_t& signals) {
    TRY_VOID(check(line));
    Host host(line);
    TRY(host.user, socket_user(line.socket_user));
    const std::string directory = plugin_directory(line);
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error) return fail_errno(ErrorId::System, error.value(), "cannot create " + directory);
    TRY(const HostLock lock, HostLock::take(directory, line.node));
    return line.mode == kDra ? serve_dra(host, line, signals)
                             : serve_device_plugin(host, line, signals);
}

void add_options(CLI::App& app, CommandLine& line) {
    app.add_option("--mode", line.mode,
                   "dra (Kubernetes 1.34 or later), or device-plugin (resources vgpu.org/PROFILE)")
        ->check(CLI::IsMember({kDra, kDevicePlugin}))
        ->capture_default_str()
        ->type_name("MODE");
    app.add_option("--node", line.node, "name of this node in Kubernetes")
        ->envname("NODE_NAME")
        ->type_name("NAME");
    app.add_option("--cluster", line.cluster,
                   "name of the cluster in the owners of VFs: k8s:NAME:UID.0")
        ->capture_default_str()
        ->type_name("NAME");
    app.add_option("--bus", line.bus, "the bus of vgpud: system, session or a D-Bus address")
        ->capture_default_str();
    app.add_option("--kubelet-dir", line.kubelet_dir, "the kubelet's directory")
        ->capture_default_str()
        ->type_name("DIR");
    app.add_option("--socket-user", line.socket_user,
                   "the user that may open the sockets of softgpu VFs; 107:107 for KubeVirt")
        ->capture_default_str()
        ->type_name("UID:GID");
}

void add_dra_options(CLI::App& app, CommandLine& line) {
    app.add_option("--server", line.api.server,
                   "URL of the API server (default: as Kubernetes gives it to a pod)")
        ->type_name("URL");
    app.add_option("--token-file", line.api.token_file, "file of the token, with --server")
        ->type_name("FILE");
    app.add_option("--ca-file", line.api.ca_file,
                   "CA certificates that verify the API server, with --server")
        ->type_name("FILE");
    app.add_option("--cdi-dir", line.cdi_dir, "where the container runtime reads CDI files")
        ->capture_default_str()
        ->type_name("DIR");
    app.add_flag("--withdraw", line.is_withdrawing,
                 "remove the ResourceSlices of this node at SIGTERM");
}

int main_of(int argc, char** argv) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    CommandLine line;
    CLI::App app("vgpu-dra offers the VFs of this host to the pods of Kubernetes", "vgpu-dra");
    add_options(app, line);
    add_dra_options(app, line);
    app.set_version_flag("--version", fmt::format("vgpu-dra {}", VGPU_VERSION));
    CLI11_PARSE(app, argc, argv);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    const auto done = serve(line, signals);
    if (done) return 0;
    log_line(text_of(done.error()));
    return 1;
}

}  // namespace
}  // namespace vgpu::kubernetes

int main(int argc, char** argv) {
    return vgpu::kubernetes::main_of(argc, argv);
}
