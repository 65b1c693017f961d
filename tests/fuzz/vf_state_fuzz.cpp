// SPDX-License-Identifier: MIT
//
// Fuzzes the loading of a VF's device state from a stream that may come from anybody (RESTORE), and
// runs the VF afterwards. The sound stream is that of a VF whose queues wait and whose waves run.
// The input damages it:
//
//   records of 4 bytes   flags, two bytes of place, value
//
// Most of the interesting state is behind the registers. A place therefore counts from the end of
// the registers, from the end of the stream, or, with a bit, from the start of the registers. For
// any damage, a refused stream leaves the VF as a new owner gets it. After an accepted stream and
// some time on the engine, the VF can be saved and loaded again, and only its own VRAM has changed.
#include "pf-driver/hw/aql.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/pm4.h"
#include "pf-driver/hw/vf_page_table.h"
#include "pf-driver/softgpu/gpu_vf_blocks.h"
#include "pf-driver/softgpu/isa/execute.h"
#include "tests/support/virtual_clock.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

namespace {

using namespace vgpu::softgpu;

constexpr std::uint64_t kUnit = VGPU_VRAM_UNIT_BYTES;
constexpr std::uint64_t kVfBytes = 2ull << 20;
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kRing = 0x20000, kSdmaRing = 0x30000, kCode = 0x40000, kSave = 0x80000;
constexpr std::uint32_t kSdmaRingLog2 = 12;
constexpr std::uint32_t kInstructions = 64;  // limit of a group each time a worker takes it
constexpr int kSteps = 24;

using Stream = std::vector<std::byte>;

void require(bool is_true) {
    if (!is_true) std::abort();
}

class World final : public cp::Services, isa::MessageSink {
public:
    World() {
        device_ = std::move(*mem::DeviceVram::create(Bytes{2 * kUnit}));
        vram_ = std::make_unique<mem::VfVram>(*device_, VfId{1});
        put_device(kPage, 2 * kPage | VF_PAGE_TABLE_VALID);
        for (std::uint64_t at = 0; at < kVfBytes; at += mem::DeviceVram::kLeafBytes)
            put_device(2 * kPage + at / mem::DeviceVram::kLeafBytes * 8,
                       (kUnit + at) | VF_PAGE_TABLE_VALID);
        require(vram_->commit(DeviceOffset{kPage}, Bytes{kVfBytes}).has_value());
        blocks_ = std::make_unique<VfBlocks>(
            cp::CommandProcessor::Spec{.compute_units = 1}, *vram_, system_, clock_, *this,
            VfBlocks::Hooks{[] { return regs::Gate::Open; }, [] {}});
        blocks_->gpuvm.vram_changed();
        clear();
        registers_bytes_ = bytes_of_registers();
    }

    /// Makes the VF as a new owner gets it, with the memory that the sound stream refers to.
    void clear() {
        require(device_->scrub(DeviceOffset{kUnit}, Bytes{kVfBytes}).has_value());
        blocks_->reset(ResetScope::NewOwner);
        write_memory();
    }
    /// Starts a compute queue whose kernel never ends, and a copy queue that waits for memory.
    void make_busy() {
        start_compute();
        start_copies();
        live();
    }
    /// Runs packets and groups and lets time pass.
    void live() {
        for (int i = 0; i < kSteps; ++i) {
            (void)blocks_->cp.step();
            for (sdma::Engine& engine : blocks_->sdma) (void)engine.step({64, 4});
            (void)blocks_->video.step();
            (void)blocks_->cp.has_work();
            run_group();
            clock_.advance(std::chrono::milliseconds(20));
        }
    }
    [[nodiscard]] Stream save() {
        Stream stream;
        Writer out(stream);
        blocks_->drain();
        blocks_->save(out);
        return stream;
    }
    /// Loads all of the stream; false and a reset VF if that fails.
    [[nodiscard]] bool load(const Stream& stream) {
        Reader in(stream);
        const bool is_loaded = blocks_->load(in).has_value() && in.remaining() == 0;
        if (!is_loaded) blocks_->reset(ResetScope::NewOwner);
        return is_loaded;
    }
    [[nodiscard]] std::size_t registers_bytes() const { return registers_bytes_; }
    void check_isolation() {
        require(device_->verify_zero(DeviceOffset{kUnit + kVfBytes}, 64_KiB).has_value());
        require(device_->verify_zero(DeviceOffset{4 * kPage}, 64_KiB).has_value());
    }

private:
    void put_device(std::uint64_t offset, std::uint64_t value) {
        require(device_->write(DeviceOffset{offset}, bytes_of(value)));
    }
    template <typename T> void put(std::uint64_t offset, const T& value) {
        require(vram_->write(VfOffset{offset}, bytes_of(value)));
    }
    void set(std::uint32_t index, std::uint64_t value) {
        blocks_->registers.write(RegisterIndex{index}, static_cast<std::uint32_t>(value));
    }
    void set_pair(std::uint32_t low, std::uint64_t value) {
        set(low, low32(value));
        set(low + 1, high32(value));
    }
    [[nodiscard]] std::size_t bytes_of_registers() const {
        Stream stream;
        Writer out(stream);
        blocks_->registers.save(out);
        return stream.size();
    }
    void write_memory() {
        constexpr std::uint64_t kDescriptor = mem::kFbBase + kCode;
        aql_kernel_descriptor kernel{};
        kernel.kernel_code_entry_byte_offset = sizeof(kernel);
        kernel.compute_pgm_rsrc2 = HW_SET(COMPUTE_PGM_RSRC2, USER_SGPR, 0u, 16u);
        put(kCode, kernel);
        constexpr std::uint32_t kWait = 0xbf800000, kBack = 0xbf82fffe;  // s_nop 0; s_branch -2
        for (std::uint64_t i = 0; i < 8; ++i)
            put(kCode + sizeof(kernel) + 4 * i, i % 2 == 0 ? kWait : kBack);
        aql_kernel_dispatch packet{};
        packet.header = AQL_TYPE_KERNEL_DISPATCH;
        packet.setup = 1;
        packet.workgroup_size_x = 128;
        packet.workgroup_size_y = packet.workgroup_size_z = 1;
        packet.grid_size_x = 512;
        packet.grid_size_y = packet.grid_size_z = 1;
        packet.group_segment_size = 512;
        packet.kernel_object = kDescriptor;
        put(kRing, packet);
        const std::uint32_t poll[] = {8 | 1u << 31 | 3u << 28,
                                      low32(mem::kFbBase),
                                      high32(mem::kFbBase),
                                      1,
                                      0xffffffff,
                                      0xfff << 16};
        put(kSdmaRing, poll);
    }
    void start_compute() {
        set(REG_GC_GRBM_GFX_CNTL, HW_PREP(GRBM_GFX_CNTL, ME, 1));
        set_pair(REG_GC_CP_HQD_PQ_BASE, (mem::kFbBase + kRing) >> 8);
        set(REG_GC_CP_HQD_VMID, 0);
        set(REG_GC_CP_HQD_PQ_CONTROL, HW_PREP(CP_HQD_PQ_CONTROL, QUEUE_SIZE, 11));
        set(REG_GC_CP_HQD_AQL_CONTROL, 1);
        set(REG_GC_CP_HQD_PERSISTENT_STATE, HW_PREP(CP_HQD_PERSISTENT_STATE, QSWITCH_MODE, 1));
        set_pair(REG_GC_CP_HQD_CTX_SAVE_BASE_ADDR_LO, mem::kFbBase + kSave);
        set(REG_GC_CP_HQD_CTX_SAVE_SIZE, 0x8000);
        set(REG_GC_CP_HQD_PQ_WPTR_LO, 1);
        set(REG_GC_CP_HQD_ACTIVE, 1);
    }
    void start_copies() {
        const std::uint32_t control = HW_PREP(SDMA_RB_CNTL, RB_SIZE, kSdmaRingLog2);
        constexpr std::uint64_t kBase = (mem::kFbBase + kSdmaRing) >> 8;
        set(REG_SDMA0_SDMA0_GFX_RB_CNTL, control);
        set(REG_SDMA0_SDMA0_GFX_RB_BASE, low32(kBase));
        set(REG_SDMA0_SDMA0_GFX_RB_BASE_HI, high32(kBase));
        set(REG_SDMA0_SDMA0_GFX_DOORBELL, HW_PREP(SDMA_DOORBELL, ENABLE, 1));
        set(REG_SDMA0_SDMA0_GFX_DOORBELL_OFFSET, HW_PREP(SDMA_DOORBELL_OFFSET, OFFSET, 2));
        set(REG_SDMA0_SDMA0_GFX_RB_CNTL, control | HW_PREP(SDMA_RB_CNTL, RB_ENABLE, 1));
        blocks_->sdma[0].doorbell(DoorbellIndex{2}, 24);
    }
    void run_group() {
        stop_ = false;
        const auto lease = blocks_->cp.take_group(0, stop_);
        if (!lease) return;
        const isa::RunResult result = isa::run(
            *lease->group,
            {*lease->port, *lease->cache, clock_, *this, stop_, kInstructions, lease->apertures});
        blocks_->cp.release(*lease, result, messages_);
        messages_.clear();
    }

    std::unique_ptr<mem::Port> make_port(Vmid vmid) override {
        return blocks_ ? blocks_->gpuvm.make_port(vmid, mem::Hub::Gfx) : nullptr;
    }
    void set_process(Vmid vmid, std::uint64_t root, std::uint16_t) override {
        blocks_->gpuvm.set_root(vmid, root);
    }
    std::uint16_t pasid_of(Vmid vmid) const override { return blocks_->gpuvm.pasid_of(vmid); }
    void invalidate_pasid(std::uint16_t) override { blocks_->gpuvm.invalidate_all(); }
    void report_fault(Vmid vmid, const mem::Fault& fault) override {
        static_cast<void>(vmid);
        static_cast<void>(fault);
    }
    void raise(const ih_iv_entry& entry) override { blocks_->interrupts.raise(entry); }
    bool map_sdma(cp::SdmaEngine engine, const sdma::MapRequest& queue) override {
        return blocks_->sdma[static_cast<std::size_t>(engine)].map(queue);
    }
    void unmap_sdma(cp::SdmaEngine engine, DoorbellIndex doorbell) override {
        blocks_->sdma[static_cast<std::size_t>(engine)].unmap(doorbell);
    }
    void work_arrived() override {}
    void interrupt(std::uint32_t payload) override { messages_.push_back(payload); }

    std::unique_ptr<mem::DeviceVram> device_;
    std::unique_ptr<mem::VfVram> vram_;
    mem::SystemMemory system_;
    VirtualClock clock_;
    std::atomic<bool> stop_{false};
    cp::Messages messages_;
    std::unique_ptr<VfBlocks> blocks_;
    std::size_t registers_bytes_ = 0;
};

enum How : std::uint8_t { kFromEnd = 1, kInRegisters = 2, kIsCut = 4, kIsLonger = 8, kIsWord = 16 };

void damage(Stream& stream, std::size_t registers, std::span<const std::uint8_t> record) {
    const std::uint8_t how = record[0];
    const std::size_t place = record[1] | std::size_t{record[2]} << 8;
    const auto value = static_cast<std::byte>(record[3]);
    if (stream.empty()) return;
    std::size_t at = registers + place;
    if ((how & kFromEnd) != 0) at = stream.size() - 1 - place % stream.size();
    if ((how & kInRegisters) != 0) at = place * 8;
    at = std::min(at, stream.size() - 1);
    if ((how & kIsCut) != 0 && (how & kIsLonger) != 0)
        stream.erase(stream.begin() + static_cast<std::ptrdiff_t>(at),
                     stream.begin() + static_cast<std::ptrdiff_t>(std::min(at + 8, stream.size())));
    else if ((how & kIsLonger) != 0)
        stream.insert(stream.begin() + static_cast<std::ptrdiff_t>(at), record[3] % 64, value);
    else if ((how & kIsWord) != 0)
        std::fill_n(stream.begin() + static_cast<std::ptrdiff_t>(at),
                    std::min<std::size_t>(8, stream.size() - at), value);
    else
        stream[at] = value;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::size_t kRecord = 4, kMaxRecords = 16;
    static World world;
    static const Stream fresh = world.save();
    static const Stream sound = [] {
        world.make_busy();
        return world.save();
    }();
    world.clear();
    Stream stream = sound;
    std::span<const std::uint8_t> rest(data, size);
    for (std::size_t i = 0; i < kMaxRecords && rest.size() >= kRecord; ++i) {
        damage(stream, world.registers_bytes(), rest.first(kRecord));
        rest = rest.subspan(kRecord);
    }
    if (!world.load(stream)) {
        require(stream != sound && world.save() == fresh);
        return 0;
    }
    world.live();
    require(world.load(world.save()));
    world.live();
    world.check_isolation();
    return 0;
}
