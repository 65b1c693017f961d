// SPDX-License-Identifier: MIT
//
// vgpu-peer-softgpu THREADS: the worker that runs workloads on a softgpu process as a guest's
// runtime would: kernels compiled for gfx900, buffers in VRAM behind GPUVM, AQL packets, doorbells,
// completion signals with their interrupt. Time is from the first packet to the wake-up of the
// waiting process.
#include <fmt/format.h>

#include <charconv>
#include <map>

#include "tests/bench/peers/worker.h"
#include "tests/scenario/gpu/guest.h"

namespace vgpu::test {
namespace {

constexpr std::uint64_t kVramMb = 128;
constexpr std::uint64_t kHugePage = 2u << 20;
constexpr milliseconds kLimit{120'000};

class Softgpu final : public Machine {
public:
    explicit Softgpu(unsigned threads)
        : threads_(threads),
          stack_({.vfs = 1, .vram_mb = 2 * kVramMb, .aperture_mb = kVramMb, .threads = threads}) {
        stack_.provision(1, kVramMb);
        guest_.emplace(stack_, 1);
        guest_->client.device().trace().set_recording(false);
        done_ = guest_->process->create_signal();
    }

    [[nodiscard]] std::string description() const override {
        return fmt::format("softgpu, threads: {}", threads_);
    }

    void place(const Workload& workload) override {
        for (const auto& buffer : buffers_) guest_->process->free(buffer);
        buffers_.clear();
        for (const auto& words : workload.buffers) {
            const auto bytes = words.size() * sizeof(words[0]);
            const auto whole = (bytes + kHugePage - 1) / kHugePage * kHugePage;
            buffers_.push_back(guest_->process->allocate(whole, Place::Vram));
        }
        kernel_ = load(workload.kernel);
        grid_ = {.grid = {workload.items[0], workload.items[1], 1},
                 .group = {workload.group[0], workload.group[1], 1}};
        arguments_ = arguments_of(workload);
        output_ = workload.output;
        output_words_ = workload.expected.size();
    }

    void refill(const Workload& workload) override {
        for (std::size_t i = 0; i < buffers_.size(); ++i)
            buffers_[i].fill_from(std::span<const std::uint32_t>(workload.buffers[i]));
        guest_->client.device().flush_hdp();
    }

    void run(std::uint32_t runs) override {
        done_.set(1);
        for (std::uint32_t i = 1; i < runs; ++i)
            guest_->queue->dispatch(kernel_, grid_, arguments_);
        guest_->queue->dispatch(kernel_, grid_, arguments_, done_);
        guest_->process->wait(done_, kLimit);
    }

    [[nodiscard]] WorkWords output() override {
        WorkWords out(output_words_);
        buffers_[output_].copy_to(std::span(out));
        return out;
    }

    [[nodiscard]] std::optional<std::uint64_t> wave_instructions() override {
        const auto answer = stack_.control({{"stats", nlohmann::json::object()}});
        for (const auto& vf : answer.at("vfs"))
            if (vf.at("vf") == 1) return vf.at("wave_instructions").get<std::uint64_t>();
        throw VfError("softgpu counts nothing for VF1");
    }

private:
    Kernel load(const std::string& name) {
        const auto known = kernels_.find(name);
        if (known != kernels_.end()) return known->second;
        return kernels_[name] = guest_->process->load(kernel_file(name), name);
    }
    [[nodiscard]] KernelArgs arguments_of(const Workload& workload) const {
        KernelArgs out;
        for (const auto& argument : workload.arguments) {
            if (argument.kind == WorkArgument::Kind::Buffer)
                append_argument(out, buffers_[argument.value].address);
            else
                append_argument(out, argument.value);
        }
        return out;
    }

    unsigned threads_;
    GpuStack stack_;
    std::optional<Guest> guest_;
    std::map<std::string, Kernel> kernels_;
    Signal done_;
    std::vector<Buffer> buffers_;
    Kernel kernel_;
    Grid grid_;
    KernelArgs arguments_;
    std::size_t output_ = 0, output_words_ = 0;
};

/// The number of threads, or 0 for anything else.
unsigned threads_of(std::span<char*> arguments) {
    unsigned threads = 0;
    if (arguments.size() != 2) return 0;
    const std::string_view text = arguments[1];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
    return error == std::errc{} && end == text.data() + text.size() ? threads : 0;
}

}  // namespace
}  // namespace vgpu::test

int main(int argc, char** argv) {
    const auto threads = vgpu::test::threads_of({argv, static_cast<std::size_t>(argc)});
    if (threads == 0) {
        fmt::print(stderr, "usage: vgpu-peer-softgpu THREADS, a number of worker threads\n");
        return 2;
    }
    try {
        vgpu::test::Softgpu machine(threads);
        return vgpu::test::serve(machine);
    } catch (const std::exception& error) {
        fmt::print(stderr, "vgpu-peer-softgpu: {}\n", error.what());
        return 1;
    }
}
