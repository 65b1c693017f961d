// SPDX-License-Identifier: MIT
//
// A VF around a command processor, as small as it gets: flat memory that every VMID sees at the
// same addresses, a real register file, a log of interrupts and faults, a virtual clock. Around it
// a little driver: it starts the KIQ by registers, maps the HIQ, builds run lists and AQL queues
// with the packets a real driver sends. pump() plays the engine on the calling thread.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "pf-driver/hw/aql.h"
#include "pf-driver/hw/pm4.h"
#include "pf-driver/softgpu/cp/command_processor.h"
#include "pf-driver/softgpu/regs/register_file.h"
#include "tests/support/virtual_clock.h"

namespace vgpu::test {

using softgpu::DoorbellIndex;
using softgpu::GpuVa;
using softgpu::Vmid;
using Words = std::vector<std::uint32_t>;

/// [kBase, kBase + size) of every VMID; nothing elsewhere. Never moves.
class FlatMemory {
public:
    static constexpr std::uint64_t kBase = 0x1'0000'0000;
    explicit FlatMemory(std::size_t bytes) : bytes_(bytes) {}

    [[nodiscard]] std::unique_ptr<softgpu::mem::Port> make_port();
    /// Called for every page that a port has not seen yet, on the thread that uses the port.
    std::function<void(GpuVa, softgpu::mem::Access)> on_walk;
    /// 256-byte aligned, zeroed, never given back.
    std::uint64_t allocate(std::size_t bytes);
    [[nodiscard]] std::span<std::byte> at(std::uint64_t va, std::size_t bytes) {
        return std::span(bytes_).subspan(va - kBase, bytes);
    }
    template <typename T> void put(std::uint64_t va, const T& value) {
        softgpu::store(at(va, sizeof(T)), 0, value);
    }
    template <typename T> [[nodiscard]] T get(std::uint64_t va) {
        return softgpu::load<T>(at(va, sizeof(T)));
    }
    template <typename T> std::uint64_t upload(const std::vector<T>& values) {
        const std::uint64_t va = allocate(values.size() * sizeof(T));
        std::ranges::copy(std::as_bytes(std::span(values)),
                          at(va, values.size() * sizeof(T)).begin());
        return va;
    }
    template <typename T>
    [[nodiscard]] std::vector<T> download(std::uint64_t va, std::size_t count) {
        std::vector<T> out(count);
        std::ranges::copy(at(va, count * sizeof(T)),
                          std::as_writable_bytes(std::span(out)).begin());
        return out;
    }
    [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }

private:
    std::vector<std::byte> bytes_;
    std::uint64_t next_ = kBase + 4096;
    std::atomic<std::uint64_t> epoch_{1};
};

/// The rest of the VF.
class FakeVf final : public softgpu::cp::Services {
public:
    explicit FakeVf(FlatMemory& memory) : memory_(memory) {}

    std::unique_ptr<softgpu::mem::Port> make_port(Vmid) override {
        ++ports_made;
        return memory_.make_port();
    }
    std::atomic<unsigned> ports_made{0};
    void set_process(Vmid vmid, std::uint64_t root, std::uint16_t pasid) override;
    [[nodiscard]] std::uint16_t pasid_of(Vmid vmid) const override;
    void invalidate_pasid(std::uint16_t pasid) override { invalidated.push_back(pasid); }
    void report_fault(Vmid vmid, const softgpu::mem::Fault& fault) override;
    void raise(const ih_iv_entry& entry) override { interrupts.push_back(entry); }
    [[nodiscard]] bool map_sdma(softgpu::cp::SdmaEngine engine,
                                const softgpu::sdma::MapRequest& queue) override;
    void unmap_sdma(softgpu::cp::SdmaEngine engine, DoorbellIndex doorbell) override;
    void work_arrived() override;

    [[nodiscard]] std::size_t count(ih_source source) const;

    std::array<std::uint16_t, 16> pasids{};
    std::array<std::uint64_t, 16> roots{};
    std::vector<std::uint16_t> invalidated;
    std::vector<std::pair<Vmid, softgpu::mem::Fault>> faults;
    std::vector<ih_iv_entry> interrupts;
    std::vector<std::pair<softgpu::cp::SdmaEngine, softgpu::sdma::MapRequest>> sdma;
    std::function<void()> on_work;
    std::uint64_t wakes = 0;

private:
    FlatMemory& memory_;
};

/// A ring the test writes and rings.
struct Ring {
    std::uint64_t va = 0;
    std::uint64_t dwords = 0;
    std::uint64_t wptr = 0;  ///< PM4: dwords; AQL: packets
    std::uint64_t report = 0;
    std::uint64_t wptr_poll = 0;
    std::uint64_t mqd = 0;
    std::uint64_t queue = 0;            ///< AQL: amd_queue_t
    std::uint64_t inactive_signal = 0;  ///< AQL
    std::uint64_t save_area = 0;
    DoorbellIndex doorbell{};
};

struct KernelCode {
    std::uint64_t descriptor = 0;
    std::uint32_t group_bytes = 0;
    std::uint32_t private_bytes = 0;
};

struct AqlKernel {
    std::uint64_t object = 0;
    std::uint64_t arguments = 0;
    std::array<std::uint16_t, 3> group{64, 1, 1};
    std::array<std::uint32_t, 3> grid{64, 1, 1};
    std::uint32_t group_bytes = 0;
    std::uint32_t private_bytes = 0;
    std::uint64_t signal = 0;
    std::uint32_t dimensions = 1;
    bool has_barrier = false;
};

class CpRig {
public:
    static constexpr std::uint16_t kPasid = 0x8001;
    struct Options {
        std::size_t memory_bytes = 16u << 20;
        std::uint32_t compute_units = 2;
        std::uint32_t workers = 1;
    };

    CpRig() : CpRig(Options{}) {}
    explicit CpRig(const Options& options);

    // --- registers and kernel queues
    std::uint32_t read(hw_reg which);
    void write(hw_reg which, std::uint32_t value);
    /// KIQ on me 2 pipe 1 queue 0, by registers.
    void start_kiq();
    /// HIQ through the KIQ, then SET_RESOURCES on it.
    void start_hiq(std::uint16_t vmid_mask = 0xff00, std::uint64_t queue_mask = 0xffff'fefe,
                   std::uint32_t latency_units = 40);
    void start_gfx();
    void submit(Ring& ring, const Words& words);
    void ring_doorbell(const Ring& ring);

    // --- user queues
    /// An AQL queue with its MQD; not mapped.
    Ring make_aql_queue(std::uint32_t packets = 64, std::size_t save_bytes = 4u << 20);
    Ring make_pm4_queue(std::uint32_t dwords = 1024, std::size_t save_bytes = 4u << 20);
    struct Process {
        std::uint16_t pasid = kPasid;
        std::uint32_t quantum_ms = 10;
        std::vector<const Ring*> queues;
        std::uint64_t trap_base = 0;  ///< 0: no trap handler
        std::uint64_t trap_memory = 0;
        std::uint32_t wave_syncs = 0;  ///< NUM_GWS
        std::uint32_t debug_vmid = 0;  ///< 0: not under a debugger
    };
    /// RUN_LIST on the HIQ; `is_over_subscribed` ends it with the chain packet.
    enum class Chain : std::uint8_t { No, Yes };
    void run_list(const std::vector<Process>& processes, Chain chain = Chain::No);
    void map(const Ring& ring) { run_list({{kPasid, 10, {&ring}}}); }
    /// UNMAP_QUEUES (all non-static) and QUERY_STATUS; returns the fence's address.
    std::uint64_t unmap_all(pm4_unmap_action action = PM4_UNMAP_PREEMPT);
    static constexpr std::uint64_t kFenceDone = 100;

    std::uint64_t make_signal(std::int64_t value, std::uint32_t event = 0);
    [[nodiscard]] std::int64_t signal_value(std::uint64_t signal);
    /// One dword of the queue's MQD; for the next map.
    void set_mqd(const Ring& ring, std::uint32_t dword, std::uint32_t value);
    void put_packet(Ring& ring, std::span<const std::byte> packet);
    void dispatch(Ring& ring, const AqlKernel& kernel);
    void barrier(Ring& ring, aql_type type, std::initializer_list<std::uint64_t> signals,
                 std::uint64_t completion);
    /// A vendor packet that runs `ib`.
    void vendor_ib(Ring& ring, const Words& ib, std::uint64_t completion);
    KernelCode load_kernel(const std::string& name, int level = 3);
    /// A handler of tests/kernels: address of its first instruction.
    std::uint64_t load_trap_handler(const std::string& name);
    /// A kernel from machine words: 16 VGPRs, kernarg pointer in s[0:1].
    KernelCode load_words(const Words& words);
    template <typename... Args> std::uint64_t arguments(Args... args) {
        std::vector<std::byte> out;
        const auto append = [&](const auto& value) {
            while (out.size() % sizeof(value) != 0) out.push_back(std::byte{0});
            const auto bytes = softgpu::bytes_of(value);
            out.insert(out.end(), bytes.begin(), bytes.end());
        };
        (append(args), ...);
        out.resize(out.size() + 64);
        return memory.upload(out);
    }

    // --- execution
    /// Steps and groups until nothing moves; groups get `budget` instructions a turn.
    void pump(std::uint64_t budget = 1u << 20);
    /// One round; false if nothing moved.
    bool pump_once(std::uint64_t budget = 1u << 20);
    /// At most `turns` turns of groups.
    void pump_turns(unsigned turns, std::uint64_t budget);

    FlatMemory memory;
    FakeVf vf;
    softgpu::regs::RegisterFile registers{softgpu::regs::Role::Vf};
    softgpu::VirtualClock clock;
    softgpu::cp::CommandProcessor cp;
    Ring kiq;
    Ring hiq;
    Ring gfx;

private:
    Ring make_ring(std::uint32_t dwords, DoorbellIndex doorbell);
    void fill_mqd(const Ring& ring, std::uint32_t pq_control, std::size_t save_bytes);
    void put_mqd(const Ring& ring, hw_reg which, std::uint32_t value);

    std::uint32_t next_doorbell_ = 0x1000;
    std::atomic<bool> stop_{false};
};

/// Seeded and the same everywhere.
class Random {
public:
    explicit Random(std::uint32_t seed) : generator_(seed) {}
    std::uint32_t next() { return static_cast<std::uint32_t>(generator_()); }

private:
    std::mt19937 generator_;
};

/// A packet: header with the right count, then the body.
[[nodiscard]] Words pm4(pm4_opcode opcode, std::initializer_list<std::uint32_t> body);
[[nodiscard]] inline std::uint32_t lo(std::uint64_t value) {
    return softgpu::low32(value);
}
[[nodiscard]] inline std::uint32_t hi(std::uint64_t value) {
    return softgpu::high32(value);
}
[[nodiscard]] Words write_data(std::uint64_t va, std::uint32_t value);
[[nodiscard]] Words operator+(Words a, const Words& b);

}  // namespace vgpu::test
