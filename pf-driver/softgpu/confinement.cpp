// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/confinement.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <string>

#include "pf-driver/confine/confine.h"
#include "pf-driver/confine/sealed.h"
#include "pf-driver/softgpu/base/log.h"
#include "pf-driver/softgpu/base/priority.h"
#include "pf-driver/softgpu/vfio_user/client_record.h"

namespace vgpu::softgpu {

namespace {

/// Calls for memory of VFs and of doorbells, the io thread's sources, interrupts of clients.
constexpr std::array kCalls{SYS_memfd_create, SYS_ftruncate,   SYS_fstatfs,   SYS_epoll_ctl,
                            SYS_epoll_wait,   SYS_epoll_pwait, SYS_io_submit, SYS_io_getevents};
constexpr std::array<int, kCalls.size()> kCallNumbers = [] {
    std::array<int, kCalls.size()> numbers{};
    for (std::size_t i = 0; i < kCalls.size(); ++i) numbers[i] = static_cast<int>(kCalls[i]);
    return numbers;
}();

constexpr vgpu_confine_rules kRules{.program = "softgpu",
                                    .socket_type = SOCK_STREAM,
                                    .other_socket_type = SOCK_STREAM,
                                    .calls = kCallNumbers.data(),
                                    .call_count = kCallNumbers.size()};

/// If the path of a client record is too long to be sealed, the record is not written.
Result<> seal_socket(const std::string& path) {
    (void)vgpu_seal_path(vfio_user::ClientRecord::path_of(path).c_str(), VGPU_PATH_RECORD);
    const int error = vgpu_seal_socket(path.c_str());
    if (error == 0 || error == -ENAMETOOLONG) return {};  // listen() refuses it in its own words
    return fail_errno(-error, "cannot seal the path " + path);
}

Result<> result_of(int error) {
    if (error == 0) return {};
    return fail_errno(-error, fmt::format("cannot lock itself in: {}", vgpu_confine_step()));
}

}  // namespace

Result<> seal_paths(const Gpu::Spec& spec, bool has_control) {
    const std::string& directory = spec.socket_dir;
    TRY_VOID(seal_socket(directory + "/pf.sock"));
    for (std::uint32_t vf = 1; vf <= spec.vfs; ++vf)
        TRY_VOID(seal_socket(fmt::format("{}/vf{}.sock", directory, vf)));
    if (spec.host_view) TRY_VOID(seal_socket(directory + "/host.sock"));
    if (has_control) TRY_VOID(seal_socket(directory + "/control.sock"));
    return {};
}

Result<> drop_files() {
    if (vgpu_confine_landlock_version() == 0)
        log::info("this kernel has no Landlock: only seccomp confines softgpu");
    return result_of(vgpu_confine_files(kRealTimeWatch));
}

Result<> drop_calls() {
    return result_of(vgpu_confine_calls(&kRules));
}

}  // namespace vgpu::softgpu
