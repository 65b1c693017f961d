// SPDX-License-Identifier: MIT
//
// OpenCalls holds the unanswered calls of one object, because an object must answer all its calls
// before it leaves the bus: in the message of each call, libsystemd keeps a pointer into the vtable
// of the called object and compares with it when the reply is sent (enforced_reply_signature in its
// bus-objects.c), but sdbus-c++ frees that vtable with the object. Main loop only.
#pragma once

#include "daemon/dbus/admission.h"
#include "daemon/dbus/sdbus_compat.h"
#include "daemon/ports/result.h"

#include <functional>
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

    /// Answers an open call because the object goes. Throws sdbus::Error if the bus is gone.
    virtual void end(const Error& why) = 0;
};

/// A call of a method with the D-Bus results `Replied`, answered by a Result<T> of the service.
template <typename T, typename... Replied> class OpenCallOf final : public OpenCall {
public:
    /// `at_end` makes the answer if the object goes first; nullptr: the reason is the error.
    OpenCallOf(sdbus::Result<Replied...>&& result, Admission::Ticket ticket,
               std::function<Result<T>(const Error&)> at_end)
        : result_(std::move(result)), ticket_(std::move(ticket)), at_end_(std::move(at_end)) {}

    /// True until the call is answered.
    [[nodiscard]] bool is_open() const { return result_.has_value(); }
    /// Sends the first answer and ignores later ones.
    void answer(const Result<T>& answer) {
        if (!is_open()) return;
        const sdbus::Result<Replied...> result = *std::exchange(result_, std::nullopt);
        if (!answer) return result.returnError(to_dbus(answer.error()));
        if constexpr (std::is_void_v<T>)
            result.returnResults();
        else
            result.returnResults(*answer);
    }
    void end(const Error& why) override {
        answer(at_end_ ? at_end_(why) : Result<T>(tl::make_unexpected(why)));
    }

private:
    std::optional<sdbus::Result<Replied...>> result_;
    Admission::Ticket ticket_;
    std::function<Result<T>(const Error&)> at_end_;
};

class OpenCalls {
public:
    void add(const std::shared_ptr<OpenCall>& call);
    /// Answers all open calls; to be called before the object is unregistered.
    void end_all(const Error& why) noexcept;

private:
    /// The code that works on the answer owns the call.
    std::vector<std::weak_ptr<OpenCall>> calls_;
};

}  // namespace vgpu::daemon::dbus
