// SPDX-License-Identifier: MIT
//
// Sysfs: the interface to the sysfs files that control SR-IOV. HostSysfs uses the files of this
// machine, BoundedSysfs adds a time limit, ReadOnlySysfs refuses every write (mode observe), and
// unit tests have a tree in memory. Errors keep the errno, because callers decide by the errno;
// error_of() makes the text for people. Only the GPU's thread calls a Sysfs, unless a class or
// function allows more.
#pragma once

#include "daemon/ports/result.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon::sriov {

struct SysfsError {
    int code = 0;      ///< errno; EINPROGRESS: the kernel has not finished (BoundedSysfs)
    std::string what;  ///< "cannot write '4' to /sys/bus/pci/devices/0000:03:00.0/sriov_numvfs"
    std::string path;  ///< of the file
};

template <typename T = void> using SysfsResult = tl::expected<T, SysfsError>;

class Sysfs {
public:
    virtual ~Sysfs() = default;

    /// The content without the line feed at its end; at most one page (4096 bytes), as sysfs has.
    virtual SysfsResult<std::string> read(const std::string& path) = 0;
    /// As read(), for a file whose driver takes a lock that another program's write may hold for
    /// long: sriov_numvfs, driver_override, and the files of xe that show values of the firmware.
    virtual SysfsResult<std::string> read_slow(const std::string& path) { return read(path); }
    /// Writes the whole text by one write(2). BoundedSysfs limits the time; otherwise a write takes
    /// as long as the kernel needs.
    virtual SysfsResult<> write(const std::string& path, std::string_view text) = 0;
    /// Names in a directory, sorted.
    virtual SysfsResult<std::vector<std::string>> list(const std::string& path) = 0;
    /// The last component of a link's target, such as the address of a device or the name of a
    /// driver. ENOENT if there is no such link.
    virtual SysfsResult<std::string> link(const std::string& path) = 0;
    /// The access that the kernel has not finished (BoundedSysfs); empty if there is none.
    [[nodiscard]] virtual std::string pending() const { return {}; }
    /// BoundedSysfs: the access under way and later ones no longer wait for the kernel. By default
    /// no effect. Any thread may call interrupt().
    virtual void interrupt() {}
    /// Permission bits; none if the file does not exist. sysfs checks the bits even if root opens
    /// the file.
    virtual std::optional<unsigned> mode(const std::string& path) = 0;

    [[nodiscard]] bool has(const std::string& path) { return mode(path).has_value(); }
    [[nodiscard]] bool is_writable(const std::string& path) {
        constexpr unsigned kOwnerWrites = 0200;
        return (mode(path).value_or(0) & kOwnerWrites) != 0;
    }
};

/// "/sys/bus/pci/devices/0000:03:00.0/sriov_numvfs"; without `file`, the device's directory
[[nodiscard]] std::string device_path(std::string_view address, std::string_view file = "");
/// "/sys/bus/pci/drivers/vfio-pci"
[[nodiscard]] std::string driver_path(std::string_view driver);

tl::unexpected<SysfsError> cannot_read(const std::string& path, int code);
tl::unexpected<SysfsError> cannot_write(const std::string& path, std::string_view text, int code);

/// Makes "<what>: <system's text>; <meaning of the errno for this file>" (errno_meanings.def). The
/// id is Observed for EROFS (a write in mode observe), DriverBusy for EINPROGRESS (the kernel has
/// not finished), else PfRefused.
[[nodiscard]] Error error_of(const SysfsError& error);

/// Converts a result for TRY(): the value, or error_of() as Result.
template <typename T> Result<T> checked(SysfsResult<T> result) {
    if (!result) return tl::make_unexpected(error_of(result.error()));
    if constexpr (std::is_void_v<T>)
        return {};
    else
        return *std::move(result);
}

/// The number in `text`, the content of the file `path`; decimal, or hexadecimal after "0x".
/// PfRefused, with the path and the text, for other text or for a number above `max`.
Result<std::uint64_t> parse_number(const std::string& path, std::string_view text,
                                   std::uint64_t max = UINT64_MAX);
/// Reads the file `path` and returns its number, as parse_number(). Also fails as error_of().
Result<std::uint64_t> read_number(Sysfs& files, const std::string& path,
                                  std::uint64_t max = UINT64_MAX);

/// Refuses every write with EROFS and passes reads on. In mode observe, a backend has only a
/// ReadOnlySysfs.
class ReadOnlySysfs final : public Sysfs {
public:
    explicit ReadOnlySysfs(std::shared_ptr<Sysfs> files) : files_(std::move(files)) {}

    SysfsResult<std::string> read(const std::string& path) override { return files_->read(path); }
    SysfsResult<std::string> read_slow(const std::string& path) override {
        return files_->read_slow(path);
    }
    SysfsResult<> write(const std::string& path, std::string_view text) override;
    SysfsResult<std::vector<std::string>> list(const std::string& path) override {
        return files_->list(path);
    }
    SysfsResult<std::string> link(const std::string& path) override { return files_->link(path); }
    std::optional<unsigned> mode(const std::string& path) override { return files_->mode(path); }
    [[nodiscard]] std::string pending() const override { return files_->pending(); }
    void interrupt() override { files_->interrupt(); }

private:
    const std::shared_ptr<Sysfs> files_;
};

}  // namespace vgpu::daemon::sriov
