// SPDX-License-Identifier: MIT
//
// FakeXe: the files of xe's sriov_admin over a FakePci, as the kernels serve them
// (the files of its PF side in drivers/gpu/drm/xe/).
//
//   617   no sriov_admin                                     (6.17, 6.18)
//   619   quanta, time-outs, priority, stop; EUCLEAN if a VF has a value before enabling
//   701   and vram_quota; a quota before enabling leaves the other VFs without VRAM
//   702   and 16 ms / 16 000 us at enabling, but only if no function has a value yet
//
// In all: values are lost when VFs are disabled, those of VFs that were not enabled stay, quotas
// are rounded up to 2 MiB, quanta and time-outs are clamped, a VF's priority file is read-only.
#pragma once

#include "tests/unit/backend/fake_pci.h"

#include <cstdint>
#include <map>
#include <string>

namespace vgpu::daemon::testing {

enum class XeKernel { k617 = 617, k619 = 619, k701 = 701, k702 = 702 };

class FakeXe {
public:
    static constexpr std::uint64_t kMiB = 1u << 20;

    struct Function {
        std::uint64_t quantum_ms = 0, timeout_us = 0, vram = 0;
        unsigned stops = 0;
    };

    FakeXe(FakeBus& bus, XeKernel kernel, unsigned total_vfs = 8);

    FakePci pf;
    std::uint64_t vram_total = 16 * 1024 * kMiB;
    bool is_strict = false;
    /// Function 0 is the PF.
    Function& function(unsigned number) { return functions_[number]; }
    [[nodiscard]] std::string path(const std::string& file) const {
        return pf.path("sriov_admin/" + file);
    }
    [[nodiscard]] std::string profile(unsigned function, const std::string& file) const;
    /// The driver clears no memory that it gives to a VF: only a reset of the VF does.
    [[nodiscard]] bool is_clean(unsigned vf) const { return !dirty_vram_.contains(vf); }
    /// The driver is loaded again: VFs and values are gone.
    void reload();

private:
    [[nodiscard]] bool has_vram_quota() const { return kernel_ >= XeKernel::k701; }
    void add_profile(unsigned number);
    void add_value(unsigned number, const std::string& file, std::uint64_t Function::*member,
                   std::uint64_t max);
    void add_vram(unsigned vf);
    void add_priority(unsigned number, unsigned mode);
    int store_vram(unsigned vf, const std::string& text);
    int on_enable(unsigned count);
    void release_all();
    [[nodiscard]] bool has_any(unsigned count, std::uint64_t Function::*member) const;
    [[nodiscard]] std::uint64_t vram_given() const;

    FakeSysfs& files_;
    const XeKernel kernel_;
    const unsigned total_vfs_;
    unsigned enabled_ = 0;
    std::map<unsigned, Function> functions_;
    std::set<unsigned> dirty_vram_;
};

}  // namespace vgpu::daemon::testing
