// SPDX-License-Identifier: MIT
// Preemption of running compute queues by the driver: while kernels run, another thread creates and
// destroys HSA queues and changes the CU mask of one. For each of these KFD takes all queues of all
// processes off the hardware (context save of their waves) and maps a new run list (restore).
//
//   queue_churn [CHANGES [ROUNDS]]     changes of the mask; rounds of each kernel
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <atomic>
#include <thread>

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

}  // namespace

// Every step depends on the one before; LDS is read back after a barrier in each.
__global__ void churned(std::uint32_t* out, int rounds) {
    __shared__ std::uint32_t shared[192];
    std::uint32_t x = blockIdx.x * blockDim.x + threadIdx.x + 1;
    for (int i = 0; i < rounds; ++i) {
        shared[threadIdx.x] = x;
        __syncthreads();
        x = x * 2654435761u + shared[blockDim.x - 1 - threadIdx.x];
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

int main(int argc, char** argv) {
    const int changes = argc > 1 ? std::atoi(argv[1]) : 50;
    const int rounds = argc > 2 ? std::atoi(argv[2]) : 3000;
    const int groups = 5, size = 192;
    std::vector<std::uint32_t> want(groups * size), before;
    for (int i = 0; i < groups * size; ++i) want[i] = i + 1;
    for (int r = 0; r < rounds; ++r) {
        before = want;
        for (int i = 0; i < groups * size; ++i) {
            const int base = i / size * size;
            want[i] = before[i] * 2654435761u + before[base + size - 1 - i % size];
        }
    }
    DeviceArray<std::uint32_t> out(groups * size);
    hsa_agent_t gpu{};
    hsa_ok("hsa_init", hsa_init());
    hsa_ok("hsa_iterate_agents", hsa_iterate_agents(take_gpu, &gpu));
    expect("there is a GPU agent", gpu.handle != 0);

    std::atomic<bool> done{false};
    std::thread churn([&] {
        const auto create = [&] {
            hsa_queue_t* queue = nullptr;
            hsa_ok("hsa_queue_create", hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_SINGLE, nullptr,
                                                        nullptr, UINT32_MAX, UINT32_MAX, &queue));
            return queue;
        };
        for (int i = 0; i < 10; ++i) hsa_ok("hsa_queue_destroy", hsa_queue_destroy(create()));
        hsa_queue_t* spare = create();
        for (int i = 0; i < changes; ++i) {
            const std::uint32_t mask = i % 2 == 0 ? 0x0f : 0xff;
            hsa_ok("hsa_amd_queue_cu_set_mask", hsa_amd_queue_cu_set_mask(spare, 32, &mask));
        }
        hsa_ok("hsa_queue_destroy", hsa_queue_destroy(spare));
        done = true;
    });
    int kernels = 0;
    while (!done || kernels == 0) {
        HIP_OK(hipMemset(out.data(), 0, groups * size * sizeof(std::uint32_t)));
        churned<<<groups, size>>>(out.data(), rounds);
        HIP_OK(hipGetLastError());
        expect_same("churned", out.read(), want);
        ++kernels;
    }
    churn.join();
    std::printf("%d kernels beside %d changes of queues\n", kernels, changes + 21);
    return passed("queue_churn");
}
