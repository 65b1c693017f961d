// SPDX-License-Identifier: MIT
//
// What a host and its clients do to softgpu and vgpu-pf as processes: signals, removed sockets,
// attempts to fill logs, paths that no socket can have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "pf-driver/softgpu/base/bits.h"
#include "tests/scenario/gpu/guest.h"
#include "tests/support/deadline.h"

namespace vgpu::test {
namespace {

using softgpu::bytes_of;
using ::testing::HasSubstr;

std::size_t count_of(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
}

TEST(Processes, AClientThatFailsWithoutEndWritesALogWithinABound) {
    constexpr int kTimes = 200;
    GpuStack stack;
    stack.provision(1);
    const wire::Header broken{1, 9, 4, 0, 0};
    for (int i = 0; i < kTimes; ++i) {
        Connection connection(stack.vf_socket(1), Connection::Unnegotiated{});
        connection.send_raw(bytes_of(broken));
        EXPECT_TRUE(connection.closed_by_server(milliseconds(5000)));
    }
    const std::size_t told = count_of(stack.softgpu().output(), "VF1: client closed");
    EXPECT_GE(told, 3u) << "the first are told";
    EXPECT_LE(told, 40u);
}

TEST(Processes, SighupEndsNobody) {
    GpuStack stack;
    stack.softgpu().signal(SIGHUP);
    stack.pf_process().signal(SIGHUP);
    stack.pf_process().wait_for_output("SIGHUP ignored: there is no configuration");
    stack.provision(1);
    Guest guest(stack, 1);
    EXPECT_EQ(guest.run_all(), "");
    EXPECT_TRUE(stack.softgpu().is_running());
    EXPECT_TRUE(stack.pf_process().is_running());
}

TEST(Processes, RemovedSocketsAreThereAgain) {
    GpuStack stack;
    stack.provision(1);
    Guest guest(stack, 1);
    std::filesystem::remove(stack.dir().file("uapi.sock"));
    std::filesystem::remove(stack.vf_socket(2));
    stack.pf_process().wait_for_output("the socket of the uapi was removed; it was created again");
    stack.softgpu().wait_for_output("VF2: the socket " + stack.vf_socket(2) +
                                    " was removed; it was created again");
    EXPECT_EQ(stack.connect_pf().info().total_vfs, 4u);
    stack.provision(2);
    Guest second(stack, 2);
    EXPECT_EQ(second.run_all(), "");
    EXPECT_EQ(guest.run_all(), "") << "who was connected stays so";
}

TEST(Processes, AWrongDeviceIsNotifiedOnce) {
    GpuStack stack;
    stack.kill_softgpu();
    const auto softgpu = [&](const char* vfs, const char* log) {
        ChildProcess other({"softgpu",
                            {program("softgpu"), "--vfs", vfs, "--vram-mb=512", "--aperture-mb=64",
                             "--socket-dir=" + stack.dir().path().string(), "--control"},
                            stack.dir().file(log)});
        other.wait_for_output("softgpu: ready");
        return other;
    };
    {
        const ChildProcess wrong = softgpu("2", "wrong.log");
        stack.pf_process().wait_for_output("a different device answers than before");
        const std::string control = stack.dir().file("control.sock");
        const auto messages = [&control] {
            return control_request(control, {{"stats", nlohmann::json::object()}})
                .at("device")
                .at("messages")
                .get<std::uint64_t>();
        };
        const std::uint64_t before = messages();
        wait_for("more attempts", milliseconds(5000), [&] { return messages() > before + 30; });
    }
    EXPECT_EQ(count_of(stack.pf_process().output(), "a different device answers"), 1u);
}

TEST(Processes, PathsThatNoSocketCanHaveAreRefusedWithTheLimit) {
    const TempDir dir;
    const std::string longest = dir.file(std::string(107, 'x'));
    const auto softgpu = run({program("softgpu"), "--vram-mb=64", "--socket-dir=" + longest});
    EXPECT_EQ(softgpu.status, 1);
    EXPECT_THAT(softgpu.out, HasSubstr("bytes; 1 to 107 are possible"));
    const auto pf = run({program("vgpu-pf"), "--device", dir.file("pf.sock"), "--socket", longest});
    EXPECT_EQ(pf.status, 1);
    EXPECT_THAT(pf.out, HasSubstr("bytes; 1 to 107 are possible"));
}

}  // namespace
}  // namespace vgpu::test
