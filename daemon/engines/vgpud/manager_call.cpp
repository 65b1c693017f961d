// SPDX-License-Identifier: MIT
#include "daemon/engines/vgpud/manager_call.h"

#include <array>

namespace vgpu::engines {

using daemon::Error;
using daemon::ErrorId;

std::unique_ptr<sdbus::IConnection> open_bus(const std::string& bus) {
    if (bus == "system") return sdbus::createSystemBusConnection();
    if (bus == "session") return sdbus::createSessionBusConnection();
    return sdbus::createSessionBusConnectionWithAddress(bus);
}

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

bool is_lease_over(std::uint64_t expires) {
    const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    const auto seconds = static_cast<std::uint64_t>(now.time_since_epoch().count());
    return expires != 0 && expires <= seconds;
}

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

}  // namespace vgpu::engines
