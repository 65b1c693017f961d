// SPDX-License-Identifier: MIT
#include "daemon/backend/sriov/sysfs.h"

#include <fmt/format.h>
#include <array>
#include <cerrno>
#include <charconv>

namespace vgpu::daemon::sriov {

namespace {

struct Meaning {
    std::string_view file;
    int code;
    std::string_view text;
};

constexpr std::array kMeanings{
#define ERRNO_MEANING(file, code, text) Meaning{file, code, text},
#include "daemon/backend/sriov/errno_meanings.def"
#undef ERRNO_MEANING
};

std::string_view file_name(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

std::string_view meaning_of(const SysfsError& error) {
    for (const Meaning& row : kMeanings)
        if (row.code == error.code && (row.file.empty() || row.file == file_name(error.path)))
            return row.text;
    return {};
}

ErrorId id_of(int code) {
    if (code == EROFS) return ErrorId::Observed;
    return code == EINPROGRESS ? ErrorId::DriverBusy : ErrorId::PfRefused;
}

}  // namespace

std::string device_path(std::string_view address, std::string_view file) {
    return fmt::format("/sys/bus/pci/devices/{}{}{}", address, file.empty() ? "" : "/", file);
}

std::string driver_path(std::string_view driver) {
    return fmt::format("/sys/bus/pci/drivers/{}", driver);
}

tl::unexpected<SysfsError> cannot_read(const std::string& path, int code) {
    return tl::make_unexpected(
        SysfsError{.code = code, .what = "cannot read " + path, .path = path});
}

tl::unexpected<SysfsError> cannot_write(const std::string& path, std::string_view text, int code) {
    return tl::make_unexpected(SysfsError{
        .code = code, .what = fmt::format("cannot write '{}' to {}", text, path), .path = path});
}

Error error_of(const SysfsError& error) {
    Error out = fail_errno(id_of(error.code), error.code, error.what).value();
    if (const std::string_view meaning = meaning_of(error); !meaning.empty())
        out.cause += fmt::format("; {}", meaning);
    return out;
}

Result<std::uint64_t> parse_number(const std::string& path, std::string_view text,
                                   std::uint64_t max) {
    constexpr int kDecimal = 10, kHexadecimal = 16;
    const bool is_hexadecimal = text.starts_with("0x");
    const std::string_view digits = is_hexadecimal ? text.substr(2) : text;
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value,
                                              is_hexadecimal ? kHexadecimal : kDecimal);
    if (error != std::errc{} || end != digits.data() + digits.size() || value > max)
        return fail(ErrorId::PfRefused,
                    fmt::format("{} reads '{}', but a number of at most {} was expected; this PF "
                                "driver is not one that vgpud knows",
                                path, text, max));
    return value;
}

Result<std::uint64_t> read_number(Sysfs& files, const std::string& path, std::uint64_t max) {
    TRY(const std::string text, checked(files.read(path)));
    return parse_number(path, text, max);
}

SysfsResult<> ReadOnlySysfs::write(const std::string& path, std::string_view text) {
    return cannot_write(path, text, EROFS);
}

}  // namespace vgpu::daemon::sriov
