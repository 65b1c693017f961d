// SPDX-License-Identifier: MIT
//
// KernelPlatform: vgpu_pf.ko as a platform of the contract suite. The device outlives the test, so
// each one starts by making it forget: the driver is unbound, what the core wrote down in the PF's
// VRAM is erased through the PCI function's BAR, and the driver is bound again.
#pragma once

#include "tests/contract/pf_platform/pf_platform.h"

namespace vgpu::test {

class KernelPlatform final : public PfPlatform {
public:
    /// `node`: of the environment; read once, since a node's number changes while files are open.
    explicit KernelPlatform(const std::string& node);
    ~KernelPlatform() override;

    [[nodiscard]] std::unique_ptr<UapiClient> connect(bool is_owner) override;
    [[nodiscard]] bool can_play_strangers() const override { return true; }
    void restart() override;

private:
    void order(const char* verb) const;
    void erase_checkpoint() const;
    void forget() const;
    [[nodiscard]] std::string node() const;

    std::string function_;  // the PF in sysfs
    std::string driver_;
    bool is_restarted_ = false;
};

}  // namespace vgpu::test
