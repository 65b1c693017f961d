// SPDX-License-Identifier: MIT
//
// Result<T>: a value, or an error that names the failure, its place and the remedy. Only for errors
// of the caller and of the system: a block answers a guest's mistake as hardware would, never with
// a Result that leaves the block. TRY() returns early with the callee's error.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>

namespace vgpu {

/// An errno value and a message. The layer that knows the VF and the operation adds context, once.
struct Error {
    int code = EINVAL;    ///< errno value, for exit codes and wire replies
    std::string message;  ///< the failure, its place, and the remedy

    /// `what`, then the system's message for `code`: "cannot map VRAM: Cannot allocate memory".
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

/// An error with the system's message for `code` after `what`.
inline tl::unexpected<Error> fail_errno(int code, std::string what) {
    return tl::make_unexpected(Error::from_errno(code, std::move(what)));
}

}  // namespace vgpu

#define VGPU_CONCAT_(a, b) a##b
#define VGPU_CONCAT(a, b) VGPU_CONCAT_(a, b)

/// TRY(auto x, call()): x is the value of call(), or this function returns call()'s error.
#define TRY(decl, ...)                                                              \
    auto VGPU_CONCAT(try_, __LINE__) = (__VA_ARGS__);                               \
    if (!VGPU_CONCAT(try_, __LINE__))                                               \
        return tl::make_unexpected(std::move(VGPU_CONCAT(try_, __LINE__)).error()); \
    decl = std::move(*VGPU_CONCAT(try_, __LINE__))

/// TRY_VOID(call()): this function returns call()'s error if there is one.
#define TRY_VOID(...)                                                                   \
    if (auto VGPU_CONCAT(try_, __LINE__) = (__VA_ARGS__); !VGPU_CONCAT(try_, __LINE__)) \
    return tl::make_unexpected(std::move(VGPU_CONCAT(try_, __LINE__)).error())
