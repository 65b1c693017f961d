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

/// System calls that softgpu needs in addition to those that every confined program may make
/// (filter.c). They are for the memfds of VRAM and doorbells, the files of clients' memory, the
/// event sources of the io thread, and the interrupts of clients.
constexpr std::array kCalls{SYS_memfd_create, SYS_ftruncate,   SYS_fstatfs,   SYS_epoll_ctl,
                            SYS_epoll_wait,   SYS_epoll_pwait, SYS_io_submit, SYS_io_getevents};
/// kCalls with the element type that vgpu_confine_rules takes.
constexpr std::array<int, kCalls.size()> kCallNumbers = [] {
    std::array<int, kCalls.size()> numbers{};
    for (std::size_t i = 0; i < kCalls.size(); ++i) numbers[i] = static_cast<int>(kCalls[i]);
    return numbers;
}();

/// All sockets of softgpu have one type, so the second type repeats the first.
constexpr vgpu_confine_rules kRules{.program = "softgpu",
                                    .socket_type = SOCK_STREAM,
                                    .other_socket_type = SOCK_STREAM,
                                    .calls = kCallNumbers.data(),
                                    .call_count = kCallNumbers.size()};

/// Seals the paths of a socket and of its client record (pf-driver/confine/sealed.h). Ignores a
/// failure to seal the record's path: the confined process then cannot write the record, which is
/// optional.
Result<> seal_socket(const std::string& path) {
    (void)vgpu_seal_path(vfio_user::ClientRecord::path_of(path).c_str(), VGPU_PATH_RECORD);
    const int error = vgpu_seal_socket(path.c_str());
    if (error == 0 || error == -ENAMETOOLONG) return {};  // listen() reports such a path
    return fail_errno(-error, "cannot seal the path " + path);
}

Result<> result_of(int error) {
    if (error == 0) return {};
    return fail_errno(-error, fmt::format("cannot confine itself: {}", vgpu_confine_step()));
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
