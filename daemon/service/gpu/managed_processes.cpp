// SPDX-License-Identifier: MIT
#include "daemon/service/gpu/managed_processes.h"

#include "pf-driver/uapi/vgpu_pf.h"

#include <fmt/format.h>
#include <algorithm>

namespace vgpu::daemon {

namespace {

constexpr const char* kSoftgpu = "softgpu";

std::vector<std::string> softgpu_command(const Config& config, const GpuConfig& gpu,
                                         const std::string& directory) {
    const SoftgpuConfig& soft = *gpu.softgpu;
    std::vector<std::string> command{config.softgpu_program,
                                     "--name",
                                     gpu.id,
                                     "--vfs",
                                     std::to_string(soft.vfs),
                                     "--vram-mb",
                                     std::to_string(soft.vram_mb),
                                     "--aperture-mb",
                                     std::to_string(soft.aperture_mb),
                                     "--cus",
                                     std::to_string(soft.cus),
                                     "--threads",
                                     std::to_string(soft.threads),
                                     "--doorbell-mode",
                                     soft.doorbell_mode,
                                     "--isa-tier",
                                     soft.isa_tier,
                                     "--socket-dir",
                                     directory};
    if (soft.is_true_copy) command.emplace_back("--true-copy");
    command.insert(command.end(), soft.args.begin(), soft.args.end());
    return command;
}

std::vector<std::string> pf_command(const Config& config, const GpuConfig& gpu,
                                    const GpuPaths& paths) {
    std::vector<std::string> command{
        config.pf_program, "--device", paths.directory + "/pf.sock", "--socket", paths.uapi_socket,
        "--name",          gpu.id};
    command.insert(command.end(), gpu.softgpu->pf_args.begin(), gpu.softgpu->pf_args.end());
    return command;
}

bool is_softgpu(const ProcessSpec& spec) {
    return spec.label == kSoftgpu;
}

}  // namespace

GpuPaths paths_of(const Config& config, const GpuConfig& gpu) {
    if (gpu.attach)
        return {.directory = "",
                .uapi_socket = gpu.attach->uapi_socket,
                .vf_socket_dir = gpu.attach->vf_socket_dir};
    if (gpu.pci) return {};
    const std::string directory = config.run_dir + "/" + gpu.id;
    return {.directory = directory,
            .uapi_socket = directory + "/uapi.sock",
            .vf_socket_dir = directory};
}

ManagedProcesses::ManagedProcesses(const Config& config, const GpuConfig& gpu,
                                   ProcessPort& processes, Supervision supervision)
    : processes_(processes), supervision_(supervision) {
    const GpuPaths paths = paths_of(config, gpu);
    const std::string pf_socket = paths.directory + "/pf.sock";
    children_[0] = {.spec = {.label = kSoftgpu,
                             .directory = paths.directory,
                             .command = softgpu_command(config, gpu, paths.directory)},
                    .socket = pf_socket,
                    .needs = "",
                    .id = {}};
    children_[1] = {.spec = {.label = "vgpu-pf",
                             .directory = paths.directory,
                             .command = pf_command(config, gpu, paths)},
                    .socket = paths.uapi_socket,
                    .needs = pf_socket,
                    .id = {}};
}

std::string ManagedProcesses::step(Nanoseconds now) {
    std::string first_failure;
    for (Child& child : children_) {
        std::string failure = step(child, now);
        if (first_failure.empty()) first_failure = std::move(failure);
    }
    return first_failure;
}

std::string ManagedProcesses::step(Child& child, Nanoseconds now) {
    std::string end_text;
    if (child.id) {
        const auto how = processes_.end_of(*child.id);
        if (!how) {
            if (now - child.started_at > kLongestDelay) child.delay = kFirstDelay;
            if (now - child.started_at > kSettled) child.failure.clear();
            processes_.trim_log(child.spec);
            return child.failure;
        }
        end_text = record_end(child, *how, now);
    }
    child.id = processes_.find(child.spec);
    if (child.id) {
        child.was_seen = true;
        child.started_at = now;
        return child.failure;
    }
    // Without supervision vgpud does not restart a process that died, so that the operator can
    // examine the cause first.
    if (child.was_seen && supervision_ == Supervision::Off) {
        if (!end_text.empty()) return end_text;
        return fmt::format("{}{} is not running, and vgpud was started without --supervise",
                           child.failure.empty() ? "" : child.failure + "; ", child.spec.label);
    }
    if (now < child.next_try) return end_text.empty() ? child.failure : end_text;
    // vgpu-pf has no device before softgpu's socket exists.
    if (!child.needs.empty() && !processes_.socket_exists(child.needs))
        return fmt::format("{} waits for {}", child.spec.label, child.needs);
    return start(child, now);
}

/// Call it when the process has ended; returns a text about the end. The next start waits until
/// child.delay has passed since the process was started or adopted.
std::string ManagedProcesses::record_end(Child& child, const std::string& how, Nanoseconds now) {
    const std::string text =
        fmt::format("{} (pid {}) ended{}{}; see {}/{}.log", child.spec.label, child.id->pid,
                    how.empty() ? "" : " ", how, child.spec.directory, child.spec.label);
    child.next_try = std::max(child.next_try, child.started_at + child.delay);
    if (now - child.started_at <= kSettled) child.failure = text;
    return text;
}

std::string ManagedProcesses::start(Child& child, Nanoseconds now) {
    // find() knows no running process, so the socket file counts as stale. A stale file would make
    // bind() fail, and vgpud would take it for the socket of a ready process.
    processes_.remove_stale(child.socket);
    // The sockets of VFs may belong to QEMU's user, so softgpu may not be allowed to remove them.
    for (unsigned vf = 1; is_softgpu(child.spec) && vf <= VGPU_PF_MAX_VFS; ++vf)
        processes_.remove_stale(fmt::format("{}/vf{}.sock", child.spec.directory, vf));
    auto id = processes_.start(child.spec);
    child.next_try = now + child.delay;
    child.delay = std::min(child.delay * 2, kLongestDelay);
    child.started_at = now;
    if (!id) {
        child.failure =
            fmt::format("{}: {}; vgpud tries again", child.spec.label, id.error().cause);
        return child.failure;
    }
    child.id = *id;
    child.was_seen = true;
    return child.failure;
}

bool ManagedProcesses::has_failed() const {
    return std::any_of(children_.begin(), children_.end(),
                       [](const Child& child) { return !child.failure.empty(); });
}

Nanoseconds ManagedProcesses::next_step(Nanoseconds now) const {
    const bool all_run = std::all_of(children_.begin(), children_.end(),
                                     [](const Child& child) { return child.id.has_value(); });
    return now + (all_run ? kWatchInterval : kPollInterval);
}

}  // namespace vgpu::daemon
