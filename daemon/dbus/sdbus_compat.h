// SPDX-License-Identifier: MIT
//
// Hides the differences between sdbus-c++ 1.2 (Debian 12) and 2.x: strong string types, the type of
// an asynchronous call's error, activation of objects, the message in process. All other files of
// daemon/dbus use these names.
#pragma once

#include "daemon/ports/result.h"

#include <sdbus-c++/sdbus-c++.h>
#include <optional>
#include <string>
#include <type_traits>

namespace vgpu::daemon::dbus {

#if __has_include(<sdbus-c++/VTableItems.h>)  // first in 2.0
using ServiceName = sdbus::ServiceName;
using InterfaceName = sdbus::InterfaceName;
using PropertyName = sdbus::PropertyName;
using ErrorName = sdbus::Error::Name;
using CallError = std::optional<sdbus::Error>;
#else
using ServiceName = std::string;
using InterfaceName = std::string;
using PropertyName = std::string;
using ErrorName = std::string;
using CallError = const sdbus::Error*;
#endif

/// 1.2 requires this call once the registration of a proxy is complete.
template <typename Proxy> void activate(Proxy& proxy) {
    if constexpr (requires { proxy.finishRegistration(); }) proxy.finishRegistration();
}

/// Unique name of the caller whose message `object` is handling.
/// The bus sets it: no caller can choose or fake it.
template <typename Object> std::string current_sender(Object& object) {
    const auto message = object.getCurrentlyProcessedMessage();
    if constexpr (std::is_pointer_v<decltype(message)>)
        return message->getSender();
    else
        return message.getSender();
}

/// `name` is a full D-Bus error name. Any text is made valid for the bus.
inline sdbus::Error make_error(const std::string& name, const std::string& text) {
    return sdbus::Error(ErrorName{name}, as_utf8(text));
}

}  // namespace vgpu::daemon::dbus
