// SPDX-License-Identifier: MIT
#include "daemon/service/state/crc32c.h"

#include <array>

namespace vgpu::daemon {

namespace {

/// The polynomial 0x1edc6f41, with its bits in reverse order.
constexpr std::uint32_t kReflectedPolynomial = 0x82f63b78;

constexpr std::array<std::uint32_t, 256> make_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
        std::uint32_t rest = byte;
        for (int bit = 0; bit < 8; ++bit)
            rest = (rest & 1) != 0 ? rest >> 1 ^ kReflectedPolynomial : rest >> 1;
        table[byte] = rest;
    }
    return table;
}

constexpr auto kTable = make_table();

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
    std::uint32_t crc = ~0u;
    for (const char byte : bytes)
        crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
    return ~crc;
}

}  // namespace vgpu::daemon
