// SPDX-License-Identifier: MIT
#include "tests/scenario/demo/guest_report.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "tests/support/deadline.h"

namespace vgpu::demo {

SharedReport::SharedReport() : fd_(::memfd_create("vgpu-demo-guest", 0)) {
    if (!fd_ || ::ftruncate(fd_.get(), 4096) != 0)
        throw test::VfError("shared page of a guest", errno);
    map();
    new (memory_.bytes().data()) GuestReport;
}

SharedReport::SharedReport(int fd) : fd_(fd) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    map();
}

void SharedReport::map() {
    void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    if (page == MAP_FAILED) throw test::VfError("shared page of a guest", errno);
    memory_ = test::Mapping(page, 4096);
    report_ = static_cast<GuestReport*>(page);
}

void SharedReport::say(const std::string& text) const {
    const auto length = std::min(text.size(), report_->text.size() - 1);
    std::memcpy(report_->text.data(), text.data(), length);
    report_->text.at(length) = '\0';
}

}  // namespace vgpu::demo
