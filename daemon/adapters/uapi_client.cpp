// SPDX-License-Identifier: MIT
#include "daemon/adapters/uapi_client.h"

#include "daemon/backend/pf_core.h"

#include <fmt/format.h>
#include <algorithm>
#include <cerrno>

namespace vgpu::daemon::adapters {

namespace {

template <typename T> std::span<const std::byte> bytes_of(const T& object) {
    return std::as_bytes(std::span<const T, 1>(&object, 1));
}

}  // namespace

void UapiClient::disconnect() {
    const std::scoped_lock lock(mutex_);
    channel_.reset();
}

void UapiClient::interrupt() {
    // Raise interrupted_ first and never clear it, so that it also ends the requests of a channel
    // that connect() is still opening.
    interrupted_.raise();
    const std::scoped_lock lock(mutex_);
    if (channel_) channel_->interrupt();
}

/// Closes the channel if `result` is PfLost.
template <typename T> Result<T> UapiClient::checked(Result<T> result) {
    if (!result && result.error().id == ErrorId::PfLost) disconnect();
    return result;
}

Result<> UapiClient::connect() {
    disconnect();
    TRY(auto channel, opener_(path_, interrupted_));
    {
        const std::scoped_lock lock(mutex_);
        channel_ = std::move(channel);
    }
    time_limit_ = kConnectTimeout;
    auto info = read_info();
    time_limit_ = kTimeout;
    if (!info) return tl::make_unexpected(info.error());
    if (info->uapi_version == VGPU_PF_UAPI_VERSION) return {};
    disconnect();
    return fail(ErrorId::VersionMismatch,
                fmt::format("{}: the PF driver speaks uapi version {}, vgpud version {}", path_,
                            info->uapi_version, VGPU_PF_UAPI_VERSION));
}

template <typename T> Result<T> UapiClient::call(vgpu_pf_op op, T body, int fd_to_send) {
    if (!is_connected())
        return fail_errno(ErrorId::PfLost, ENOTCONN, path_ + ": not connected to the PF driver");
    body.size = sizeof body;
    TRY(const UapiReply reply,
        checked(channel_->exchange(
            {.op = op, .body = bytes_of(body), .fd = fd_to_send, .limit = time_limit_})));
    // The struct of an older PF core is shorter. The members that the shorter struct lacks keep the
    // values that were sent.
    std::copy_n(reply.body.begin(), std::min(sizeof body, reply.body.size()),
                std::as_writable_bytes(std::span<T, 1>(&body, 1)).begin());
    return body;
}

template <typename T> Result<T> UapiClient::change(vgpu_pf_op op, T body) {
    time_limit_ = kChangeTimeout;
    auto result = call(op, body);
    time_limit_ = kTimeout;
    return result;
}

Result<> UapiClient::change_vf(vgpu_pf_op op, std::uint32_t vf, std::uint32_t generation) {
    vgpu_pf_vf_ref ref{};
    ref.vf = vf;
    ref.generation = generation;
    TRY_VOID(change(op, ref));
    return {};
}

Result<vgpu_pf_info> UapiClient::read_info() {
    TRY(vgpu_pf_info info, call(VGPU_PF_OP_GET_INFO, vgpu_pf_info{}));
    info.name[sizeof info.name - 1] = '\0';
    info.total_vfs = std::min(info.total_vfs, VGPU_PF_MAX_VFS);
    return info;
}

Result<GpuFacts> UapiClient::get_info() {
    return read_info().map([](const vgpu_pf_info& info) { return facts_of(info); });
}

Result<VfFacts> UapiClient::get_vf(std::uint32_t vf) {
    vgpu_pf_vf requested{};
    requested.vf = vf;
    TRY(vgpu_pf_vf got, call(VGPU_PF_OP_GET_VF, requested));
    got.driver_version[sizeof got.driver_version - 1] = '\0';
    return facts_of(got);
}

Result<> UapiClient::provision(const vgpu_pf_provision& requested) {
    TRY_VOID(change(VGPU_PF_OP_PROVISION, requested));
    return {};
}

Result<> UapiClient::release(std::uint32_t vf, std::uint32_t generation) {
    return change_vf(VGPU_PF_OP_RELEASE, vf, generation);
}

Result<> UapiClient::confirm_scrub(std::uint32_t vf, std::uint32_t generation) {
    return change_vf(VGPU_PF_OP_SCRUB_DURABLE, vf, generation);
}

Result<> UapiClient::check_scrubbed(std::uint32_t vf, std::uint32_t generation) {
    return change_vf(VGPU_PF_OP_VERIFY_ZERO, vf, generation);
}

Result<> UapiClient::control(std::uint32_t vf, std::uint32_t generation,
                             vgpu_pf_control_action action) {
    vgpu_pf_control control{};
    control.vf = vf;
    control.generation = generation;
    control.action = action;
    TRY_VOID(change(VGPU_PF_OP_CONTROL, control));
    return {};
}

Result<> UapiClient::set_run_table(const vgpu_pf_run_table& table) {
    TRY_VOID(call(VGPU_PF_OP_SET_RUN_TABLE, table));
    return {};
}

Result<vgpu_pf_run_table> UapiClient::get_run_table() {
    TRY(vgpu_pf_run_table table, call(VGPU_PF_OP_GET_RUN_TABLE, vgpu_pf_run_table{}));
    table.count = std::min(table.count, VGPU_PF_TABLE_ENTRIES);
    table.reserve_count = std::min(table.reserve_count, VGPU_PF_MAX_VFS);
    return table;
}

Result<> UapiClient::acquire_lease() {
    vgpu_pf_lease lease{};
    lease.acquire = 1;
    TRY_VOID(call(VGPU_PF_OP_LEASE, lease));
    return {};
}

Result<> UapiClient::dump(int fd) {
    vgpu_pf_stream stream{};
    stream.fd = fd;
    TRY_VOID(call(VGPU_PF_OP_DUMP, stream, fd));
    return {};
}

Result<std::unique_ptr<EventPort>> UapiClient::open_events() {
    if (!is_connected())
        return fail_errno(ErrorId::PfLost, ENOTCONN, path_ + ": not connected to the PF driver");
    return checked(channel_->open_events());
}

}  // namespace vgpu::daemon::adapters
