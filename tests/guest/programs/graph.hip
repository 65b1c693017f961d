// SPDX-License-Identifier: MIT
// A HIP graph: captured from a stream, and built by hand with a fork and a join; launched many
// times.
#include "check.h"

__global__ void scale(int* x, int n, int factor) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}

__global__ void add(const int* a, const int* b, int* sum, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) sum[i] = a[i] + b[i];
}

int main() {
    int n = 1000;
    std::vector<int> start(n), got(n);
    for (int i = 0; i < n; ++i) start[i] = i;
    DeviceArray<int> a(n), b(n), sum(n);

    hipStream_t stream;
    HIP_OK(hipStreamCreate(&stream));
    hipGraph_t captured;
    HIP_OK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    HIP_OK(hipMemcpyAsync(a.data(), start.data(), n * sizeof(int), hipMemcpyHostToDevice, stream));
    scale<<<8, 128, 0, stream>>>(a.data(), n, 3);
    scale<<<8, 128, 0, stream>>>(a.data(), n, 5);
    HIP_OK(hipMemcpyAsync(got.data(), a.data(), n * sizeof(int), hipMemcpyDeviceToHost, stream));
    HIP_OK(hipStreamEndCapture(stream, &captured));
    hipGraphExec_t run;
    HIP_OK(hipGraphInstantiate(&run, captured, nullptr, nullptr, 0));
    for (int round = 0; round < 3; ++round) {
        std::fill(got.begin(), got.end(), -1);
        HIP_OK(hipGraphLaunch(run, stream));
        HIP_OK(hipStreamSynchronize(stream));
        for (int i = 0; i < n; ++i) expect("the captured graph", got[i] == i * 15);
    }
    HIP_OK(hipGraphExecDestroy(run));
    HIP_OK(hipGraphDestroy(captured));

    hipGraph_t graph;
    HIP_OK(hipGraphCreate(&graph, 0));
    hipGraphNode_t copy_a, copy_b, scale_a, scale_b, join, back;
    HIP_OK(hipGraphAddMemcpyNode1D(&copy_a, graph, nullptr, 0, a.data(), start.data(),
                                   n * sizeof(int), hipMemcpyHostToDevice));
    HIP_OK(hipGraphAddMemcpyNode1D(&copy_b, graph, nullptr, 0, b.data(), start.data(),
                                   n * sizeof(int), hipMemcpyHostToDevice));
    int *pa = a.data(), *pb = b.data(), *psum = sum.data();
    int two = 2, seven = 7;
    const auto kernel = [](void* function, void** arguments) {
        hipKernelNodeParams node{};
        node.func = function;
        node.gridDim = dim3(8);
        node.blockDim = dim3(128);
        node.kernelParams = arguments;
        return node;
    };
    void* arguments_a[] = {&pa, &n, &two};
    void* arguments_b[] = {&pb, &n, &seven};
    void* arguments_join[] = {&pa, &pb, &psum, &n};
    auto node = kernel(reinterpret_cast<void*>(scale), arguments_a);
    HIP_OK(hipGraphAddKernelNode(&scale_a, graph, &copy_a, 1, &node));
    node = kernel(reinterpret_cast<void*>(scale), arguments_b);
    HIP_OK(hipGraphAddKernelNode(&scale_b, graph, &copy_b, 1, &node));
    const hipGraphNode_t both[] = {scale_a, scale_b};
    node = kernel(reinterpret_cast<void*>(add), arguments_join);
    HIP_OK(hipGraphAddKernelNode(&join, graph, both, 2, &node));
    HIP_OK(hipGraphAddMemcpyNode1D(&back, graph, &join, 1, got.data(), sum.data(), n * sizeof(int),
                                   hipMemcpyDeviceToHost));
    HIP_OK(hipGraphInstantiate(&run, graph, nullptr, nullptr, 0));
    for (int round = 0; round < 3; ++round) {
        std::fill(got.begin(), got.end(), -1);
        HIP_OK(hipGraphLaunch(run, stream));
        HIP_OK(hipStreamSynchronize(stream));
        for (int i = 0; i < n; ++i) expect("the graph with a join", got[i] == i * 9);
    }
    HIP_OK(hipGraphExecDestroy(run));
    HIP_OK(hipGraphDestroy(graph));
    HIP_OK(hipStreamDestroy(stream));
    return passed("graph");
}
