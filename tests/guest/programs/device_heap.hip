// SPDX-License-Identifier: MIT
// Memory that a kernel allocates and frees itself, and virtual calls in a kernel.
#include "check.h"

struct Node {
    Node* next;
    std::uint32_t value;
};

__global__ void list_sums(std::uint32_t* sums, int length) {
    const std::uint32_t id = blockIdx.x * blockDim.x + threadIdx.x;
    Node* head = nullptr;
    for (int i = 0; i < length; ++i) {
        auto* node = static_cast<Node*>(malloc(sizeof(Node)));
        if (node == nullptr) {
            sums[id] = 0;
            return;
        }
        node->next = head;
        node->value = id * 31 + i;
        head = node;
    }
    std::uint32_t sum = 0;
    while (head != nullptr) {
        Node* next = head->next;
        sum = sum * 33 + head->value;
        free(head);
        head = next;
    }
    sums[id] = sum;
}

struct Shape {
    __device__ virtual std::uint32_t area() const = 0;
};
struct Square : Shape {
    std::uint32_t side;
    __device__ explicit Square(std::uint32_t s) : side(s) {}
    __device__ std::uint32_t area() const override { return side * side; }
};
struct Box : Shape {
    std::uint32_t width, height;
    __device__ Box(std::uint32_t w, std::uint32_t h) : width(w), height(h) {}
    __device__ std::uint32_t area() const override { return width * height; }
};

__global__ void areas(std::uint32_t* out) {
    const std::uint32_t id = threadIdx.x;
    Shape* shape = id % 3 == 0 ? static_cast<Shape*>(new Square(id)) : new Box(id, id + 1);
    out[id] = shape->area();
    free(shape);
}

int main() {
    const int groups = 4, threads = 96, length = 9;
    DeviceArray<std::uint32_t> sums(groups * threads);
    for (int round = 0; round < 3; ++round) {
        list_sums<<<groups, threads>>>(sums.data(), length);
        HIP_OK(hipDeviceSynchronize());
    }
    std::vector<std::uint32_t> want(groups * threads);
    for (std::uint32_t id = 0; id < want.size(); ++id)
        for (int i = length - 1; i >= 0; --i) want[id] = want[id] * 33 + id * 31 + i;
    expect_same("sum", sums.read(), want);

    DeviceArray<std::uint32_t> out(200);
    areas<<<1, 200>>>(out.data());
    HIP_OK(hipDeviceSynchronize());
    want.resize(200);
    for (std::uint32_t id = 0; id < 200; ++id) want[id] = id * (id % 3 == 0 ? id : id + 1);
    expect_same("area", out.read(), want);
    std::puts("ok device_heap");
}
