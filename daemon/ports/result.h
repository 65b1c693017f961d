// SPDX-License-Identifier: MIT
//
// Result<T>: a value, or an error of errors.def with its cause. The function that fails writes the
// cause once, and names the GPU, VF, option or file. No function of this file throws.
#pragma once

#include "text/utf8.h"

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace vgpu::daemon {

enum class ErrorId {
#define DAEMON_ERROR(name, number, fix) name,
#include "daemon/ports/errors.def"
#undef DAEMON_ERROR
};

/// One row of errors.def.
struct ErrorRow {
    ErrorId id;
    int number;             ///< the number that scripts match, as in VGPU-302
    std::string_view name;  ///< the last part of the D-Bus error name
    std::string_view fix;   ///< a sentence for the caller
};

struct Error {
    ErrorId id = ErrorId::System;
    std::string cause;  ///< what happened to which object; no full stop at the end
};

[[nodiscard]] const ErrorRow& row_of(ErrorId id);

/// "VGPU-302: VRAM: 128 MiB wanted, 96 MiB free on gpu0. Ask for less VRAM, or destroy a VF."
[[nodiscard]] std::string text_of(const Error& error);

/// "org.vgpu1.Error.NoVram"
[[nodiscard]] std::string dbus_name_of(ErrorId id);

template <typename T = void> using Result = tl::expected<T, Error>;

/// Replaces invalid UTF-8 in causes, because causes quote text of other programs, and a D-Bus
/// daemon disconnects senders of invalid UTF-8.
using text::as_utf8;

/// An Error that converts to any Result<T>, for a return statement. Passes `cause` through
/// as_utf8().
tl::unexpected<Error> fail(ErrorId id, std::string cause);

/// As fail(), with the cause "<what>: <system's text for code>"; `code` is a positive errno.
tl::unexpected<Error> fail_errno(ErrorId id, int code, std::string_view what);

}  // namespace vgpu::daemon

#define VGPU_DAEMON_CONCAT_(a, b) a##b
#define VGPU_DAEMON_CONCAT(a, b) VGPU_DAEMON_CONCAT_(a, b)

// pf-driver/softgpu/base/result.h defines the same two macros.
#ifndef TRY
/// TRY(auto x, call()): x is the value of call(). If call() fails, the function that contains TRY
/// returns the error of call().
#define TRY(decl, ...)                                                                     \
    auto VGPU_DAEMON_CONCAT(try_, __LINE__) = (__VA_ARGS__);                               \
    if (!VGPU_DAEMON_CONCAT(try_, __LINE__))                                               \
        return tl::make_unexpected(std::move(VGPU_DAEMON_CONCAT(try_, __LINE__)).error()); \
    decl = std::move(*VGPU_DAEMON_CONCAT(try_, __LINE__))

/// TRY_VOID(call()): if call() fails, the function that contains TRY_VOID returns the error of
/// call().
#define TRY_VOID(...)                                            \
    if (auto VGPU_DAEMON_CONCAT(try_, __LINE__) = (__VA_ARGS__); \
        !VGPU_DAEMON_CONCAT(try_, __LINE__))                     \
    return tl::make_unexpected(std::move(VGPU_DAEMON_CONCAT(try_, __LINE__)).error())
#endif
