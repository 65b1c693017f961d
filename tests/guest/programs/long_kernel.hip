// SPDX-License-Identifier: MIT
// A kernel that runs as long as requested; the CPU computes its result without running it.
// Registers, LDS and loop counters of every lane must survive each world switch and each queue
// preemption.
//
//   long_kernel [ROUNDS [REPEATS]]     ROUNDS in units of 64 steps
#include <array>

#include "check.h"

__host__ __device__ std::uint32_t shift(std::uint32_t x) {
    x ^= x << 13;
    x ^= x >> 17;
    return x ^ (x << 5);
}

constexpr std::uint32_t kFactor = 1664525, kAddend = 1013904223;

struct Lane {
    std::uint32_t shifted;     // xorshift32, one step each round of 64
    std::uint32_t multiplied;  // linear congruential, likewise
    std::uint32_t
        neighbours;  // exclusive or of the next lane's `shifted`, passed through LDS each round
    double halves;   // 0.5 for each step
};

__global__ void walk(Lane* out, int rounds) {
    __shared__ std::uint32_t shared[128];
    Lane lane{};
    lane.shifted = threadIdx.x + 1;
    lane.multiplied = blockIdx.x;
    for (int round = 0; round < rounds; ++round) {
        for (int i = 0; i < 64; ++i) {
            lane.shifted = shift(lane.shifted);
            lane.multiplied = lane.multiplied * kFactor + kAddend;
            lane.halves += 0.5;
        }
        shared[threadIdx.x] = lane.shifted;
        __syncthreads();
        lane.neighbours ^= shared[(threadIdx.x + 1) % blockDim.x];
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = lane;
}

namespace {

// Linear map of 32 bits: column i is the image of bit i.
using Matrix = std::array<std::uint32_t, 32>;

std::uint32_t image_of(const Matrix& m, std::uint32_t x) {
    std::uint32_t y = 0;
    for (int i = 0; i < 32; ++i) y ^= (x >> i & 1) != 0 ? m[i] : 0;
    return y;
}

Matrix product(const Matrix& a, const Matrix& b) {
    Matrix c;
    for (int i = 0; i < 32; ++i) c[i] = image_of(a, b[i]);
    return c;
}

Matrix both(const Matrix& a, const Matrix& b) {
    Matrix c;
    for (int i = 0; i < 32; ++i) c[i] = a[i] ^ b[i];
    return c;
}

// The maps of `rounds` rounds: power = P^n, total = P + P^2 + ... + P^n, where P is one round of 64
// steps.
struct Walked {
    Matrix power, total;
};

Walked walked(std::uint32_t rounds, const Matrix& one_round) {
    Walked w{};
    for (int i = 0; i < 32; ++i) w.power[i] = 1u << i;
    for (int bit = 31; bit >= 0; --bit) {
        w.total = both(w.total, product(w.power, w.total));
        w.power = product(w.power, w.power);
        if ((rounds >> bit & 1) != 0) {
            w.power = product(one_round, w.power);
            w.total = both(w.total, w.power);
        }
    }
    return w;
}

std::uint32_t multiplied(std::uint32_t start, std::uint64_t steps) {
    std::uint32_t factor = 1, addend = 0, f = kFactor, a = kAddend;
    for (; steps != 0; steps >>= 1) {
        if ((steps & 1) != 0) {
            addend = addend * f + a;
            factor *= f;
        }
        a = a * f + a;
        f *= f;
    }
    return start * factor + addend;
}

}  // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 300;
    const int repeats = argc > 2 ? std::atoi(argv[2]) : 1;
    const int groups = 8, size = 128;

    Matrix one_round;
    for (int i = 0; i < 32; ++i) {
        one_round[i] = 1u << i;
        for (int step = 0; step < 64; ++step) one_round[i] = shift(one_round[i]);
    }
    const Walked w = walked(rounds, one_round);

    DeviceArray<Lane> out(groups * size);
    for (int repeat = 0; repeat < repeats; ++repeat) {
        HIP_OK(hipMemset(out.data(), 0, groups * size * sizeof(Lane)));
        walk<<<groups, size>>>(out.data(), rounds);
        HIP_OK(hipGetLastError());
        const std::vector<Lane> got = out.read();
        for (int i = 0; i < groups * size; ++i) {
            const int lane = i % size;
            expect("the shifted value", got[i].shifted == image_of(w.power, lane + 1));
            expect("the multiplied value",
                   got[i].multiplied == multiplied(i / size, std::uint64_t{64} * rounds));
            expect("what LDS passed",
                   got[i].neighbours == image_of(w.total, (lane + 1) % size + 1));
            expect("the sum of halves", got[i].halves == 32.0 * rounds);
        }
    }
    return passed("long_kernel");
}
