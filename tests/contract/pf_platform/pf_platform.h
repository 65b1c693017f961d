// SPDX-License-Identifier: MIT
//
// PfPlatform: one running platform of the PF core with a device behind it, as the contract suite
// needs it. Kinds: the uapi server of vgpu-pf inside the test on a fake device with virtual time,
// the processes softgpu and vgpu-pf as they are shipped, and vgpu_pf.ko, whose node the environment
// names: VGPU_PF_DEVICE=/dev/vgpu-pf0 (as root, on a device that has no other user; what is on it
// is lost). tests/host/test_contract.py brings that about.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tests/contract/pf_platform/uapi_client.h"

namespace vgpu::test {

enum class PfPlatformKind { InProcess, Processes, Kernel };

class PfPlatform {
public:
    virtual ~PfPlatform() = default;
    /// A new client; `is_owner` false: a user who may only look, where the platform can play that.
    [[nodiscard]] virtual std::unique_ptr<UapiClient> connect(bool is_owner = true) = 0;
    [[nodiscard]] virtual bool can_play_strangers() const = 0;
    /// A client that can be made to send anything; none where there are no messages.
    [[nodiscard]] virtual std::unique_ptr<SocketClient> connect_socket() { return nullptr; }
    /// Descriptors that the process of the platform has open, for homes that are processes.
    [[nodiscard]] virtual std::size_t open_descriptors() const { return 0; }
    /// Ends the core, unasked where the platform can end that way, and starts a new one.
    virtual void restart() = 0;

    [[nodiscard]] static std::unique_ptr<PfPlatform> create(PfPlatformKind kind);
    /// Those that can be had here.
    [[nodiscard]] static std::vector<PfPlatformKind> kinds();
};

[[nodiscard]] std::string name(PfPlatformKind kind);

}  // namespace vgpu::test
