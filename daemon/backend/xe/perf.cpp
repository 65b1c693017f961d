// SPDX-License-Identifier: MIT
#include "daemon/backend/xe/perf.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace vgpu::daemon::xe {

tl::expected<int, int> HostPerf::open(std::uint32_t type, std::uint64_t config, int cpu) {
    perf_event_attr attributes{};
    attributes.type = type;
    attributes.size = sizeof(attributes);
    attributes.config = config;
    constexpr int kAllProcesses = -1, kNoGroup = -1;
    const long counter = ::syscall(SYS_perf_event_open, &attributes, kAllProcesses, cpu, kNoGroup,
                                   PERF_FLAG_FD_CLOEXEC);
    if (counter < 0) return tl::make_unexpected(errno);
    return static_cast<int>(counter);
}

tl::expected<std::uint64_t, int> HostPerf::read(int counter) {
    std::uint64_t value = 0;
    const ssize_t bytes = ::read(counter, &value, sizeof(value));
    if (bytes < 0) return tl::make_unexpected(errno);
    // a counter in the error state reads as the end of a file
    if (bytes != sizeof(value)) return tl::make_unexpected(EIO);
    return value;
}

void HostPerf::close(int counter) {
    ::close(counter);
}

}  // namespace vgpu::daemon::xe
