// SPDX-License-Identifier: MIT
//
// PfHome: one running home of the PF core with a device behind it, as the contract suite needs it.
// Kinds: the uapi server of vgpu-pf inside the test on a fake device with virtual time, and the
// processes softgpu and vgpu-pf as they are shipped. A home in the kernel becomes a third kind.
#pragma once

#include <memory>
#include <string>

#include "tests/contract/pf_home/uapi_client.h"

namespace vgpu::test {

enum class PfHomeKind { InProcess, Processes };

class PfHome {
public:
    virtual ~PfHome() = default;
    /// A new client; `is_owner` false: a user who may only look, where the home can play that.
    [[nodiscard]] virtual std::unique_ptr<UapiClient> connect(bool is_owner = true) = 0;
    [[nodiscard]] virtual bool can_play_strangers() const = 0;
    /// Kills the core's process and starts it anew.
    virtual void restart() = 0;

    [[nodiscard]] static std::unique_ptr<PfHome> create(PfHomeKind kind);
};

[[nodiscard]] std::string name(PfHomeKind kind);

}  // namespace vgpu::test
