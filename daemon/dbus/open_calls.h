// SPDX-License-Identifier: MIT
//
// OpenCalls: the unanswered method calls of one D-Bus object. All of them must be answered before
// the object leaves the bus: libsystemd reads the object's vtable when a reply is sent
// (enforced_reply_signature in bus-objects.c), and sdbus-c++ frees the vtable with the object.
#pragma once

#include "daemon/dbus/request_limits.h"
#include "daemon/dbus/sdbus_compat.h"
#include "daemon/ports/result.h"

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace vgpu::daemon::dbus {

/// The D-Bus error with the name of `error.id` and the text of `error`.
sdbus::Error to_dbus(const Error& error);

/// One method call that is not answered yet.
class OpenCall {
public:
    OpenCall() = default;
    virtual ~OpenCall() = default;
    OpenCall(const OpenCall&) = delete;
    OpenCall& operator=(const OpenCall&) = delete;

    /// Answers with the error `why`, because the object is removed. Throws sdbus::Error if the bus
    /// is gone.
    virtual void end(const Error& why) = 0;
};

/// A call whose answer is a Result<T>. `Replied`: the type of the value in the reply, which is T;
/// none if T is void.
template <typename T, typename... Replied> class OpenCallOf final : public OpenCall {
public:
    OpenCallOf(sdbus::Result<Replied...>&& result, RequestLimits::Ticket ticket)
        : result_(std::move(result)), ticket_(std::move(ticket)) {}

    /// True until the call is answered.
    [[nodiscard]] bool is_open() const { return result_.has_value(); }
    /// Sends the answer. Does nothing if an answer was sent before.
    void answer(const Result<T>& answer) {
        if (!is_open()) return;
        const sdbus::Result<Replied...> result = *std::exchange(result_, std::nullopt);
        if (!answer) return result.returnError(to_dbus(answer.error()));
        if constexpr (std::is_void_v<T>)
            result.returnResults();
        else
            result.returnResults(*answer);
    }
    void end(const Error& why) override { answer(tl::make_unexpected(why)); }

private:
    std::optional<sdbus::Result<Replied...>> result_;
    RequestLimits::Ticket ticket_;  ///< the request counts as open while this object exists
};

class OpenCalls {
public:
    void add(const std::shared_ptr<OpenCall>& call);
    /// Answers all open calls with the error `why`. Call it before the object is unregistered.
    void end_all(const Error& why) noexcept;

private:
    /// Weak pointers, because the pending work owns the calls.
    std::vector<std::weak_ptr<OpenCall>> calls_;
};

}  // namespace vgpu::daemon::dbus
