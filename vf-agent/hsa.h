// SPDX-License-Identifier: MIT
//
// The functions and types of the HSA runtime (ROCr) that the self-test uses. The self-test loads
// ROCr at run time, because the agent must also run without ROCr. Names and layouts: HSA Runtime
// Programmer's Reference Manual 1.2 and hsa_ext_amd.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vgpu::agent::hsa {

/// hsa_status_t. kInfoBreak ends an iteration and is not an error.
using Status = std::uint32_t;
inline constexpr Status kSuccess = 0, kInfoBreak = 1;

struct Handle {
    std::uint64_t handle = 0;
};
using Agent = Handle;
using Pool = Handle;
using Signal = Handle;

/// hsa_queue_t, through which a producer sends packets. The runtime owns the queue.
struct Queue {
    std::uint32_t type, features;
    void* base_address;
    Signal doorbell;
    std::uint32_t size;  ///< in packets
    std::uint32_t reserved;
    std::uint64_t id;
};
static_assert(sizeof(Queue) == 40 && offsetof(Queue, doorbell) == 16);

/// hsa_agent_info_t. agent_get_info() writes 64 bytes for kAgentName, and a DeviceType for
/// kAgentDevice.
enum AgentInfo : std::uint32_t { kAgentName = 0, kAgentDevice = 17 };
enum DeviceType : std::uint32_t { kCpu = 0, kGpu = 1 };
/// hsa_amd_memory_pool_info_t
enum PoolInfo : std::uint32_t { kPoolSegment = 0, kPoolFlags = 1, kPoolMayAllocate = 5 };
inline constexpr std::uint32_t kGlobalSegment = 0;  ///< value of kPoolSegment
inline constexpr std::uint32_t kFineGrained = 2;    ///< bit of kPoolFlags
inline constexpr std::uint32_t kMultiProducer = 0;  ///< hsa_queue_type_t
/// hsa_signal_condition_t
enum Condition : std::uint32_t { kEqual = 0, kLess = 2 };
/// hsa_wait_state_t
enum WaitState : std::uint32_t { kBlocked = 0 };

using AgentVisitor = Status (*)(Agent, void*);
using PoolVisitor = Status (*)(Pool, void*);

/// Expands HSA_CALL(member, "symbol", result, parameters…) for each function. Used to declare the
/// members of Calls, and to look the functions up.
#define VGPU_AGENT_HSA_CALLS(HSA_CALL)                                                            \
    HSA_CALL(init, "hsa_init", Status)                                                            \
    HSA_CALL(shut_down, "hsa_shut_down", Status)                                                  \
    HSA_CALL(status_string, "hsa_status_string", Status, Status, const char**)                    \
    HSA_CALL(iterate_agents, "hsa_iterate_agents", Status, AgentVisitor, void*)                   \
    HSA_CALL(agent_get_info, "hsa_agent_get_info", Status, Agent, AgentInfo, void*)               \
    HSA_CALL(iterate_pools, "hsa_amd_agent_iterate_memory_pools", Status, Agent, PoolVisitor,     \
             void*)                                                                               \
    HSA_CALL(pool_get_info, "hsa_amd_memory_pool_get_info", Status, Pool, PoolInfo, void*)        \
    HSA_CALL(pool_allocate, "hsa_amd_memory_pool_allocate", Status, Pool, std::size_t,            \
             std::uint32_t, void**)                                                               \
    HSA_CALL(pool_free, "hsa_amd_memory_pool_free", Status, void*)                                \
    HSA_CALL(allow_access, "hsa_amd_agents_allow_access", Status, std::uint32_t, const Agent*,    \
             const std::uint32_t*, const void*)                                                   \
    HSA_CALL(async_copy, "hsa_amd_memory_async_copy", Status, void*, Agent, const void*, Agent,   \
             std::size_t, std::uint32_t, const Signal*, Signal)                                   \
    HSA_CALL(signal_create, "hsa_signal_create", Status, std::int64_t, std::uint32_t,             \
             const Agent*, Signal*)                                                               \
    HSA_CALL(signal_destroy, "hsa_signal_destroy", Status, Signal)                                \
    HSA_CALL(signal_store, "hsa_signal_store_screlease", void, Signal, std::int64_t)              \
    HSA_CALL(signal_wait, "hsa_signal_wait_scacquire", std::int64_t, Signal, Condition,           \
             std::int64_t, std::uint64_t, WaitState)                                              \
    HSA_CALL(queue_create, "hsa_queue_create", Status, Agent, std::uint32_t, std::uint32_t,       \
             void (*)(Status, Queue*, void*), void*, std::uint32_t, std::uint32_t, Queue**)       \
    HSA_CALL(queue_destroy, "hsa_queue_destroy", Status, Queue*)                                  \
    HSA_CALL(add_write_index, "hsa_queue_add_write_index_screlease", std::uint64_t, const Queue*, \
             std::uint64_t)

/// The functions; null until the self-test has looked them up. The self-test fails if a symbol is
/// missing.
struct Calls {
#define VGPU_AGENT_HSA_MEMBER(member, symbol, result, ...) result (*member)(__VA_ARGS__) = nullptr;
    VGPU_AGENT_HSA_CALLS(VGPU_AGENT_HSA_MEMBER)
#undef VGPU_AGENT_HSA_MEMBER
};

}  // namespace vgpu::agent::hsa
