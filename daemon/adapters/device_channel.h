// SPDX-License-Identifier: MIT
//
// DeviceChannel: implements UapiChannel over the character device of vgpu_pf.ko, with one ioctl per
// request. An ioctl waits until the PF core answers. At the time limit, a timer ends the ioctl by a
// signal to the calling thread. interrupt() ends the ioctl by VGPU_PF_OP_CANCEL on the same file.
#pragma once

#include "daemon/adapters/uapi_channel.h"

namespace vgpu::daemon::adapters {

class DeviceChannel final : public UapiChannel {
public:
    /// PfLost if the device cannot be opened. Opens the device with O_NONBLOCK, which affects only
    /// read(2), not ioctls.
    static Result<std::unique_ptr<UapiChannel>> open(const std::string& path,
                                                     const Wakeup& interrupted);

    Result<UapiReply> exchange(const UapiRequest& request) override;
    Result<std::unique_ptr<EventPort>> open_events() override;
    /// -1, because EventPort::wait_fd(), a duplicate of device_, reports the end of the PF core.
    [[nodiscard]] int fd() const override { return -1; }
    void interrupt() override;

private:
    DeviceChannel(std::string path, UniqueFd device)
        : path_(std::move(path)), device_(std::move(device)) {}

    [[nodiscard]] tl::unexpected<Error> lost(std::string_view what, int code) const;
    /// The PF core's text for the last failed request, because an ioctl returns only an errno.
    /// Empty if there is none.
    [[nodiscard]] std::string error_text() const;

    const std::string path_;
    UniqueFd device_;
};

/// Paths of the kernel's PF devices, /dev/vgpu-pfN, sorted by N.
[[nodiscard]] std::vector<std::string> present_pf_devices();

}  // namespace vgpu::daemon::adapters
