// SPDX-License-Identifier: MIT
// What every HIP program of the guest level shares: a call that must succeed, a random sequence,
// and the verdict. A program prints "ok NAME" and ends with 0, or prints which element is wrong and
// ends with 1.
#pragma once

#include <hip/hip_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define HIP_OK(call)                                                                              \
    do {                                                                                          \
        const hipError_t error_ = (call);                                                         \
        if (error_ != hipSuccess) {                                                               \
            std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, hipGetErrorString(error_)); \
            std::exit(1);                                                                         \
        }                                                                                         \
    } while (0)

// xorshift64*: the same sequence on every machine
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint32_t next() {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return static_cast<std::uint32_t>((state_ * 0x2545f4914f6cdd1dULL) >> 32);
    }
    float unit() { return static_cast<float>(next() >> 8) / static_cast<float>(1 << 24); }

private:
    std::uint64_t state_;
};

// Device memory of `count` elements of T, freed at the end of the scope.
template <typename T> class DeviceArray {
public:
    explicit DeviceArray(std::size_t count) : count_(count) {
        HIP_OK(hipMalloc(&data_, count * sizeof(T)));
    }
    explicit DeviceArray(const std::vector<T>& host) : DeviceArray(host.size()) { write(host); }
    DeviceArray(const DeviceArray&) = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;
    ~DeviceArray() { HIP_OK(hipFree(data_)); }

    T* data() { return data_; }
    void write(const std::vector<T>& host) {
        HIP_OK(hipMemcpy(data_, host.data(), host.size() * sizeof(T), hipMemcpyHostToDevice));
    }
    std::vector<T> read() const {
        std::vector<T> host(count_);
        HIP_OK(hipMemcpy(host.data(), data_, count_ * sizeof(T), hipMemcpyDeviceToHost));
        return host;
    }

private:
    std::size_t count_;
    T* data_ = nullptr;
};

// Bit-exact comparison; names the first element that differs.
template <typename T>
void expect_same(const char* what, const std::vector<T>& got, const std::vector<T>& want) {
    for (std::size_t i = 0; i < want.size(); ++i) {
        if (std::memcmp(&got[i], &want[i], sizeof(T)) != 0) {
            std::printf("%s[%zu] is %.17g, not %.17g\n", what, i, static_cast<double>(got[i]),
                        static_cast<double>(want[i]));
            std::exit(1);
        }
    }
}

inline void expect(const char* what, bool holds) {
    if (!holds) {
        std::printf("%s does not hold\n", what);
        std::exit(1);
    }
}

inline int passed(const char* name) {
    std::printf("ok %s\n", name);
    return 0;
}
