// SPDX-License-Identifier: MIT
#include "daemon/adapters/uapi_channel.h"

#include "daemon/adapters/device_channel.h"
#include "daemon/adapters/socket_channel.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <system_error>

namespace vgpu::daemon::adapters {

tl::unexpected<Error> UapiChannel::refused(int error, std::string_view message) {
    const std::string words = std::generic_category().message(-error);
    return fail(ErrorId::PfRefused,
                message.empty() ? words : fmt::format("{} ({})", message, words));
}

Result<std::unique_ptr<UapiChannel>> open_channel(const std::string& path,
                                                  const Wakeup& interrupted) {
    struct stat file {};
    const bool is_device = ::stat(path.c_str(), &file) == 0 && S_ISCHR(file.st_mode);
    return is_device ? DeviceChannel::open(path, interrupted)
                     : SocketChannel::open(path, interrupted);
}

}  // namespace vgpu::daemon::adapters
