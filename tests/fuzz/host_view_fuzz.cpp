// SPDX-License-Identifier: MIT
//
// Fuzzes the host view with all that a VM and the clients of the functions' sockets can do. The
// input is a list of Steps. If bit 0 of byte 0 is set, bridges and BARs of the card are set up
// first, so that accesses reach functions. After each step, a VF that is attached to the bus must
// be enabled. BAR handlers may see only accesses within their BARs.
#include <linux/pci_regs.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "pf-driver/softgpu/host_view/host_view.h"

namespace {

using namespace vgpu;
using namespace vgpu::softgpu;

constexpr std::uint32_t kVfs = 4;
constexpr Bytes kVram = 16_MiB;
constexpr Bytes kAperture = 1_MiB;
constexpr std::uint32_t kConfig = 7;
constexpr std::uint32_t kIommu = 32u << 20;  // in the low window
constexpr std::size_t kMaxSteps = 512;

void require(bool holds) {
    if (!holds) std::abort();
}

class NoMemory final : public Peer {
    std::errc dma_read(Iova, std::span<std::byte>) override { return std::errc::not_connected; }
    std::errc dma_write(Iova, std::span<const std::byte>) override {
        return std::errc::not_connected;
    }
    std::errc dma_post(Iova, std::span<const std::byte> data) override {
        require(data.size() == sizeof(std::uint32_t));
        return {};
    }
};

pci::BarHandler bar_of(std::uint64_t bytes) {
    return {[bytes](std::uint64_t offset, std::span<std::byte> out) {
                require(offset < bytes && out.size() <= bytes - offset);
                std::memset(out.data(), 0, out.size());
            },
            [bytes](std::uint64_t offset, std::span<const std::byte> data) {
                require(offset < bytes && data.size() <= bytes - offset);
            }};
}

/// A function whose owner checks that attached() and detached() alternate.
class Card final : public pci::FunctionOwner, public pci::DmaSink {
public:
    explicit Card(pci::FunctionSpec spec) : function(std::move(spec), *this, *this) {
        for (const pci::BarSpec& bar : function.spec().bars)
            function.set_bar(bar.index, bar_of(bar.size.count));
    }
    Result<> attached(std::shared_ptr<Peer>) override {
        require(!is_attached);
        is_attached = true;
        return {};
    }
    void detached() override {
        require(is_attached && maps == 0);
        is_attached = false;
    }
    void reset(pci::ResetKind) override {}
    Result<> map(const vfio_user::DmaRange&, int) override {
        maps++;
        return {};
    }
    void unmap(const vfio_user::DmaRange&) override { maps--; }
    void unmap_all() override { maps = 0; }

    bool is_attached = false;
    int maps = 0;
    pci::Function function;
};

struct Step {
    std::uint8_t kind;    // Kind, modulo
    std::uint8_t target;  // region or function
    std::uint16_t size;
    std::uint32_t offset;
    std::uint64_t value;
};
static_assert(sizeof(Step) == 16);

enum class Kind : std::uint8_t {
    Write,
    Read,
    Function,
    Raise,
    Client,
    Map,
    Unmap,
    Reset,
    Reattach,
    Iommu
};
constexpr std::uint8_t kKinds = 10;

class World {
public:
    World() : pf(pci::pf_function(kVram, kVfs, kAperture)) {
        std::vector<pci::Function*> functions;
        for (std::uint8_t i = 1; i <= kVfs; i++) {
            vfs.push_back(std::make_unique<Card>(pci::vf_function(VfId{i}, kAperture)));
            functions.push_back(&vfs.back()->function);
        }
        view = std::make_unique<host_view::HostView>(host_view::EndpointKind::Bridge, pf.function,
                                                     functions);
        require(view->attach(peer).has_value());
    }
    ~World() {
        view->dma_unmap_all();
        view->detach();
        check();
    }

    void bring_up();
    void run(const Step& step);
    void check();

private:
    template <typename T> void write(std::uint32_t region, std::uint64_t offset, T value) {
        require(view->write(region, offset, bytes_of(value)) == std::errc{});
    }
    void access(const Step& step, std::uint32_t region, std::uint64_t offset);
    void toggle_client(Card& card);
    [[nodiscard]] Card& card(std::uint8_t number) {
        const unsigned index = number % (kVfs + 1);
        return index == 0 ? pf : *vfs[index - 1];
    }

    std::shared_ptr<NoMemory> peer = std::make_shared<NoMemory>();
    Card pf;
    std::vector<std::unique_ptr<Card>> vfs;
    std::unique_ptr<host_view::HostView> view;
    std::vector<vfio_user::DmaRange> maps;
};

void World::bring_up() {
    constexpr std::uint32_t kEcam = VGPU_HOST_VIEW_BAR_CONFIG;
    constexpr std::uint64_t kPf = VGPU_ECAM_BUS_BYTES;
    write(kConfig, PCI_BASE_ADDRESS_2, std::uint32_t{0xf8000000});
    write(kEcam, PCI_PRIMARY_BUS, std::uint32_t{0x10100});
    write(kEcam, PCI_MEMORY_BASE, std::uint32_t{0xfbf0f800});
    write(kEcam, PCI_BASE_ADDRESS_0, std::uint32_t{0xf8000000 + kIommu});
    write(kEcam, PCI_COMMAND, std::uint16_t{PCI_COMMAND_MEMORY});
    write(kEcam, VGPU_CAP_ROOT_PORT_PCIE + PCI_EXP_DEVCTL2, std::uint16_t{PCI_EXP_DEVCTL2_ARI});
    write(kEcam, kPf + PCI_BASE_ADDRESS_5, std::uint32_t{0xf8000000});
    write(kEcam, kPf + VGPU_ECAP_SRIOV + PCI_SRIOV_BAR + 20, std::uint32_t{0xf8080000});
    write(kEcam, kPf + PCI_COMMAND, std::uint16_t{PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER});
    write(kEcam, kPf + VGPU_ECAP_SRIOV + PCI_SRIOV_NUM_VF, std::uint16_t{kVfs});
    write(kEcam, kPf + VGPU_ECAP_SRIOV + PCI_SRIOV_CTRL,
          std::uint16_t{PCI_SRIOV_CTRL_VFE | PCI_SRIOV_CTRL_MSE});
}

void World::access(const Step& step, std::uint32_t region, std::uint64_t offset) {
    const std::uint64_t size = view->region_size(region);
    if (size == 0) return;
    std::vector<std::byte> data(1 + step.size % (step.kind < 250 ? 16u : 65535u));
    for (std::size_t i = 0; i < data.size(); i++)
        data[i] = static_cast<std::byte>(step.value >> (i % sizeof(step.value) * 8));
    offset %= size;
    data.resize(std::min<std::uint64_t>(data.size(), size - offset));
    const bool is_read = static_cast<Kind>(step.kind % kKinds) == Kind::Read;
    require((is_read ? view->read(region, offset, data) : view->write(region, offset, data)) ==
            std::errc{});
}

void World::toggle_client(Card& card) {
    if (card.function.reach() == pci::Reach::Socket) return card.function.detach();
    const bool was_free = !card.function.reach();
    require(card.function.attach(peer).has_value() == was_free);
}

void World::run(const Step& step) {
    switch (static_cast<Kind>(step.kind % kKinds)) {
        case Kind::Write:
        case Kind::Read:
            return access(step, step.target % vfio_user::kRegionCount,
                          std::uint64_t{step.offset} << (step.target >> 6));
        case Kind::Function:  // registers of a function
            return access(step, VGPU_HOST_VIEW_BAR_CONFIG,
                          std::uint64_t{VGPU_ECAM_BUS_BYTES} |
                              std::uint64_t{step.target % (kVfs + 2)} << VGPU_ECAM_FUNCTION_SHIFT |
                              step.offset % VGPU_PCI_CONFIG_BYTES);
        case Kind::Iommu:
            return access(step, VGPU_HOST_VIEW_BAR_LOW, kIommu + step.offset % VGPU_IOMMU_BYTES);
        case Kind::Raise:
            return card(step.target).function.raise(step.size % 3);
        case Kind::Client:
            return toggle_client(card(step.target));
        case Kind::Map: {
            if (maps.size() >= 8) return;
            maps.push_back({.address = Iova{maps.size() << 12}, .size = 4096});
            return require(view->dma_map(maps.back(), -1).has_value());
        }
        case Kind::Unmap:
            if (maps.empty()) return;
            view->dma_unmap(maps.back());
            return maps.pop_back();
        case Kind::Reset:
            return view->reset();
        case Kind::Reattach:
            view->dma_unmap_all();
            maps.clear();
            view->detach();
            return require(view->attach(peer).has_value());
    }
}

void World::check() {
    const auto& sriov = pf.function.sriov();
    const bool has_pf = pf.function.reach() == pci::Reach::Bus;
    for (std::size_t i = 0; i < vfs.size(); i++) {
        const Card& vf = *vfs[i];
        require(vf.is_attached == vf.function.reach().has_value());
        if (vf.function.reach() != pci::Reach::Bus) continue;
        // a VF is attached by its first BAR access, before it is made bus master
        require(has_pf && sriov.is_enabled && i < sriov.num_vfs);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    spdlog::set_level(spdlog::level::off);
    if (size == 0) return 0;
    auto input = std::as_bytes(std::span(data, size));
    World world;
    if ((data[0] & 1u) != 0) world.bring_up();
    input = input.subspan(1);
    for (std::size_t i = 0; i < kMaxSteps && input.size() >= sizeof(Step); i++) {
        world.run(load<Step>(input));
        world.check();
        input = input.subspan(sizeof(Step));
    }
    return 0;
}
