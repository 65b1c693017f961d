// SPDX-License-Identifier: MIT
//
// manager_call(): calls vgpud's D-Bus interface org.vgpu1.Manager. Connects for each call, because
// the bus and vgpud may have been restarted. Waits for a vgpud that is starting, but never makes
// D-Bus start a vgpud that was stopped. The bridges to Slurm and Kubernetes use manager_call().
// Thread-safe.
#pragma once

#include "daemon/ports/result.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "vgpu1/manager_proxy.h"

namespace vgpu::engines {

/// The D-Bus type a{sv}.
using Dict = std::map<std::string, sdbus::Variant>;

/// Calls the methods of org.vgpu1.Manager. Ignores the signals of this interface.
class ManagerProxy final : public sdbus::ProxyInterfaces<org::vgpu1::Manager_proxy> {
public:
    /// `destination`: the bus name of vgpud.
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

/// Connects to a bus. `bus`: "system", "session" or a D-Bus address. Throws sdbus::Error.
std::unique_ptr<sdbus::IConnection> open_bus(const std::string& bus);

/// The unique bus name of vgpud; a call to this name does not start vgpud. Throws sdbus::Error if
/// vgpud is not on the bus.
std::string owner_of_service(sdbus::IConnection& bus);

/// Converts an error of a D-Bus call. Errors of vgpud keep their ids. Any other error, such as an
/// error of the bus, becomes System, because vgpud did not answer.
daemon::Error error_of(const sdbus::Error& error);

/// The member `key` of an answer. Throws std::out_of_range if the answer lacks the member, and
/// sdbus::Error if the member has another type.
template <typename T> T value_of(const Dict& dict, const char* key) {
    return dict.at(key).get<T>();
}

/// True if a lease is over that ends at `expires`, the D-Bus property LeaseExpires of a VF. vgpud
/// then gives the VF to any other owner, unless a client has the VF open.
bool is_lease_over(std::uint64_t expires);

/// Time limit of a D-Bus call. Longer than kScrubWaitMs, so that a call of Assign does not time out
/// while it waits for a scrub.
inline constexpr std::chrono::seconds kCallLimit{8};
/// How long Assign waits for VFs that are being scrubbed (its option wait_ms).
inline constexpr std::uint32_t kScrubWaitMs = 5000;

/// Returns the value of `call(manager)`, where `manager` is a ManagerProxy. If the call fails with
/// System, repeats it for up to `max_wait` (zero: calls once), because vgpud may be starting. Fails
/// with the errors of error_of(), or at once with System if the answer lacks a member.
template <typename T, typename Call>
daemon::Result<T> manager_call(const std::string& bus_name, std::chrono::milliseconds max_wait,
                               const Call& call) {
    constexpr std::chrono::milliseconds kPollInterval{100};
    const auto until = std::chrono::steady_clock::now() + max_wait;
    for (;;) {
        try {
            const auto bus = open_bus(bus_name);
            bus->setMethodCallTimeout(std::chrono::microseconds(kCallLimit));
            ManagerProxy manager(*bus, owner_of_service(*bus));
            return call(manager);
        } catch (const sdbus::Error& error) {
            daemon::Error known = error_of(error);
            if (known.id != daemon::ErrorId::System || std::chrono::steady_clock::now() >= until)
                return tl::make_unexpected(std::move(known));
        } catch (const std::out_of_range&) {
            return daemon::fail(daemon::ErrorId::System,
                                "vgpud's answer lacks a member; install the same version of vgpud "
                                "and of this program");
        }
        std::this_thread::sleep_for(kPollInterval);
    }
}

}  // namespace vgpu::engines
