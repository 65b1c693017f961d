// SPDX-License-Identifier: MIT
#include "daemon/engines/slurm/vgpud_client.h"

#include <fmt/format.h>
#include <array>
#include <map>
#include <stdexcept>
#include <thread>

#include "vgpu1/manager_proxy.h"

namespace vgpu::slurm {

namespace {

using Dict = std::map<std::string, sdbus::Variant>;

/// Above the longest wait of Assign for VFs that are being scrubbed.
constexpr std::chrono::seconds kCallLimit{8};
constexpr std::uint32_t kScrubWaitMs = 5000;
constexpr std::chrono::milliseconds kRetryInterval{100};

class ManagerProxy final : public sdbus::ProxyInterfaces<org::vgpu1::Manager_proxy> {
public:
    ManagerProxy(sdbus::IConnection& bus, const std::string& destination)
        : ProxyInterfaces(bus, destination, "/org/vgpu1") {
        registerProxy();
    }
    ~ManagerProxy() { unregisterProxy(); }

private:
    void onJobAdded(const uint32_t&, const sdbus::ObjectPath&) override {}
    void onJobRemoved(const uint32_t&, const sdbus::ObjectPath&, const std::string&) override {}
    void onEvent(const std::string&, const uint32_t&, const std::string&,
                 const std::string&) override {}
};

std::unique_ptr<sdbus::IConnection> open_bus(const std::string& bus) {
    if (bus == "system") return sdbus::createSystemBusConnection();
    if (bus == "session") return sdbus::createSessionBusConnection();
    return sdbus::createSessionBusConnectionWithAddress(bus);
}

/// The unique bus name of vgpud. A call to this name does not start vgpud.
std::string owner_of_service(sdbus::IConnection& bus) {
    constexpr const char* kBus = "org.freedesktop.DBus";
    std::string owner;
    sdbus::createProxy(bus, kBus, "/org/freedesktop/DBus")
        ->callMethod("GetNameOwner")
        .onInterface(kBus)
        .withArguments(std::string("org.vgpu1"))
        .storeResultsTo(owner);
    return owner;
}

/// Errors of vgpud keep their ids; those of the bus mean that vgpud does not answer.
Error error_of(const sdbus::Error& error) {
    constexpr std::array kIds{
#define DAEMON_ERROR(name, number, fix) ErrorId::name,
#include "daemon/ports/errors.def"
#undef DAEMON_ERROR
    };
    for (const ErrorId id : kIds)
        if (error.getName() == daemon::dbus_name_of(id)) return {id, error.getMessage()};
    return {ErrorId::System, "vgpud does not answer (" + error.getMessage() + ")"};
}

/// Calls `call` with vgpud's bus name; waits if vgpud is starting.
template <typename T, typename Call>
Result<T> with_vgpud(const std::string& bus_name, std::chrono::milliseconds max_wait,
                     const Call& call) {
    const auto until = std::chrono::steady_clock::now() + max_wait;
    for (;;) {
        try {
            const auto bus = open_bus(bus_name);
            bus->setMethodCallTimeout(std::chrono::microseconds(kCallLimit));
            ManagerProxy manager(*bus, owner_of_service(*bus));
            return call(manager);
        } catch (const sdbus::Error& error) {
            Error known = error_of(error);
            if (known.id != ErrorId::System || std::chrono::steady_clock::now() >= until)
                return tl::make_unexpected(std::move(known));
        } catch (const std::out_of_range&) {
            return fail(ErrorId::System, "vgpud's answer has another form: is it another version?");
        }
        std::this_thread::sleep_for(kRetryInterval);
    }
}

template <typename T> T value_of(const Dict& dict, const char* key) {
    return dict.at(key).get<T>();
}

}  // namespace

Result<std::vector<GivenVf>> VgpudClient::assign(const std::string& owner,
                                                 const std::vector<std::string>& profiles,
                                                 const User& user) {
    std::vector<sdbus::Struct<std::string, std::string>> selectors;
    for (const std::string& profile : profiles)
        selectors.emplace_back(std::string("profile"), profile);
    const Dict options{{"uid", sdbus::Variant{user.uid}},
                       {"gid", sdbus::Variant{user.gid}},
                       {"wait_ms", sdbus::Variant{kScrubWaitMs}}};
    return with_vgpud<std::vector<GivenVf>>(bus_, max_wait_, [&](ManagerProxy& manager) {
        std::vector<GivenVf> given;
        for (const Dict& one : manager.Assign(owner, selectors, options))
            given.push_back({.target = value_of<std::string>(one, "Target"),
                             .socket = value_of<std::string>(one, "Socket")});
        return given;
    });
}

Result<std::uint32_t> VgpudClient::unassign(const std::string& owner) {
    return with_vgpud<std::uint32_t>(
        bus_, max_wait_, [&](ManagerProxy& manager) { return manager.Unassign(owner, {}); });
}

Result<std::vector<Claim>> VgpudClient::claims() {
    const Dict options{{"properties", sdbus::Variant{std::string("Owner,Profile,Attached")}}};
    return with_vgpud<std::vector<Claim>>(bus_, max_wait_, [&](ManagerProxy& manager) {
        const Dict columns = manager.ListVfs(options);
        const auto owners = value_of<std::vector<std::string>>(columns, "Owner");
        const auto profiles = value_of<std::vector<std::string>>(columns, "Profile");
        const auto attached = value_of<std::vector<bool>>(columns, "Attached");
        std::vector<Claim> claims;
        for (std::size_t i = 0; i < owners.size(); ++i)
            if (!owners[i].empty())
                claims.push_back(
                    {.owner = owners[i], .profile = profiles.at(i), .is_open = attached.at(i)});
        return claims;
    });
}

Result<std::vector<Capacity>> VgpudClient::capacity() {
    return with_vgpud<std::vector<Capacity>>(bus_, max_wait_, [&](ManagerProxy& manager) {
        std::vector<Capacity> rows;
        for (const Dict& row : manager.Capacity({}))
            rows.push_back({.gpu = value_of<std::string>(row, "Gpu"),
                            .gpu_state = value_of<std::string>(row, "GpuState"),
                            .profile = value_of<std::string>(row, "Profile"),
                            .total = value_of<std::uint32_t>(row, "Total"),
                            .free = value_of<std::uint32_t>(row, "Free")});
        return rows;
    });
}

}  // namespace vgpu::slurm
