// SPDX-License-Identifier: MIT
//
// The smallest world in which a kernel runs: one arena of memory with a flat mapping at kBase, a
// virtual clock, and a loop over the work-groups of a dispatch. No packets, no page tables.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "pf-driver/softgpu/isa/dispatch.h"
#include "pf-driver/softgpu/isa/execute.h"
#include "pf-driver/softgpu/isa/translate/code_memory.h"
#include "tests/support/code_object.h"
#include "tests/support/virtual_clock.h"

namespace vgpu::test {

/// Memory [kBase, kBase + size) readable, writable and executable; nothing anywhere else. Pages
/// named in make_indirect() have no host address, set_access() changes what a page allows.
class FlatPort final : public softgpu::mem::Port {
public:
    static constexpr std::uint64_t kBase = 0x7f00'0000'0000;

    FlatPort(const std::atomic<std::uint64_t>& epoch, std::size_t bytes)
        : Port(epoch), arena_(bytes) {}

    [[nodiscard]] std::span<std::byte> bytes(std::uint64_t va, std::size_t size) {
        return std::span(arena_).subspan(va - kBase, size);
    }
    void make_indirect(std::uint64_t va) { indirect_.push_back(va / kPageBytes); }
    /// What the next walk finds for a page: mem::Access bits; 0: it is not present.
    void set_access(std::uint64_t va, std::uint8_t access) { access_[va / kPageBytes] = access; }
    [[nodiscard]] std::size_t size() const { return arena_.size(); }
    std::function<void()> on_indirect_write;

protected:
    Translation walk(softgpu::GpuVa va, softgpu::mem::Access access) override;
    bool read_indirect(softgpu::GpuVa va, std::span<std::byte> out) override;
    bool write_indirect(softgpu::GpuVa va, std::span<const std::byte> data) override;

private:
    [[nodiscard]] bool is_inside(std::uint64_t va, std::size_t size) const {
        return va >= kBase && va - kBase + size <= arena_.size();
    }
    std::vector<std::byte> arena_;
    std::vector<std::uint64_t> indirect_;
    std::map<std::uint64_t, std::uint8_t> access_;  ///< by page; others allow everything
};

/// Keeps what kernels send.
class MessageLog final : public softgpu::isa::MessageSink {
public:
    void interrupt(std::uint32_t payload) override {
        payloads.push_back(payload);
        if (on_interrupt) on_interrupt(payload);
    }
    std::vector<std::uint32_t> payloads;
    std::function<void(std::uint32_t)> on_interrupt;
};

/// How a dispatch is laid out.
struct Grid {
    std::array<std::uint32_t, 3> group{64, 1, 1};
    std::array<std::uint32_t, 3> items{64, 1, 1};
};

class FlatGpu {
public:
    /// The tier is that of the run (tests/support/isa/tier.h).
    explicit FlatGpu(std::size_t bytes = 16u << 20);
    FlatGpu(std::size_t bytes, softgpu::isa::Variant variant);
    /// With `code`, hot blocks are translated; nullptr: the interpreter runs everything.
    FlatGpu(std::size_t bytes, softgpu::isa::Variant variant, softgpu::isa::CodeShare* code);

    /// Takes memory, 256-byte aligned, zeroed; it is never given back.
    std::uint64_t allocate(std::size_t bytes);
    template <typename T> std::uint64_t upload(const std::vector<T>& values) {
        const std::uint64_t va = allocate(values.size() * sizeof(T));
        const auto from = std::as_bytes(std::span(values));
        std::copy(from.begin(), from.end(), port.bytes(va, from.size()).begin());
        return va;
    }
    template <typename T>
    [[nodiscard]] std::vector<T> download(std::uint64_t va, std::size_t count) {
        std::vector<T> out(count);
        const auto from = port.bytes(va, count * sizeof(T));
        std::copy(from.begin(), from.end(), std::as_writable_bytes(std::span(out)).begin());
        return out;
    }

    /// Loads `<name>.O<level>.co` and fills a spec for its kernel `name`.
    void load_kernel(const std::string& name, int level);
    /// Loads a handler of tests/kernels; waves that start from now on have it, with `bytes` of
    /// memory at trap.memory.
    void set_trap_handler(const std::string& name, std::size_t bytes = 256);
    /// Machine words instead of a compiled kernel; `vgprs` and 16 user SGPRs are there.
    void load_words(const std::vector<std::uint32_t>& words, std::uint32_t vgprs = 16);

    /// Kernel arguments, each aligned to its size.
    template <typename... Args> void set_arguments(Args... args) {
        arguments_.clear();
        (add_argument(args), ...);
    }
    template <typename T> void add_argument(T value) { append(&value, sizeof value); }
    void set_grid(const Grid& grid);
    [[nodiscard]] softgpu::isa::RunContext context(std::uint64_t budget = 1u << 30);
    /// All groups, one after the other; stops at the first that does not end well.
    softgpu::isa::RunResult dispatch() { return dispatch(context()); }
    softgpu::isa::RunResult dispatch(const softgpu::isa::RunContext& context);
    void start(softgpu::isa::Workgroup& group, std::array<std::uint32_t, 3> id);

    std::atomic<std::uint64_t> epoch{1};
    FlatPort port;
    softgpu::isa::DecodeCache cache;
    softgpu::VirtualClock clock;
    MessageLog messages;
    std::atomic<bool> stop{false};
    softgpu::isa::DispatchSpec spec;
    softgpu::isa::TrapHandler trap;
    softgpu::isa::GlobalWaveSync* wave_sync = nullptr;
    softgpu::isa::AddressWatches watches;
    softgpu::Vmid vmid{8};

private:
    struct Loaded;
    Loaded load_object(const std::string& name, int level);
    void append(const void* value, std::size_t size);
    void place_arguments();
    std::uint64_t next_ = FlatPort::kBase + 4096;  // address 0 of the arena stays free
    std::vector<std::byte> arguments_;
};

}  // namespace vgpu::test
