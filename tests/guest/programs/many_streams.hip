// SPDX-License-Identifier: MIT
// More HSA queues than the hardware has slots. Each gets a slot after some time, and its work runs.
//
//   many_streams [QUEUES]
#include <hsa/hsa.h>

#include "check.h"

namespace {

void hsa_ok(const char* what, hsa_status_t status) {
    if (status == HSA_STATUS_SUCCESS || status == HSA_STATUS_INFO_BREAK) return;
    std::printf("%s: HSA status %#x\n", what, static_cast<unsigned>(status));
    std::exit(1);
}

hsa_status_t take_gpu(hsa_agent_t agent, void* out) {
    hsa_device_type_t type;
    const hsa_status_t status = hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
    if (status != HSA_STATUS_SUCCESS || type != HSA_DEVICE_TYPE_GPU) return status;
    *static_cast<hsa_agent_t*>(out) = agent;
    return HSA_STATUS_INFO_BREAK;
}

// A barrier packet at the end of `queue` that counts `done` down once `before` is 0 (handle 0: at
// once).
void put_barrier(hsa_queue_t* queue, hsa_signal_t before, hsa_signal_t done) {
    const std::uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
    auto* packet =
        static_cast<hsa_barrier_and_packet_t*>(queue->base_address) + index % queue->size;
    std::memset(reinterpret_cast<char*>(packet) + 2, 0, sizeof *packet - 2);
    packet->dep_signal[0] = before;
    packet->completion_signal = done;
    const std::uint16_t header = HSA_PACKET_TYPE_BARRIER_AND << HSA_PACKET_HEADER_TYPE |
                                 HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
    __atomic_store_n(&packet->header, header, __ATOMIC_RELEASE);
    hsa_signal_store_screlease(queue->doorbell_signal, index);
}

}  // namespace

__global__ void fill(std::uint32_t* x, std::uint32_t value) {
    x[threadIdx.x] = value;
}

int main(int argc, char** argv) {
    const int count = argc > 1 ? std::atoi(argv[1]) : 40;
    DeviceArray<std::uint32_t> x(64);
    hsa_agent_t gpu{};
    hsa_ok("hsa_init", hsa_init());
    hsa_ok("hsa_iterate_agents", hsa_iterate_agents(take_gpu, &gpu));
    std::vector<hsa_queue_t*> queues(count);
    for (auto& queue : queues)
        hsa_ok("hsa_queue_create", hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_SINGLE, nullptr,
                                                    nullptr, UINT32_MAX, UINT32_MAX, &queue));
    for (int round = 0; round < 3; ++round) {
        // a chain through all queues: each waits for a signal that the queue after it completes
        std::vector<hsa_signal_t> signals(count);
        for (auto& signal : signals)
            hsa_ok("hsa_signal_create", hsa_signal_create(1, 0, nullptr, &signal));
        for (int i = 0; i < count; ++i)
            put_barrier(queues[i], i + 1 < count ? signals[i + 1] : hsa_signal_t{0}, signals[i]);
        expect("the chain through all queues ends",
               hsa_signal_wait_scacquire(signals[0], HSA_SIGNAL_CONDITION_EQ, 0, UINT64_MAX,
                                         HSA_WAIT_STATE_BLOCKED) == 0);
        for (auto& signal : signals) hsa_ok("hsa_signal_destroy", hsa_signal_destroy(signal));
        fill<<<1, 64>>>(x.data(), 17 + round);
        HIP_OK(hipGetLastError());
        expect_same("fill beside the queues", x.read(), std::vector<std::uint32_t>(64, 17 + round));
    }
    for (auto* queue : queues) hsa_ok("hsa_queue_destroy", hsa_queue_destroy(queue));
    return passed("many_streams");
}
