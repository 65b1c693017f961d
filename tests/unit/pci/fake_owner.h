// SPDX-License-Identifier: MIT
//
// What stands around a pci::Function in tests: an owner and a DMA sink that remember what they were
// told, memory behind the BARs, a peer that notes posted writes, and the function's two kinds with
// small sizes.
#pragma once

#include <string>
#include <vector>

#include "pf-driver/softgpu/pci/function.h"

namespace vgpu::softgpu::pci::test {

class FakeOwner final : public FunctionOwner, public DmaSink {
public:
    Result<> attached(std::shared_ptr<Peer> peer) override;
    void detached() override { story.emplace_back("detached"); }
    void reset(ResetKind kind) override;
    void sriov_changed(const SriovState& state) override;
    void bars_moved() override { ++bar_moves; }
    Result<> map(const vfio_user::DmaRange& range, int fd) override;
    void unmap(const vfio_user::DmaRange& range) override;
    void unmap_all() override { story.emplace_back("unmap all"); }

    std::vector<std::string> story;
    unsigned bar_moves = 0;
    bool refuses = false;
    bool refuses_maps = false;
};

/// A client's memory that takes posted writes only; they are noted as "0xfee00000 <- 0x41".
class FakePeer final : public Peer {
public:
    std::errc dma_read(Iova, std::span<std::byte>) override { return std::errc::not_connected; }
    std::errc dma_write(Iova, std::span<const std::byte>) override {
        return std::errc::not_connected;
    }
    std::errc dma_post(Iova address, std::span<const std::byte> data) override;

    std::vector<std::string> story;
};

/// Bytes behind a BAR; accesses are noted as "write 0x10+4".
class FakeBar {
public:
    explicit FakeBar(std::size_t size) : bytes(size) {}
    BarHandler handler();

    std::vector<std::byte> bytes;
    std::vector<std::string> story;
    std::vector<vfio_user::MmapArea> areas;
};

inline constexpr Bytes kVram = 64_MiB;
inline constexpr Bytes kAperture = 16_MiB;

/// A function with its surroundings, memory decoding and bus mastering on.
struct Rig {
    explicit Rig(FunctionSpec spec);
    static Rig pf() { return Rig(pf_function(kVram, 16, kAperture)); }
    static Rig vf() { return Rig(vf_function(VfId{3}, kAperture)); }

    template <typename T> T config(std::uint32_t offset) {
        T value{};
        expect_no_error(function.read(kConfig, offset, bytes_of(value)));
        return value;
    }
    template <typename T> void set_config(std::uint32_t offset, T value) {
        expect_no_error(function.write(kConfig, offset, bytes_of(value)));
    }
    template <typename T> T bar(std::uint32_t index, std::uint64_t offset) {
        T value{};
        expect_no_error(function.read(index, offset, bytes_of(value)));
        return value;
    }
    template <typename T> void set_bar(std::uint32_t index, std::uint64_t offset, T value) {
        expect_no_error(function.write(index, offset, bytes_of(value)));
    }
    /// Takes `fd` over as the eventfd of `vector`.
    void assign(std::uint32_t vector, int fd);

    static constexpr std::uint32_t kConfig = 7;
    static void expect_no_error(std::errc error);

    FakeOwner owner;
    FakeBar registers;
    FakeBar vram;
    Function function;
};

[[nodiscard]] OwnedFd new_eventfd();
/// The count of an eventfd, 0 if it was not signalled.
[[nodiscard]] std::uint64_t signals(const OwnedFd& eventfd);

}  // namespace vgpu::softgpu::pci::test
