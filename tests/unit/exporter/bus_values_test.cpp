// SPDX-License-Identifier: MIT
#include "daemon/exporter/bus_values.h"

#include <gmock/gmock.h>

namespace vgpu::exporter {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(BusValues, HaveNoWidthsAndNamesOfMembersHaveADot) {
    const Dict agent{{"Connected", sdbus::Variant{true}},
                     {"ProcessList", sdbus::Variant{Words{"1 2"}}}};
    const Dict sent{{"Index", sdbus::Variant{std::uint32_t{3}}},
                    {"LagNs", sdbus::Variant{std::int64_t{-1}}},
                    {"ShareWindow", sdbus::Variant{0.5}},
                    {"Gpu", sdbus::Variant{sdbus::ObjectPath{"/org/vgpu1/gpu/gpu0"}}},
                    {"Agent", sdbus::Variant{agent}},
                    {"OfTomorrow", sdbus::Variant{std::uint8_t{1}}}};
    EXPECT_EQ(properties_of(sent), (Properties{{"Index", std::uint64_t{3}},
                                               {"LagNs", std::int64_t{-1}},
                                               {"ShareWindow", 0.5},
                                               {"Gpu", std::string("/org/vgpu1/gpu/gpu0")},
                                               {"Agent.Connected", true},
                                               {"Agent.ProcessList", Words{"1 2"}},
                                               {"OfTomorrow", std::string("?")}}));
}

TEST(BusValues, ColumnsBecomeRows) {
    const Dict columns{{"Index", sdbus::Variant{std::vector<std::uint32_t>{1, 2}}},
                       {"Attached", sdbus::Variant{std::vector<bool>{true, false}}},
                       {"Agent", sdbus::Variant{std::vector<Dict>{
                                     {{"Processes", sdbus::Variant{std::uint32_t{4}}}}, {}}}},
                       {"OfTomorrow", sdbus::Variant{std::vector<std::uint8_t>{1, 2}}}};
    EXPECT_THAT(rows_of(columns),
                ElementsAre(Properties{{"Index", std::uint64_t{1}},
                                       {"Attached", true},
                                       {"Agent.Processes", std::uint64_t{4}}},
                            Properties{{"Index", std::uint64_t{2}}, {"Attached", false}}));
    EXPECT_THAT(rows_of({{"Index", sdbus::Variant{std::vector<std::uint32_t>{}}}}), IsEmpty());
}

TEST(BusValues, WithoutAKnownValueAreLeftOut) {
    const Words unknown{"Faults"};
    EXPECT_EQ(properties_of(Dict{{"State", sdbus::Variant{std::string("ok")}},
                                 {"Faults", sdbus::Variant{std::uint64_t{UINT64_MAX}}},
                                 {"Unknown", sdbus::Variant{unknown}}}),
              (Properties{{"State", std::string("ok")}}));
    const Dict columns{{"Index", sdbus::Variant{std::vector<std::uint32_t>{1, 2}}},
                       {"Faults", sdbus::Variant{std::vector<std::uint64_t>{UINT64_MAX, 0}}},
                       {"Unknown", sdbus::Variant{std::vector<Words>{unknown, {}}}}};
    EXPECT_THAT(rows_of(columns),
                ElementsAre(Properties{{"Index", std::uint64_t{1}}},
                            Properties{{"Index", std::uint64_t{2}}, {"Faults", std::uint64_t{0}}}));
}

}  // namespace
}  // namespace vgpu::exporter
