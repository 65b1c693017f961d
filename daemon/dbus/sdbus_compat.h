// SPDX-License-Identifier: MIT
//
// Hides the differences between sdbus-c++ 1.2 (Debian 12) and 2.x: string types, errors of
// asynchronous calls, activation of proxies, and access to the message that is being processed.
#pragma once

#include "daemon/ports/result.h"

#include <sdbus-c++/sdbus-c++.h>
#include <optional>
#include <string>
#include <type_traits>

namespace vgpu::daemon::dbus {

#if __has_include(<sdbus-c++/VTableItems.h>)  // new in 2.0
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

/// Activates a proxy. Version 1.2 requires this call; 2.x does not have it.
template <typename Proxy> void activate(Proxy& proxy) {
    if constexpr (requires { proxy.finishRegistration(); }) proxy.finishRegistration();
}

/// Unique bus name of the current caller, as the bus reports it. Version 1.2 returns the message as
/// a pointer, 2.x by value.
template <typename Object> std::string current_sender(Object& object) {
    const auto message = object.getCurrentlyProcessedMessage();
    if constexpr (std::is_pointer_v<decltype(message)>)
        return message->getSender();
    else
        return message.getSender();
}

/// Signature of the variant that is read next from a message. Version 1.2 returns two strings
/// through arguments, 2.x a pair.
template <typename Message> std::string next_variant_type(const Message& message) {
    if constexpr (requires(std::string & text) { message.peekType(text, text); }) {
        std::string type, contents;
        message.peekType(type, contents);
        return contents;
    } else {
        const char* const contents = message.peekType().second;
        return contents == nullptr ? "" : contents;
    }
}

/// Makes a D-Bus error. `name`: full D-Bus error name. Replaces invalid UTF-8 in `text`.
inline sdbus::Error make_error(const std::string& name, const std::string& text) {
    return sdbus::Error(ErrorName{name}, as_utf8(text));
}

}  // namespace vgpu::daemon::dbus
