// SPDX-License-Identifier: MIT
//
// Fuzzes the bytes from a vfio-user client, through the message parser into PF and VF configuration
// spaces, MSI-X tables and interrupt assignments. The mutator repairs most headers, so that
// mutations reach the handlers instead of ending at the first impossible size. It also appends
// messages whose fields are nearly right.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <random>
#include <span>
#include <vector>

#include "tests/fuzz/vfio_user_harness.h"

namespace {

using namespace vgpu::softgpu::vfio_user;
using vgpu::softgpu::bytes_of;
using vgpu::softgpu::load;
using vgpu::softgpu::store;

constexpr std::size_t kLongestRepaired = 128;

/// Gives each message a size that fits into the stream.
void repair_headers(std::span<std::byte> stream) {
    while (stream.size() >= sizeof(Header)) {
        auto header = load<Header>(stream);
        const std::size_t wished = sizeof(Header) + header.size % kLongestRepaired;
        header.size = static_cast<std::uint32_t>(std::min(wished, stream.size()));
        store(stream, 0, header);
        stream = stream.subspan(header.size);
    }
}

/// Makes messages whose fields are in or near their valid ranges.
class MessageMaker {
public:
    explicit MessageMaker(unsigned seed) : random_(seed) {}

    std::vector<std::byte> any() {
        switch (below(9)) {
            case 0:
                return message(Command::DmaMap, DmaMap{.flags = below(4),
                                                       .offset = pages(2),
                                                       .address = pages(8),
                                                       .size = pages(4)});
            case 1:
                return message(Command::DmaUnmap, DmaUnmap{.flags = below(8) == 0 ? below(4) : 0,
                                                           .address = pages(8),
                                                           .size = pages(8)});
            case 2:
                return message(Command::DmaUnmap, DmaUnmap{.flags = kDmaUnmapAll});
            case 3:
                return message(Command::DeviceGetRegionInfo,
                               RegionInfo{.argsz = below(2) == 0 ? 32u : 256u, .index = below(10)});
            case 4:
                return message(Command::DeviceGetIrqInfo, IrqInfo{.index = below(6)});
            case 5:
                return irq_set();
            case 6:
                return access();
            case 7:
                return several_writes();
            default:
                return message(below(2) == 0 ? Command::DeviceReset : Command::DeviceGetInfo,
                               DeviceInfo{});
        }
    }

private:
    std::uint32_t below(std::uint32_t bound) {
        return static_cast<std::uint32_t>(random_() % bound);
    }
    std::uint64_t pages(std::uint32_t bound) { return std::uint64_t{below(bound)} << 12; }

    template <typename Body>
    std::vector<std::byte> message(Command command, const Body& body,
                                   std::span<const std::byte> rest = {}) {
        const Header header{
            .id = static_cast<std::uint16_t>(random_()),
            .command = static_cast<std::uint16_t>(command),
            .size = static_cast<std::uint32_t>(sizeof(Header) + sizeof(body) + rest.size())};
        std::vector<std::byte> all;
        const auto add = [&all](std::span<const std::byte> part) {
            all.insert(all.end(), part.begin(), part.end());
        };
        add(bytes_of(header));
        add(bytes_of(body));
        add(rest);
        return all;
    }
    std::vector<std::byte> irq_set() {
        const std::array<std::byte, 4> selected{std::byte{1}, std::byte{0}, std::byte{1}};
        const std::uint32_t count = below(4);
        const IrqSet set{.flags = 1u << below(3) | kIrqActionMask << below(3),
                         .index = below(6),
                         .start = below(3),
                         .count = count};
        const bool has_bools = (set.flags & kIrqDataBool) != 0;
        return message(Command::DeviceSetIrqs, set,
                       std::span(selected).first(has_bools ? count : 0));
    }
    std::vector<std::byte> access() {
        const std::array<std::byte, 8> data{std::byte{0xff}, std::byte{7}};
        const RegionAccess access{
            .offset = below(0x400), .region = below(10), .count = 1u << below(4)};
        if (below(2) == 0) return message(Command::RegionRead, access);
        return message(Command::RegionWrite, access, std::span(data).first(access.count));
    }
    std::vector<std::byte> several_writes() {
        std::vector<SingleWrite> writes(below(4));
        for (SingleWrite& one : writes)
            one = {
                .offset = below(0x400), .region = below(10), .count = below(10), .data = random_()};
        return message(Command::RegionWriteMulti, WriteMulti{writes.size()},
                       std::as_bytes(std::span(writes)));
    }

    std::minstd_rand random_;
};

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max, unsigned seed) {
    const auto whole = std::as_writable_bytes(std::span(data, max));
    if (size > 0 && seed % 4 == 1) {
        const std::vector<std::byte> message = MessageMaker(seed).any();
        if (message.size() > max - size) return size;
        std::ranges::copy(message, whole.subspan(size).begin());
        return size + message.size();
    }
    size = LLVMFuzzerMutate(data, size, max);
    if (size > 0 && seed % 4 != 0) repair_headers(whole.subspan(1, size - 1));
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
