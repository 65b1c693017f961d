// SPDX-License-Identifier: MIT
//
// libFuzzer: any bytes from a vfio-user client, through the message parser into PF and VF
// configuration spaces, MSI-X tables and interrupt assignments. The mutator repairs most headers,
// so that mutations reach the handlers instead of ending at the first impossible size.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "tests/fuzz/vfio_user_harness.h"

namespace {

using vgpu::softgpu::load;
using vgpu::softgpu::store;
using vgpu::softgpu::vfio_user::Header;

constexpr std::size_t kLongestRepaired = 128;

/// Gives each message a size that fits into what is there.
void repair_headers(std::span<std::byte> stream) {
    while (stream.size() >= sizeof(Header)) {
        auto header = load<Header>(stream);
        const std::size_t wished = sizeof(Header) + header.size % kLongestRepaired;
        header.size = static_cast<std::uint32_t>(std::min(wished, stream.size()));
        store(stream, 0, header);
        stream = stream.subspan(header.size);
    }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max, unsigned seed) {
    size = LLVMFuzzerMutate(data, size, max);
    if (size > 0 && seed % 4 != 0)
        repair_headers(std::as_writable_bytes(std::span(data + 1, size - 1)));
    return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const bool is_quiet = [] {
        spdlog::set_level(spdlog::level::off);
        return true;
    }();
    (void)is_quiet;
    vgpu::softgpu::vfio_user::fuzz::serve_input(std::as_bytes(std::span(data, size)));
    return 0;
}
