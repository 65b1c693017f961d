// SPDX-License-Identifier: MIT
//
// OpenCalls: the unanswered calls of one object. They must be answered before the object leaves the
// bus, because libsystemd reads the object's vtable when a reply is sent (enforced_reply_signature
// in bus-objects.c), and sdbus-c++ frees the vtable with the object.
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

sdbus::Error to_dbus(const Error& error);

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

/// A call with the D-Bus results `Replied`, answered by a Result<T>.
template <typename T, typename... Replied> class OpenCallOf final : public OpenCall {
public:
    OpenCallOf(sdbus::Result<Replied...>&& result, RequestLimits::Ticket ticket)
        : result_(std::move(result)), ticket_(std::move(ticket)) {}

    [[nodiscard]] bool is_open() const { return result_.has_value(); }
    /// Sends the answer. Only the first call has an effect.
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
    RequestLimits::Ticket ticket_;
};

class OpenCalls {
public:
    void add(const std::shared_ptr<OpenCall>& call);
    /// Call before the object is unregistered.
    void end_all(const Error& why) noexcept;

private:
    /// The code that works on the answer owns the call.
    std::vector<std::weak_ptr<OpenCall>> calls_;
};

}  // namespace vgpu::daemon::dbus
