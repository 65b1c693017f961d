// SPDX-License-Identifier: MIT
//
// KernelHome: vgpu_pf.ko as a home of the contract suite. The device outlives the test, so each one
// starts by making it forget: the driver is unbound, what the core wrote down in the PF's VRAM is
// erased through the PCI function's BAR, and the driver is bound again.
#pragma once

#include "tests/contract/pf_home/pf_home.h"

namespace vgpu::test {

class KernelHome final : public PfHome {
public:
    /// `node`: of the environment; read once, since a node's number changes while files are open.
    explicit KernelHome(const std::string& node);
    ~KernelHome() override;

    [[nodiscard]] std::unique_ptr<UapiClient> connect(bool is_owner) override;
    [[nodiscard]] bool can_play_strangers() const override { return true; }
    void restart() override;

private:
    void order(const char* verb) const;
    void erase_journal() const;
    void forget() const;
    [[nodiscard]] std::string node() const;

    std::string function_;  // the PF in sysfs
    std::string driver_;
    bool is_restarted_ = false;
};

}  // namespace vgpu::test
