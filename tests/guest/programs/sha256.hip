// SPDX-License-Identifier: MIT
// SHA-256 of one 64-byte message per work-item, against the CPU and a known digest.
#include "check.h"

namespace {

constexpr std::uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

__host__ __device__ std::uint32_t rotate(std::uint32_t x, int n) {
    return (x >> n) | (x << (32 - n));
}

// one 64-byte block of big-endian words into the state of 8 words
__host__ __device__ void compress(std::uint32_t state[8], const std::uint32_t block[16],
                                  const std::uint32_t round[64]) {
    std::uint32_t w[64];
    for (int i = 0; i < 16; ++i) w[i] = block[i];
    for (int i = 16; i < 64; ++i) {
        const std::uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >> 3);
        const std::uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    std::uint32_t v[8];
    for (int i = 0; i < 8; ++i) v[i] = state[i];
    for (int i = 0; i < 64; ++i) {
        const std::uint32_t s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
        const std::uint32_t t1 = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + round[i] + w[i];
        const std::uint32_t s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
        const std::uint32_t t2 = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        for (int k = 7; k > 0; --k) v[k] = v[k - 1];
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; ++i) state[i] += v[i];
}

__host__ __device__ void digest(const std::uint32_t message[16], std::uint32_t out[8],
                                const std::uint32_t round[64]) {
    const std::uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    for (int i = 0; i < 8; ++i) out[i] = start[i];
    compress(out, message, round);
    std::uint32_t padding[16] = {0x80000000};
    padding[15] = 512;  // message length in bits
    compress(out, padding, round);
}

__constant__ std::uint32_t device_round[64];

__global__ void digest_all(const std::uint32_t* messages, std::uint32_t* digests) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    digest(messages + i * 16, digests + i * 8, device_round);
}

}  // namespace

int main() {
    const int count = 1024;
    Random random(4);
    std::vector<std::uint32_t> messages(count * 16), want(count * 8);
    for (auto& word : messages) word = random.next();
    for (int i = 0; i < 16; ++i) messages[i] = 0x61616161;  // message 0: 64 times "a"
    for (int i = 0; i < count; ++i) digest(&messages[i * 16], &want[i * 8], kRound);
    expect("sha256 of 64 times 'a'", want[0] == 0xffe054fe && want[7] == 0x154668eb);

    HIP_OK(hipMemcpyToSymbol(HIP_SYMBOL(device_round), kRound, sizeof kRound));
    DeviceArray<std::uint32_t> dmessages(messages), ddigests(count * 8);
    digest_all<<<count / 128, 128>>>(dmessages.data(), ddigests.data());
    HIP_OK(hipGetLastError());
    expect_same("digest", ddigests.read(), want);
    return passed("sha256");
}
