// SPDX-License-Identifier: MIT
#include "vf-agent/hsa_check.h"

#include "pf-driver/hw/aql.h"
#include "vf-agent/hsa.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

namespace vgpu::agent {

namespace {

/// Bytes to copy: more than a page, but little for a VF that other processes use.
constexpr std::size_t kBytes = 1 << 20;
constexpr std::uint32_t kPackets = 64;  ///< size of the queue
/// AQL header: type; bit 8: barrier; acquire (bits 9, 10) and release fence (11, 12): 2, system.
constexpr std::uint16_t kBarrierHeader = AQL_TYPE_BARRIER_AND | 1u << 8 | 2u << 9 | 2u << 11;

hsa::Calls load() {
    void* library = ::dlopen("libhsa-runtime64.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error("libhsa-runtime64.so.1 is not installed");
    hsa::Calls calls;
    const auto find = [library](const char* symbol, auto& member) {
        void* found = ::dlsym(library, symbol);
        if (found == nullptr) throw std::runtime_error(fmt::format("ROCr has no {}", symbol));
        std::memcpy(&member, &found, sizeof member);
    };
#define VGPU_AGENT_HSA_FIND(member, symbol, ...) find(symbol, calls.member);
    VGPU_AGENT_HSA_CALLS(VGPU_AGENT_HSA_FIND)
#undef VGPU_AGENT_HSA_FIND
    return calls;
}

class Check {
public:
    Outcome run() {
        require(hsa_.init(), "hsa_init");
        require(hsa_.iterate_agents(visit_agent, this), "hsa_iterate_agents");
        if (gpu_.handle == 0) throw std::runtime_error("ROCr sees no GPU");
        require(hsa_.iterate_pools(cpu_, visit_cpu_pool, this), "memory pools of the host");
        require(hsa_.iterate_pools(gpu_, visit_gpu_pool, this), "memory pools of the GPU");
        if (host_pool_.handle == 0 || device_pool_.handle == 0)
            throw std::runtime_error("ROCr offers no memory for the copies");
        run_barrier();
        copy_round_trip();
        hsa_.shut_down();
        return {.is_ok = true,
                .text = fmt::format("{}: a barrier, {} KiB copied to the VF, within it and back",
                                    name_.data(), kBytes >> 10)};
    }

private:
    void require(hsa::Status status, const char* what) const {
        if (status == hsa::kSuccess || status == hsa::kInfoBreak) return;
        const char* words = nullptr;
        hsa_.status_string(status, &words);
        throw std::runtime_error(
            fmt::format("{}: {}", what, words != nullptr ? words : "unknown error"));
    }

    static hsa::Status visit_agent(hsa::Agent agent, void* self) {
        static_cast<Check*>(self)->record_agent(agent);
        return hsa::kSuccess;
    }
    static hsa::Status visit_cpu_pool(hsa::Pool pool, void* self) {
        auto* check = static_cast<Check*>(self);
        check->record_pool(pool, check->host_pool_, hsa::kFineGrained);
        return hsa::kSuccess;
    }
    static hsa::Status visit_gpu_pool(hsa::Pool pool, void* self) {
        auto* check = static_cast<Check*>(self);
        check->record_pool(pool, check->device_pool_, 0);
        return hsa::kSuccess;
    }

    void record_agent(hsa::Agent agent) {
        std::uint32_t type = 0;
        hsa_.agent_get_info(agent, hsa::kAgentDevice, &type);
        if (type == hsa::kCpu && cpu_.handle == 0) cpu_ = agent;
        if (type != hsa::kGpu || gpu_.handle != 0) return;
        gpu_ = agent;
        hsa_.agent_get_info(agent, hsa::kAgentName, name_.data());
        name_.back() = '\0';
    }

    /// Stores in `to` the first global pool that has these flags and from which memory can be
    /// allocated.
    void record_pool(hsa::Pool pool, hsa::Pool& to, std::uint32_t required_flags) const {
        std::uint32_t segment = 0, flags = 0;
        bool may_allocate = false;
        hsa_.pool_get_info(pool, hsa::kPoolSegment, &segment);
        if (segment != hsa::kGlobalSegment || to.handle != 0) return;
        hsa_.pool_get_info(pool, hsa::kPoolFlags, &flags);
        hsa_.pool_get_info(pool, hsa::kPoolMayAllocate, &may_allocate);
        if (may_allocate && (flags & required_flags) == required_flags) to = pool;
    }

    /// A signal with the value 1, which the GPU decrements when it has completed a packet or copy.
    [[nodiscard]] hsa::Signal make_signal() const {
        hsa::Signal signal;
        require(hsa_.signal_create(1, 0, nullptr, &signal), "hsa_signal_create");
        return signal;
    }

    /// Waits until the signal is below its initial value 1, and destroys the signal. A negative
    /// value reports an error. Has no time limit, because the agent kills this process at the
    /// deadline.
    void wait(hsa::Signal signal) const {
        const auto left = hsa_.signal_wait(signal, hsa::kLess, 1, UINT64_MAX, hsa::kBlocked);
        if (left < 0) throw std::runtime_error("the GPU reported an error");
        hsa_.signal_destroy(signal);
    }

    void run_barrier() const {
        hsa::Queue* queue = nullptr;
        require(hsa_.queue_create(gpu_, kPackets, hsa::kMultiProducer, nullptr, nullptr, UINT32_MAX,
                                  UINT32_MAX, &queue),
                "hsa_queue_create");
        const hsa::Signal done = make_signal();
        const std::uint64_t index = hsa_.add_write_index(queue, 1);
        aql_barrier packet{};
        packet.completion_signal = done.handle;
        auto* slot = static_cast<char*>(queue->base_address) +
                     index % queue->size * std::size_t{AQL_PACKET_BYTES};
        std::memcpy(slot + sizeof packet.header, &packet.reserved0,
                    sizeof packet - sizeof packet.header);
        // the header is written last, because it makes the packet valid
        void* header = slot;
        __atomic_store_n(static_cast<std::uint16_t*>(header), kBarrierHeader, __ATOMIC_RELEASE);
        hsa_.signal_store(queue->doorbell, static_cast<std::int64_t>(index));
        wait(done);
        hsa_.queue_destroy(queue);
    }

    [[nodiscard]] unsigned char* allocate(hsa::Pool pool) const {
        void* memory = nullptr;
        require(hsa_.pool_allocate(pool, kBytes, 0, &memory), "cannot allocate");
        const std::array both{cpu_, gpu_};
        if (pool.handle == host_pool_.handle)
            require(hsa_.allow_access(both.size(), both.data(), nullptr, memory),
                    "hsa_amd_agents_allow_access");
        return static_cast<unsigned char*>(memory);
    }

    void copy(unsigned char* to, hsa::Agent to_agent, const unsigned char* from,
              hsa::Agent from_agent) const {
        const hsa::Signal done = make_signal();
        require(hsa_.async_copy(to, to_agent, from, from_agent, kBytes, 0, nullptr, done),
                "hsa_amd_memory_async_copy");
        wait(done);
    }

    /// Copies pseudo-random bytes from the host to VRAM, within VRAM and back, and compares them.
    void copy_round_trip() const {
        unsigned char* sent = allocate(host_pool_);
        unsigned char* back = allocate(host_pool_);
        unsigned char* vram = allocate(device_pool_);
        unsigned char* other_vram = allocate(device_pool_);
        std::uint32_t state = 1;
        std::generate_n(sent, kBytes, [&state] {
            state = state * 1664525u + 1013904223u;
            return static_cast<unsigned char>(state >> 24);
        });
        std::fill_n(back, kBytes, static_cast<unsigned char>(0));
        copy(vram, gpu_, sent, cpu_);
        copy(other_vram, gpu_, vram, gpu_);
        copy(back, cpu_, other_vram, gpu_);
        const auto wrong = std::mismatch(sent, sent + kBytes, back);
        if (wrong.first != sent + kBytes)
            throw std::runtime_error(fmt::format("byte {} is {:#x}, not {:#x}", wrong.first - sent,
                                                 *wrong.second, *wrong.first));
        for (unsigned char* memory : {sent, back, vram, other_vram}) hsa_.pool_free(memory);
    }

    const hsa::Calls hsa_ = load();
    hsa::Agent cpu_, gpu_;
    hsa::Pool host_pool_, device_pool_;
    std::array<char, 64> name_{};
};

}  // namespace

Outcome check_hsa() {
    try {
        return Check().run();
    } catch (const std::exception& error) {
        return {.is_ok = false, .text = error.what()};
    }
}

}  // namespace vgpu::agent
