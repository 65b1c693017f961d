// SPDX-License-Identifier: MIT
//
// Result<T>: a value, or an Error. An error means that the caller or the system failed. A guest's
// mistake is not an error: a block (base/block.h) answers the mistake as hardware would. TRY() and
// TRY_VOID() pass an error on to the caller.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>

namespace vgpu {

/// An errno value and a message. Only the layer that knows the VF and the operation adds their
/// names to the message.
struct Error {
    int code = EINVAL;    ///< errno value, for exit codes and wire replies
    std::string message;  ///< see fail()

    /// The message is `what`, then the system's text for `code`: "cannot map VRAM: Cannot allocate
    /// memory".
    static Error from_errno(int code, std::string what) {
        what += ": ";
        what += std::generic_category().message(code);
        return Error{code, std::move(what)};
    }
};

template <typename T = void> using Result = tl::expected<T, Error>;

/// An error; `message` names the failure, its place and, if the caller can act, the remedy.
inline tl::unexpected<Error> fail(int code, std::string message) {
    return tl::make_unexpected(Error{code, std::move(message)});
}

/// An error as from Error::from_errno().
inline tl::unexpected<Error> fail_errno(int code, std::string what) {
    return tl::make_unexpected(Error::from_errno(code, std::move(what)));
}

}  // namespace vgpu

#define VGPU_CONCAT_(a, b) a##b
#define VGPU_CONCAT(a, b) VGPU_CONCAT_(a, b)

/// TRY(auto x, call()): sets x to the value of call(). If call() fails, the enclosing function
/// returns the error.
#define TRY(decl, ...)                                                              \
    auto VGPU_CONCAT(try_, __LINE__) = (__VA_ARGS__);                               \
    if (!VGPU_CONCAT(try_, __LINE__))                                               \
        return tl::make_unexpected(std::move(VGPU_CONCAT(try_, __LINE__)).error()); \
    decl = std::move(*VGPU_CONCAT(try_, __LINE__))

/// TRY_VOID(call()): if call() fails, the enclosing function returns the error.
#define TRY_VOID(...)                                                                   \
    if (auto VGPU_CONCAT(try_, __LINE__) = (__VA_ARGS__); !VGPU_CONCAT(try_, __LINE__)) \
    return tl::make_unexpected(std::move(VGPU_CONCAT(try_, __LINE__)).error())
