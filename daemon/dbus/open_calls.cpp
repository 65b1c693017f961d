// SPDX-License-Identifier: MIT
#include "daemon/dbus/open_calls.h"

namespace vgpu::daemon::dbus {

void OpenCalls::add(const std::shared_ptr<OpenCall>& call) {
    std::erase_if(calls_, [](const auto& one) { return one.expired(); });
    calls_.push_back(call);
}

void OpenCalls::end_all(const Error& why) noexcept {
    for (const auto& one : std::exchange(calls_, {})) {
        const auto call = one.lock();
        if (call == nullptr) continue;
        try {
            call->end(why);
        } catch (const sdbus::Error&) {
            // the bus is gone, and the caller with it
        }
    }
}

}  // namespace vgpu::daemon::dbus
