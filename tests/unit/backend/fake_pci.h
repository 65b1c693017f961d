// SPDX-License-Identifier: MIT
//
// FakePci: an SR-IOV PF in a FakeSysfs, as the PCI core of Linux serves it (drivers/pci/iov.c,
// drivers/pci/pci-sysfs.c, drivers/base/bus.c; the errnos were seen on 7.3 with an emulated igb):
// the number of VFs, VFs that appear and disappear with all their files, drivers that bind by
// override or by autoprobe, users that open a VF, and writes that sleep until a VF is closed.
#pragma once

#include "tests/unit/backend/fake_sysfs.h"

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace vgpu::daemon::testing {

/// The drivers of the bus, and its file drivers_probe.
class FakeBus {
public:
    explicit FakeBus(FakeSysfs& files);

    void load(const std::string& driver);
    [[nodiscard]] bool has(const std::string& driver) const { return loaded_.contains(driver); }
    /// By address: what drivers_probe and unbind do to a function.
    struct Function {
        std::function<void()> probe;
        std::function<std::string()> driver;
        std::function<void()> unbind;
    };
    void add(const std::string& address, Function function) { functions_[address] = function; }
    void remove(const std::string& address) { functions_.erase(address); }
    [[nodiscard]] FakeSysfs& files() { return files_; }

private:
    FakeSysfs& files_;
    std::set<std::string> loaded_;
    std::map<std::string, Function> functions_;
};

struct FakeVf {
    std::string address;
    std::string driver_override{}, driver{};
    unsigned opens = 0;     ///< by users of vfio
    unsigned resets = 0;    ///< since the VF was enabled
    bool is_dirty = false;  ///< somebody has had it open since the last reset
};

class FakePci {
public:
    struct Card {
        std::string address = "0000:03:00.0", driver = "igb", host_vf_driver = "igbvf";
        std::string vendor = "0x8086", device = "0x10c9", pci_class = "0x020000";
        unsigned total_vfs = 7;
    };

    FakePci(FakeBus& bus, Card card);

    [[nodiscard]] const std::string& address() const { return card_.address; }
    /// VFs are numbered from 1.
    [[nodiscard]] FakeVf& vf(unsigned number) { return *vfs_.at(number - 1); }
    [[nodiscard]] unsigned count() const { return static_cast<unsigned>(vfs_.size()); }
    [[nodiscard]] std::string path(const std::string& file = "") const;
    [[nodiscard]] std::string vf_path(unsigned number, const std::string& file);

    /// A VM opens or closes a VF, which has a vfio driver.
    void open(unsigned number);
    void close(unsigned number);
    /// Writes `count` to sriov_numvfs as somebody else would.
    int set_count(unsigned count);
    /// Another card is plugged in, or another driver bound.
    void replace(const std::string& device, const std::string& driver);

    // --- what tests may change
    std::function<int(unsigned count)> on_enable{};  ///< the driver's part; an errno refuses
    std::function<void()> on_disabled{};
    std::function<void(unsigned number)> on_reset{};
    unsigned enabled_limit = UINT32_MAX;  ///< the driver enables at most this many
    std::string reset_method = "flr bus";
    bool has_iommu = true;
    bool is_autoprobing = true;

private:
    void add_files();
    void add_vf(unsigned index);
    void add_vf_files(FakeVf& vf, unsigned number);
    void set_driver(FakeVf& vf, const std::string& driver);
    void probe(FakeVf& vf);
    void unbind(FakeVf& vf);
    [[nodiscard]] unsigned enable_count(const FakeVf& vf) const;
    int disable();
    int enable(unsigned count);

    FakeBus& bus_;
    FakeSysfs& files_;
    Card card_;
    std::vector<std::unique_ptr<FakeVf>> vfs_;
};

}  // namespace vgpu::daemon::testing
