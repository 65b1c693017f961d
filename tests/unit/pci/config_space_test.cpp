// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/pci/config_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "pf-driver/softgpu/pci/capabilities.h"

namespace vgpu::softgpu::pci::test {
namespace {

using ::testing::ElementsAre;

template <typename T> T read(const ConfigSpace& config, std::uint32_t offset) {
    T value{};
    config.read(offset, bytes_of(value));
    return value;
}
template <typename T> void write(ConfigSpace& config, std::uint32_t offset, T value) {
    config.write(offset, bytes_of(value));
}

TEST(PciConfigSpace, OnlyWritableBitsChange) {
    ConfigSpace config;
    config.add(0x10, {{0, 4, 0x12345678, 0x00ff00ff}});
    write(config, 0x10, ~0u);
    EXPECT_EQ(read<std::uint32_t>(config, 0x10), 0x12ff56ffu);
    write(config, 0x10, 0u);
    EXPECT_EQ(read<std::uint32_t>(config, 0x10), 0x12005600u);
}

TEST(PciConfigSpace, AnAbsentFunctionReadsAllOnesAndLosesWrites) {
    ConfigSpace config;
    bool is_absent = false;
    config.set_absence([&] { return is_absent; });
    config.add(0x10, {{0, 4, 0, ~0u}});
    write(config, 0x10, 0x12345678u);
    is_absent = true;
    EXPECT_EQ(read<std::uint32_t>(config, 0x10), ~0u);
    write(config, 0x10, 0u);
    is_absent = false;
    EXPECT_EQ(read<std::uint32_t>(config, 0x10), 0x12345678u);
}

TEST(PciConfigSpace, OnesClearStatusBits) {
    ConfigSpace config;
    config.add(0x06, {{0, 2, 0xf900, 0, 0xf900}});
    write(config, 0x06, std::uint16_t{0x8100});
    EXPECT_EQ(read<std::uint16_t>(config, 0x06), 0x7800);
    write(config, 0x06, std::uint16_t{0});
    EXPECT_EQ(read<std::uint16_t>(config, 0x06), 0x7800);
}

TEST(PciConfigSpace, PartialAccessesTouchTheirBytesOnly) {
    ConfigSpace config;
    config.add(0x1e, {{2, 4, 0, ~0u}});
    write(config, 0x20, 0x11223344u);
    write(config, 0x21, std::uint8_t{0xaa});
    EXPECT_EQ(read<std::uint32_t>(config, 0x20), 0x1122aa44u);
    EXPECT_EQ(read<std::uint16_t>(config, 0x21), 0x22aa);
}

/// Claims a range, counts in it and notes its writes.
std::shared_ptr<std::vector<std::string>> record(ConfigSpace& config, std::uint32_t first,
                                                 std::uint32_t count) {
    auto story = std::make_shared<std::vector<std::string>>();
    config.claim(
        first, count,
        [](std::uint32_t offset, std::span<std::byte> out) {
            for (std::byte& one : out) one = static_cast<std::byte>(0xc0 + offset++);
        },
        [story](std::uint32_t offset, std::span<const std::byte> data) {
            story->push_back(std::to_string(offset) + "+" + std::to_string(data.size()));
        });
    return story;
}

TEST(PciConfigSpace, HandlerGetsTheWholePartOfAnAccessInItsRange) {
    ConfigSpace config;
    const auto story = record(config, 0x100, 8);
    write(config, 0x104, 0u);
    write(config, 0x0fc, std::uint64_t{0});
    write(config, 0x106, 0u);
    write(config, 0x108, 0u);
    EXPECT_THAT(*story, ElementsAre("4+4", "0+4", "6+2"));
}

TEST(PciConfigSpace, ClaimedBytesAreReadFromTheHandler) {
    ConfigSpace config;
    record(config, 0x100, 4);
    config.set(0x100, ~0u);
    config.set(0x104, std::uint32_t{0x11111111});
    EXPECT_EQ(read<std::uint64_t>(config, 0x100), 0x11111111c3c2c1c0u);
    EXPECT_EQ(read<std::uint8_t>(config, 0x102), 0xc2);
}

TEST(PciConfigSpace, ObserverRunsAfterTheWriteThatTouchedIt) {
    ConfigSpace config;
    config.add(0x40, {{0, 4, 0, ~0u}});
    std::vector<std::uint32_t> seen;
    config.on_write(0x40, 4, [&] { seen.push_back(config.get<std::uint32_t>(0x40)); });
    write(config, 0x40, 5u);
    write(config, 0x43, std::uint8_t{1});
    write(config, 0x44, 7u);
    write(config, 0x3c, 7u);
    EXPECT_THAT(seen, ElementsAre(5u, 0x01000005u));
}

TEST(PciConfigSpace, ResetGoesBackToTheSealedState) {
    ConfigSpace config;
    config.add(0x10, {{0, 4, 0xc, ~0xfu}});
    config.seal();
    write(config, 0x10, ~0u);
    config.reset();
    EXPECT_EQ(read<std::uint32_t>(config, 0x10), 0xcu);
}

/// Bits that a function lets its driver change, found by writing ones and zeroes.
class PciConfigProperty : public ::testing::TestWithParam<FunctionSpec> {};

TEST_P(PciConfigProperty, RandomWritesNeverChangeReadOnlyBits) {
    ConfigSpace config;
    build_config(config, GetParam());
    std::array<std::byte, ConfigSpace::kBytes> fixed_ones{};
    std::array<std::byte, ConfigSpace::kBytes> fixed_zeroes{};
    const std::vector<std::byte> ones(ConfigSpace::kBytes, std::byte{0xff});
    const std::vector<std::byte> zeroes(ConfigSpace::kBytes);
    config.write(0, ones);
    config.read(0, fixed_zeroes);  // a bit that stays 0 is fixed to 0
    config.reset();
    config.write(0, zeroes);
    config.read(0, fixed_ones);  // a bit that stays 1 is fixed to 1
    config.reset();

    std::mt19937 random(20240229);  // any seed will do
    for (int i = 0; i < 20000; i++) {
        const std::size_t size = 1 + random() % 8;
        const auto offset = static_cast<std::uint32_t>(random() % (ConfigSpace::kBytes - size));
        std::vector<std::byte> data(size);
        for (std::byte& one : data) one = static_cast<std::byte>(random());
        config.write(offset, data);
    }
    std::array<std::byte, ConfigSpace::kBytes> now{};
    config.read(0, now);
    for (std::size_t i = 0; i < now.size(); i++) {
        ASSERT_EQ(now[i] & fixed_ones[i], fixed_ones[i]) << "offset " << i;
        ASSERT_EQ(now[i] | fixed_zeroes[i], fixed_zeroes[i]) << "offset " << i;
    }
}

TEST_P(PciConfigProperty, IdentityAndCapabilityHeadersAreReadOnly) {
    ConfigSpace config;
    build_config(config, GetParam());
    const std::vector<std::byte> ones(ConfigSpace::kBytes, std::byte{0xff});
    std::vector<std::byte> before(ConfigSpace::kBytes);
    std::vector<std::byte> after(ConfigSpace::kBytes);
    config.read(0, before);
    config.write(0, ones);
    config.read(0, after);
    for (const std::uint32_t offset : {0x00u, 0x08u, 0x2cu, 0x34u, 0x40u, 0x100u, 0x150u})
        EXPECT_EQ(load<std::uint16_t>(before, offset), load<std::uint16_t>(after, offset))
            << offset;
}

INSTANTIATE_TEST_SUITE_P(Functions, PciConfigProperty,
                         ::testing::Values(pf_function(64_MiB, 16, 16_MiB),
                                           vf_function(VfId{1}, 16_MiB)),
                         [](const auto& spec) { return spec.param.name; });

}  // namespace
}  // namespace vgpu::softgpu::pci::test
