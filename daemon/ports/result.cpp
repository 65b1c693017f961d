// SPDX-License-Identifier: MIT
#include "daemon/ports/result.h"

#include <fmt/format.h>
#include <array>
#include <system_error>

namespace vgpu::daemon {

namespace {

constexpr std::array kRows{
#define DAEMON_ERROR(name, number, fix) ErrorRow{ErrorId::name, number, #name, fix},
#include "daemon/ports/errors.def"
#undef DAEMON_ERROR
};

}  // namespace

const ErrorRow& row_of(ErrorId id) {
    return kRows.at(static_cast<std::size_t>(id));
}

std::string text_of(const Error& error) {
    const ErrorRow& row = row_of(error.id);
    return fmt::format("VGPU-{}: {}. {}", row.number, error.cause, row.fix);
}

std::string dbus_name_of(ErrorId id) {
    return fmt::format("org.vgpu1.Error.{}", row_of(id).name);
}

tl::unexpected<Error> fail(ErrorId id, std::string cause) {
    return tl::make_unexpected(Error{id, as_utf8(std::move(cause))});
}

tl::unexpected<Error> fail_errno(ErrorId id, int code, std::string_view what) {
    return fail(id, fmt::format("{}: {}", what, std::generic_category().message(code)));
}

}  // namespace vgpu::daemon
