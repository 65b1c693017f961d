// SPDX-License-Identifier: MIT
//
// vgpu-peer-engine, vgpu-peer-engine-flat: workers that run workloads on the execution engine
// alone, on one thread, without packets or a softgpu process. The first translates addresses as a
// VF does (GPUVM, VF page table). The second is built with flat/, where a translation is one
// addition. The difference is what translation costs.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <stdexcept>

#include "tests/bench/peers/worker.h"
#include "tests/unit/isa/flat_gpu.h"
#include "tests/unit/mem/memory_rig.h"

namespace vgpu::test {
namespace {

using softgpu::operator""_MiB;
using softgpu::VfOffset;
using softgpu::Vmid;
namespace mem = softgpu::mem;

constexpr softgpu::Bytes kVram = 96_MiB;
constexpr std::uint64_t kMemory = (32_MiB).count;  ///< in VRAM, behind the page tables
constexpr std::size_t kBytes = (64_MiB).count;     ///< size of the memory at kMemory
constexpr std::uint64_t kHugePage = (2_MiB).count;
constexpr unsigned kVmid = 8;

/// Sets the address of memory in the port of the flat build.
template <class Port> void without_translation(std::byte* memory) {
    if constexpr (requires { Port::flat_memory; }) {
        static_assert(Port::kFlatBase == FlatPort::kBase);
        Port::flat_memory = memory;
    }
}

class Engine final : public Machine {
public:
    Engine() {
        const auto root = memory_.new_table();
        for (std::uint64_t at = 0; at < kBytes; at += kHugePage)
            memory_.map_huge(root, FlatPort::kBase + at, 1,
                             (kMemory + at) | softgpu::test::kRwx | GPUVM_PDE_PTE);
        memory_.enable_context(kVmid, root);
        port_ = memory_.gpuvm->make_port(Vmid{kVmid}, mem::Hub::Gfx);
        without_translation<mem::Port>(memory_.vram->host(VfOffset{kMemory}));
    }

    [[nodiscard]] std::string description() const override { return "the engine alone, 1 thread"; }

    /// Puts the program together in flat memory and then copies it to VRAM, at the same addresses.
    void place(const Workload& workload) override {
        loader_.emplace(kBytes);
        loader_->load_kernel(workload.kernel, 3);
        addresses_.clear();
        for (const auto& words : workload.buffers) addresses_.push_back(loader_->upload(words));
        set_arguments(workload);
        loader_->set_grid(
            {{workload.group[0], workload.group[1], 1}, {workload.items[0], workload.items[1], 1}});
        softgpu::isa::Workgroup first;
        loader_->start(first, {});  // arguments are placed with the first group
        write(FlatPort::kBase, loader_->port.bytes(FlatPort::kBase, kBytes));
        output_ = workload.output;
        output_words_ = workload.expected.size();
    }

    void refill(const Workload& workload) override {
        for (std::size_t i = 0; i < addresses_.size(); ++i)
            write(addresses_[i], std::as_bytes(std::span(workload.buffers[i])));
    }

    void run(std::uint32_t runs) override {
        const auto flat = loader_->context();
        const softgpu::isa::RunContext context{*port_,        flat.cache, flat.clock,
                                               flat.messages, flat.stop,  flat.budget};
        for (std::uint32_t i = 0; i < runs; ++i) {
            const auto result = loader_->dispatch(context);
            if (result.reason != softgpu::isa::StopReason::AllWavesEnded)
                throw std::runtime_error(fmt::format("the kernel stopped at {:#x}", result.pc));
            retired_ += result.retired;
        }
    }

    [[nodiscard]] WorkWords output() override {
        WorkWords out(output_words_);
        if (!memory_.vram->read(vram_offset(addresses_[output_]),
                                std::as_writable_bytes(std::span(out))))
            throw std::runtime_error("the output lies outside VRAM");
        return out;
    }

    [[nodiscard]] std::optional<std::uint64_t> wave_instructions() override { return retired_; }

private:
    static VfOffset vram_offset(std::uint64_t va) {
        return VfOffset{kMemory + (va - FlatPort::kBase)};
    }
    void write(std::uint64_t va, std::span<const std::byte> data) {
        if (!memory_.vram->write(vram_offset(va), data))
            throw std::runtime_error("the workload does not fit into VRAM");
    }
    void set_arguments(const Workload& workload) {
        loader_->set_arguments();
        for (const auto& argument : workload.arguments) {
            if (argument.kind == WorkArgument::Kind::Buffer)
                loader_->add_argument(addresses_[argument.value]);
            else
                loader_->add_argument(argument.value);
        }
    }

    softgpu::test::MemoryRig memory_{kVram};
    std::unique_ptr<mem::Port> port_;
    std::optional<FlatGpu> loader_;
    std::vector<std::uint64_t> addresses_;
    std::uint64_t retired_ = 0;
    std::size_t output_ = 0, output_words_ = 0;
};

}  // namespace
}  // namespace vgpu::test

int main() {
    try {
        vgpu::test::Engine machine;
        return vgpu::test::serve(machine);
    } catch (const std::exception& error) {
        fmt::print(stderr, "vgpu-peer-engine: {}\n", error.what());
        return 1;
    }
}
