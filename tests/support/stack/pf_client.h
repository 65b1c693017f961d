// SPDX-License-Identifier: MIT
//
// PfClient: the uapi of vgpu-pf spoken over its unix socket, for tests that use the PF core without
// vgpud. call() sends any operation and returns the error; the named calls throw VfError with the
// PF's own message. EventReader follows the shared event ring.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pf-driver/uapi/vgpu_pf.h"
#include "tests/support/deadline.h"
#include "tests/support/unique_fd.h"

namespace vgpu::test {

struct PfReply {
    int error = 0;  ///< negative errno or 0
    std::string message;
    std::vector<std::byte> body;
    std::vector<UniqueFd> fds;
};

class EventReader {
public:
    EventReader(Mapping memory, vgpu_pf_event_ring_info info, UniqueFd wake);

    /// Events since the last call, in order; skips overwritten events and counts them in lost().
    [[nodiscard]] std::vector<vgpu_pf_event> take();
    /// Waits on the eventfd for an event for which `wanted` is true; drops the events before it.
    vgpu_pf_event wait(const std::function<bool(const vgpu_pf_event&)>& wanted, milliseconds limit);
    /// Blocks until the PF core writes an event or `deadline` passes.
    void wait_any(const Deadline& deadline);
    [[nodiscard]] std::uint64_t lost() const { return lost_; }

private:
    [[nodiscard]] std::uint64_t head() const;
    Mapping memory_;
    vgpu_pf_event_ring_info info_;
    UniqueFd wake_;
    std::uint64_t next_ = 1;
    std::uint64_t lost_ = 0;
};

class PfClient {
public:
    explicit PfClient(const std::string& socket_path);

    PfReply call(std::uint32_t op, std::span<const std::byte> body, int fd = -1);

    [[nodiscard]] vgpu_pf_info info();
    [[nodiscard]] vgpu_pf_vf vf(std::uint32_t number);
    /// VRAM in bytes; returns the struct as the PF filled it in.
    vgpu_pf_provision provision(std::uint32_t vf, std::uint64_t vram_bytes,
                                std::function<void(vgpu_pf_provision&)> adjust = {});
    void release(std::uint32_t vf);
    /// Repeats SCRUB_DURABLE until the scrub is finished (at most 10 s, scaled).
    void scrub_durable(std::uint32_t vf);
    [[nodiscard]] bool is_zero(std::uint32_t vf);
    void control(std::uint32_t vf, vgpu_pf_control_action action);
    /// Installs the table as the generation after the one in force.
    void set_run_table(const std::vector<vgpu_pf_run_entry>& entries, std::uint32_t flags = 0,
                       const std::map<std::uint32_t, vgpu_pf_contract>& contracts = {});
    [[nodiscard]] EventReader events();
    /// Waits until the VF is in `state`.
    void wait_state(std::uint32_t vf, vgpu_pf_vf_state state,
                    milliseconds limit = milliseconds(10000));
    [[nodiscard]] int fd() const { return socket_.get(); }

private:
    PfReply checked(std::uint32_t op, std::span<const std::byte> body, const char* what);
    UniqueFd socket_;
    std::uint64_t cookie_ = 1;
};

}  // namespace vgpu::test
