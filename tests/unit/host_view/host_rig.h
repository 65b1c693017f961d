// SPDX-License-Identifier: MIT
//
// A host view over fake functions, with a VM's firmware and kernel played by the test: bring_up()
// does what they do before a driver comes.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "pf-driver/softgpu/host_view/host_view.h"
#include "tests/unit/pci/fake_owner.h"

namespace vgpu::softgpu::host_view::test {

using pci::test::FakeBar;
using pci::test::FakeOwner;
using pci::test::FakePeer;

/// A PCI function with its surroundings, untouched.
struct Card {
    explicit Card(pci::FunctionSpec spec);

    FakeOwner owner;
    FakeBar registers;
    FakeBar vram;
    pci::Function function;
};

struct HostRig {
    static constexpr std::uint32_t kVfs = 16;
    // where the VM puts things
    static constexpr std::uint64_t kLow = 0xf8000000;
    static constexpr std::uint64_t kHigh = 0xf800000000;
    static constexpr std::uint64_t kPfVram = kHigh;
    static constexpr std::uint64_t kPfRegisters = kLow;
    static constexpr std::uint64_t kVfVram = kHigh + (256_MiB).count;
    static constexpr std::uint64_t kVfRegisters = kLow + (1_MiB).count;

    static constexpr std::uint32_t kConfig = 7;
    static constexpr std::uint32_t kPfBus = 1;

    explicit HostRig(EndpointKind kind = EndpointKind::Bridge);

    /// A VM comes: DMA ranges are up to the test.
    void attach() { EXPECT_TRUE(view.attach(peer).has_value()); }
    /// attach(), and bus numbers, windows and BARs of endpoint, port and PF; memory and ARI on.
    void bring_up();
    void enable_vfs(std::uint16_t count);

    template <typename T> T region(std::uint32_t region, std::uint64_t offset) {
        T value{};
        EXPECT_EQ(view.read(region, offset, bytes_of(value)), std::errc{});
        return value;
    }
    template <typename T>
    void set_region(std::uint32_t region, std::uint64_t offset, const T& value) {
        EXPECT_EQ(view.write(region, offset, bytes_of(value)), std::errc{});
    }

    /// Offset in the configuration window.
    static std::uint64_t window(std::uint32_t bus, std::uint32_t devfn, std::uint32_t at) {
        return std::uint64_t{bus} << VGPU_ECAM_BUS_SHIFT |
               std::uint64_t{devfn} << VGPU_ECAM_FUNCTION_SHIFT | at;
    }
    template <typename T> T config(std::uint32_t bus, std::uint32_t devfn, std::uint32_t at) {
        return region<T>(VGPU_HOST_VIEW_BAR_CONFIG, window(bus, devfn, at));
    }
    template <typename T>
    void set_config(std::uint32_t bus, std::uint32_t devfn, std::uint32_t at, const T& value) {
        set_region(VGPU_HOST_VIEW_BAR_CONFIG, window(bus, devfn, at), value);
    }
    template <typename T> T port(std::uint32_t at) { return config<T>(0, 0, at); }
    template <typename T> void set_port(std::uint32_t at, const T& value) {
        set_config(0, 0, at, value);
    }
    template <typename T> T pf_config(std::uint32_t at) { return config<T>(kPfBus, 0, at); }
    template <typename T> void set_pf_config(std::uint32_t at, const T& value) {
        set_config(kPfBus, 0, at, value);
    }
    /// VF number 1 ... 16.
    template <typename T> T vf_config(std::uint32_t vf, std::uint32_t at) {
        return config<T>(kPfBus, vf, at);
    }
    template <typename T> void set_vf_config(std::uint32_t vf, std::uint32_t at, const T& value) {
        set_config(kPfBus, vf, at, value);
    }
    void set_bus_master(std::uint32_t vf, std::uint16_t value);
    [[nodiscard]] bool is_bus_master(std::uint32_t vf);
    /// By bus address, through the window that holds it.
    template <typename T> T memory(std::uint64_t address) {
        const bool is_high = address >= kHigh;
        return region<T>(is_high ? VGPU_HOST_VIEW_BAR_HIGH : VGPU_HOST_VIEW_BAR_LOW,
                         address - (is_high ? kHigh : kLow));
    }
    template <typename T> void set_memory(std::uint64_t address, const T& value) {
        const bool is_high = address >= kHigh;
        set_region(is_high ? VGPU_HOST_VIEW_BAR_HIGH : VGPU_HOST_VIEW_BAR_LOW,
                   address - (is_high ? kHigh : kLow), value);
    }
    static std::uint64_t vf_registers(std::uint32_t vf) {
        return kVfRegisters + (vf - 1) * (512_KiB).count;
    }
    Card& vf(std::uint32_t number) { return *vfs[number - 1]; }

    std::shared_ptr<FakePeer> peer = std::make_shared<FakePeer>();
    Card pf;
    std::vector<std::unique_ptr<Card>> vfs;
    HostView view;

private:
    static std::vector<std::unique_ptr<Card>> make_vfs();
    static std::vector<pci::Function*> functions_of(const std::vector<std::unique_ptr<Card>>& vfs);
};

}  // namespace vgpu::softgpu::host_view::test
