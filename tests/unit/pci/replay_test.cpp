// SPDX-License-Identifier: MIT
//
// The fuzzer's harness without the fuzzer: every message a client can send, whole, cut, repeated
// and mutated by a fixed pseudo-random sequence, against PF and VF. Nothing may crash, leak or
// hang; sanitizers see the rest.
#include <dirent.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <random>

#include "tests/fuzz/vfio_user_harness.h"

namespace vgpu::softgpu::pci::test {
namespace {

using vfio_user::Command;
using Message = std::vector<std::byte>;

void append(Message& message, std::span<const std::byte> bytes) {
    message.insert(message.end(), bytes.begin(), bytes.end());
}

template <typename... Parts> Message message_of(Command command, const Parts&... parts) {
    const std::size_t size = sizeof(vfio_user::Header) + (sizeof(Parts) + ... + 0u);
    const vfio_user::Header header{.id = 5,
                                   .command = static_cast<std::uint16_t>(command),
                                   .size = static_cast<std::uint32_t>(size)};
    Message message;
    append(message, bytes_of(header));
    (append(message, bytes_of(parts)), ...);
    return message;
}

std::vector<Message> seeds() {
    using namespace vfio_user;
    constexpr std::uint32_t kAssign = kIrqDataEventfd | kIrqActionTrigger;
    constexpr std::uint32_t kBools = kIrqDataBool | kIrqActionTrigger;
    return {
        fuzz::version_message(),
        message_of(Command::DmaMap, DmaMap{.flags = 3, .address = 0x1000, .size = 0x1000}),
        message_of(Command::DmaUnmap, DmaUnmap{.address = 0x1000, .size = 0x1000}),
        message_of(Command::DmaUnmap, DmaUnmap{.flags = kDmaUnmapAll}),
        message_of(Command::DeviceGetInfo, DeviceInfo{}),
        message_of(Command::DeviceGetRegionInfo, vfio_user::RegionInfo{.argsz = 4096}),
        message_of(Command::DeviceGetIrqInfo, IrqInfo{.index = 2}),
        message_of(Command::DeviceSetIrqs, IrqSet{.flags = kAssign, .index = 1, .count = 1}),
        message_of(Command::DeviceSetIrqs, IrqSet{.flags = kAssign, .index = 2, .count = 2}),
        message_of(Command::DeviceSetIrqs, IrqSet{.flags = kBools, .index = 2, .count = 2},
                   std::uint16_t{0x0101}),
        message_of(Command::RegionRead, RegionAccess{0, 7, 4096}),
        message_of(Command::RegionRead, RegionAccess{0x7dff0, 5, 0x1020}),
        message_of(Command::RegionWrite, RegionAccess{4, 7, 4}, ~0u),
        message_of(Command::RegionWrite, RegionAccess{0x48, 7, 4}, 0x8000u),
        message_of(Command::RegionWrite, RegionAccess{0x108, 7, 8}, ~0ull),
        message_of(Command::RegionWrite, RegionAccess{0x7e00c, 5, 8}, ~0ull),
        message_of(Command::DeviceReset),
        message_of(Command::RegionWriteMulti, WriteMulti{2}, SingleWrite{0x10, 7, 4, ~0u},
                   SingleWrite{0x210, 7, 8, 1}),
    };
}

std::vector<std::byte> input_of(unsigned choices, const Message& stream) {
    std::vector<std::byte> input{static_cast<std::byte>(choices)};
    append(input, stream);
    return input;
}

std::size_t open_fds() {
    std::size_t count = 0;
    DIR* folder = ::opendir("/proc/self/fd");
    while (::readdir(folder) != nullptr) count++;
    ::closedir(folder);
    return count;
}

/// Logs of thousands of hostile clients help nobody.
class PciReplay : public ::testing::Test {
protected:
    PciReplay() { spdlog::set_level(spdlog::level::off); }
    ~PciReplay() override { spdlog::set_level(spdlog::level::info); }
};

constexpr unsigned kAllChoices = 32;

TEST_F(PciReplay, EveryMessageInEverySurrounding) {
    const std::size_t before = open_fds();
    for (unsigned choices = 0; choices < kAllChoices; choices++)
        for (const Message& message : seeds()) {
            vfio_user::fuzz::serve_input(input_of(choices, message));
            Message twice = message;
            append(twice, message);
            vfio_user::fuzz::serve_input(input_of(choices, twice));
        }
    EXPECT_EQ(open_fds(), before);
}

TEST_F(PciReplay, EveryMessageCutAtEveryByte) {
    const std::size_t before = open_fds();
    for (const Message& message : seeds())
        for (std::size_t size = 0; size < message.size(); size++)
            vfio_user::fuzz::serve_input(
                input_of(0x1f, {message.begin(), message.begin() + std::ptrdiff_t(size)}));
    EXPECT_EQ(open_fds(), before);
}

TEST_F(PciReplay, MutatedStreams) {
    const std::size_t before = open_fds();
    std::mt19937 random(1);  // any seed will do, but always the same
    const auto all = seeds();
    for (int round = 0; round < 4000; round++) {
        Message stream;
        for (std::size_t i = 1 + random() % 4; i > 0; i--)
            append(stream, all[random() % all.size()]);
        for (std::size_t i = random() % 6; i > 0; i--)
            stream[random() % stream.size()] = static_cast<std::byte>(random());
        vfio_user::fuzz::serve_input(input_of(random() % kAllChoices, stream));
    }
    EXPECT_EQ(open_fds(), before);
}

}  // namespace
}  // namespace vgpu::softgpu::pci::test
