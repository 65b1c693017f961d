// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/vgpud_client.h"

#include "daemon/engines/vgpud/manager_call.h"

#include <poll.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

namespace vgpu::kubernetes {

namespace {

using engines::Dict;
using engines::manager_call;
using engines::ManagerProxy;
using engines::value_of;

constexpr const char* kVfProperties =
    "Target,Name,Profile,State,Condition,Owner,LeaseExpires,Address,Socket,AssignmentMode,"
    "VramBytes,Weight,MinPct,Attached";

template <typename T> std::vector<T> column(const Dict& columns, const char* name) {
    return value_of<std::vector<T>>(columns, name);
}

/// vgpud reports an unknown number as the largest value of its type, or as NaN.
template <typename T> std::optional<T> known(T value) {
    if (value == std::numeric_limits<T>::max()) return {};
    return value;
}
std::optional<double> known(double value) {
    if (!std::isfinite(value)) return {};
    return value;
}

/// HostVf::gpu_state of the VFs of each GPU, by the id of the GPU.
std::map<std::string, std::string> gpu_states(ManagerProxy& manager) {
    const Dict options{{"properties", sdbus::Variant{std::string("Target,State,ReadOnly")}}};
    std::map<std::string, std::string> states;
    for (const Dict& gpu : manager.ListGpus(options)) {
        const auto state = value_of<std::string>(gpu, "State");
        const bool is_read_only = state == kGpuOk && value_of<bool>(gpu, "ReadOnly");
        states[value_of<std::string>(gpu, "Target")] = is_read_only ? "read-only" : state;
    }
    return states;
}

/// Converts the answer of ListVfs, which has an array for each property. `gpus`: states of the
/// GPUs.
std::vector<HostVf> vfs_in(const Dict& columns, const std::map<std::string, std::string>& gpus) {
    const auto targets = column<std::string>(columns, "Target");
    const auto names = column<std::string>(columns, "Name");
    const auto profiles = column<std::string>(columns, "Profile");
    const auto states = column<std::string>(columns, "State");
    const auto conditions = column<std::string>(columns, "Condition");
    const auto owners = column<std::string>(columns, "Owner");
    const auto leases = column<std::uint64_t>(columns, "LeaseExpires");
    const auto addresses = column<std::string>(columns, "Address");
    const auto sockets = column<std::string>(columns, "Socket");
    const auto assignment_modes = column<std::string>(columns, "AssignmentMode");
    const auto sizes = column<std::uint64_t>(columns, "VramBytes");
    const auto weights = column<std::uint32_t>(columns, "Weight");
    const auto min_pcts = column<double>(columns, "MinPct");
    const auto open = column<bool>(columns, "Attached");
    std::vector<HostVf> vfs;
    for (std::size_t n = 0; n < targets.size(); ++n) {
        const auto gpu = gpus.find(targets[n].substr(0, targets[n].find('/')));
        vfs.push_back({.target = targets[n],
                       .name = names.at(n),
                       .profile = profiles.at(n),
                       .state = states.at(n),
                       .gpu_state = gpu == gpus.end() ? "" : gpu->second,
                       .condition = conditions.at(n),
                       .owner = owners.at(n),
                       .is_lease_over = engines::is_lease_over(leases.at(n)),
                       .address = addresses.at(n),
                       .socket = sockets.at(n),
                       .assignment_mode = assignment_modes.at(n),
                       .vram_bytes = known(sizes.at(n)),
                       .weight = known(weights.at(n)),
                       .min_pct = known(min_pcts.at(n)),
                       .is_open = open.at(n)});
    }
    return vfs;
}

}  // namespace

Result<std::vector<HostVf>> VgpudClient::vfs() {
    return manager_call<std::vector<HostVf>>(bus_, max_wait_, [](ManagerProxy& manager) {
        const auto gpus = gpu_states(manager);
        return vfs_in(manager.ListVfs({{"properties", sdbus::Variant{std::string(kVfProperties)}}}),
                      gpus);
    });
}

Result<> VgpudClient::assign(const std::string& owner, const std::string& owner_name,
                             const std::vector<std::string>& names, const SocketUser& user) {
    std::vector<sdbus::Struct<std::string, std::string>> desired;
    for (const std::string& name : names) desired.emplace_back(std::string("name"), name);
    const Dict options{{"owner_name", sdbus::Variant{owner_name}},
                       {"uid", sdbus::Variant{user.uid}},
                       {"gid", sdbus::Variant{user.gid}},
                       {"wait_ms", sdbus::Variant{engines::kScrubWaitMs}}};
    const auto count = manager_call<std::size_t>(bus_, max_wait_, [&](ManagerProxy& manager) {
        return manager.Assign(owner, desired, options).size();
    });
    if (!count) return tl::make_unexpected(count.error());
    return {};
}

Result<std::uint32_t> VgpudClient::unassign(const std::string& owner) {
    return manager_call<std::uint32_t>(
        bus_, max_wait_, [&](ManagerProxy& manager) { return manager.Unassign(owner, {}); });
}

void VgpudWatch::subscribe(const std::string& rule) {
    bus_->addMatch(
        rule, [this](sdbus::Message&) { has_changed_ = true; }, sdbus::floating_slot);
}

bool VgpudWatch::connect() {
    if (bus_) return true;
    try {
        bus_ = engines::open_bus(bus_name_);
        // no sender in the rule: a signal of another program only causes a needless pass
        subscribe(
            "type='signal',path='/org/vgpu1',"
            "interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',"
            "arg0='org.vgpu1.Manager'");
        subscribe(
            "type='signal',sender='org.freedesktop.DBus',"
            "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='org.vgpu1'");
    } catch (const sdbus::Error&) {
        bus_.reset();
    }
    return bus_ != nullptr;
}

/// Handles the messages that have arrived. False if the connection to the bus is lost.
bool VgpudWatch::process() {
    try {
        while (bus_->processPendingRequest()) continue;
        return true;
    } catch (const sdbus::Error&) {
        bus_.reset();
        return false;
    }
}

void VgpudWatch::wait(int wake, std::chrono::milliseconds max_wait) {
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + max_wait;
    for (;;) {
        if (bus_ && !process()) return;
        if (std::exchange(has_changed_, false)) return;
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
        if (left <= 0) return;
        std::array<pollfd, 2> fds{
            {{.fd = wake, .events = POLLIN, .revents = 0}, {.fd = -1, .events = 0, .revents = 0}}};
        if (bus_) {
            const auto data = bus_->getEventLoopPollData();
            fds[1] = {.fd = data.fd, .events = data.events, .revents = 0};
        }
        ::poll(fds.data(), fds.size(), static_cast<int>(left));
        if (fds[0].revents != 0) return;
    }
}

}  // namespace vgpu::kubernetes
