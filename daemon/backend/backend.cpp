// SPDX-License-Identifier: MIT
#include "daemon/backend/backend.h"

namespace vgpu::daemon {

namespace {

tl::unexpected<Error> not_offered(std::string_view what) {
    return fail(ErrorId::NotOffered, "the driver of this GPU does not offer " + std::string(what));
}

}  // namespace

bool Backend::take_changes() {
    return false;
}

std::vector<BackendNotice> Backend::take_notices() {
    return {};
}

Result<> Backend::enable_vfs(std::uint32_t, std::span<const VfSize>) {
    return not_offered("another number of VFs");
}

Result<> Backend::scrub_absent(const VfSize&) {
    return {};
}

Result<> Backend::control(std::uint32_t, std::uint32_t, vgpu_pf_control_action) {
    return not_offered("this action");
}

Result<> Backend::set_shares(std::span<const VfShare>) {
    return not_offered("shares of the engine");
}

Result<> Backend::set_run_table(const vgpu_pf_run_table&) {
    return not_offered("run tables");
}

Result<vgpu_pf_run_table> Backend::get_run_table() {
    return not_offered("run tables");
}

Result<> Backend::acquire_lease() {
    return {};
}

Result<> Backend::dump(int) {
    return not_offered("a diagnostic report");
}

Result<std::unique_ptr<EventPort>> Backend::open_events() {
    return std::unique_ptr<EventPort>();
}

void Backend::interrupt() {}

}  // namespace vgpu::daemon
