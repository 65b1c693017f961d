// SPDX-License-Identifier: MIT
//
// Gpu.ReadTrace and vgpuctl trace, with vgpud as a program.
#include "tests/scenario/dbus/bus_fixture.h"

#include <gmock/gmock.h>
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <optional>

namespace vgpu::daemon {
namespace {

using testing::BusFixture;
using testing::FakePf;
using ::testing::HasSubstr;
using Dict = std::map<std::string, sdbus::Variant>;
using Bytes = std::vector<std::uint8_t>;

class Trace : public BusFixture {
protected:
    [[nodiscard]] Dict read(const Dict& options) const {
        const auto connection = connect();
        const auto gpu = sdbus::createProxy(*connection, "org.vgpu1", "/org/vgpu1/gpu/gpu0");
        gpu->finishRegistration();
        Dict piece;
        gpu->callMethod("ReadTrace")
            .onInterface("org.vgpu1.Gpu")
            .withArguments(options)
            .storeResultsTo(piece);
        return piece;
    }
    [[nodiscard]] std::string refusal(const Dict& options) const {
        try {
            static_cast<void>(read(options));
            return "";
        } catch (const sdbus::Error& error) {
            return error.getName();
        }
    }
    [[nodiscard]] std::string recording() const { return directory.file("gpu0.trace"); }
};

TEST_F(Trace, IsReadInPiecesThatTogetherAreTheWhole) {
    Dict first = read({});
    EXPECT_EQ(ctl({"create", "--name", "train", "--vram", "64M"}).status, 0);
    Dict second = read({{"after", first.at("next")}});
    Dict whole = read({});
    auto bytes = first.at("items").get<Bytes>();
    const auto more = second.at("items").get<Bytes>();
    bytes.insert(bytes.end(), more.begin(), more.end());
    const auto all = whole.at("items").get<Bytes>();
    ASSERT_GE(all.size(), bytes.size());
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), all.begin()));
    EXPECT_GT(more.size(), 0u);
    EXPECT_FALSE(second.at("late").get<bool>());
}

TEST_F(Trace, WhatNobodyCouldHaveReadIsRefused) {
    EXPECT_EQ(refusal({{"after", sdbus::Variant{std::uint64_t{1} << 40}}}),
              "org.vgpu1.Error.OutOfRange");
    EXPECT_EQ(refusal({{"after", sdbus::Variant{std::string("x")}}}), "org.vgpu1.Error.WrongType");
    EXPECT_EQ(refusal({{"before", sdbus::Variant{std::uint64_t{1}}}}),
              "org.vgpu1.Error.UnknownOption");
}

TEST_F(Trace, ARecordingReplaysToTheSameDecisions) {
    EXPECT_EQ(ctl({"create", "--name", "train", "--vram", "64M"}).status, 0);
    EXPECT_EQ(ctl({"create", "--name", "infer", "--vram", "64M", "--weight", "300"}).status, 0);
    const auto recorded = ctl({"trace", "record", recording(), "--seconds", "1"});
    EXPECT_EQ(recorded.status, 0) << recorded.out;
    const auto shown = ctl_json({"trace", "show", recording()});
    EXPECT_EQ(shown.at("gpu"), "gpu0");
    EXPECT_GE(shown.at("tables"), 1) << shown;
    const auto replayed = ctl({"trace", "replay", recording()});
    EXPECT_EQ(replayed.status, 0) << replayed.out;
    EXPECT_THAT(replayed.out, HasSubstr("decided as recorded"));
}

TEST_F(Trace, ARecordingGoesOnWithTheNextVgpud) {
    EXPECT_EQ(ctl({"create", "--name", "train", "--vram", "64M"}).status, 0);
    test::ChildProcess recorder(
        {"vgpuctl",
         {test::program("vgpuctl"), "--bus", address, "trace", "record", recording(), "--follow"},
         directory.file("record.log")});
    test::wait_for("a recording", test::milliseconds(20'000), [this] {
        std::error_code error;
        const auto bytes = std::filesystem::file_size(recording(), error);
        return !error && bytes > 0;
    });
    recorder.signal(SIGSTOP);
    vgpud->kill_now();
    start_daemon();
    recorder.signal(SIGCONT);
    recorder.wait_for_output("vgpud was restarted; the recording continues");
    recorder.signal(SIGINT);
    EXPECT_EQ(recorder.wait_exit(), 0) << recorder.output();
    EXPECT_EQ(ctl({"trace", "replay", recording()}).status, 0);
}

TEST_F(Trace, RecordingNeedsNoPrivilege) {
    const std::string file =
        "/tmp/" + std::filesystem::path(directory.file("x")).parent_path().filename().string() +
        ".trace";
    const auto recorded = ctl_as_nobody({"trace", "record", file});
    EXPECT_EQ(recorded.status, 0) << recorded.out;
    std::filesystem::remove(file);
}

}  // namespace
}  // namespace vgpu::daemon
