// SPDX-License-Identifier: MIT
//
// PlatformAssignment against both homes: a tree that looks like vgpu_pf.ko's sysfs, and sockets
// that are listened at as softgpu does.
#include "daemon/adapters/platform_assignment.h"

#include "daemon/adapters/listener.h"
#include "tests/support/stack/temp_dir.h"
#include "tests/support/unix_socket.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <filesystem>
#include <fstream>

namespace vgpu::daemon::adapters {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

// --- kernel

class AssignmentModeInTheKernel : public ::testing::Test {
protected:
    /// Any character device; this one has number 1:3.
    static constexpr const char* kDevice = "/dev/null";

    AssignmentModeInTheKernel() {
        fs::create_directories(fs::path(attribute).parent_path());
        write("[none] vfio-pci host\n");
    }
    void write(const std::string& text) const { std::ofstream(attribute) << text; }
    [[nodiscard]] std::string text() const {
        std::ifstream file(attribute);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    /// Writes to it fail with ENOSPC, reads never end.
    void make_unwilling() const {
        fs::remove(attribute);
        fs::create_symlink("/dev/full", attribute);
    }

    test::TempDir directory;
    std::string attribute =
        directory.file("sys/dev/char/1:3/device/sriov_admin/vf2/assignment_mode");
    PlatformAssignment platform{kDevice, "", directory.file("sys")};
};

TEST_F(AssignmentModeInTheKernel, IsReadFromAndWrittenToTheModulesSysfs) {
    EXPECT_EQ(platform.get(2), AssignmentMode::None);
    ASSERT_TRUE(platform.set(2, AssignmentMode::VfioPci, TakeFromHost::No));
    EXPECT_EQ(text(), "vfio-pci");
    write("none [vfio-pci] host\n");
    EXPECT_EQ(platform.get(2), AssignmentMode::VfioPci);
    ASSERT_TRUE(platform.set(2, AssignmentMode::Host, TakeFromHost::No));
    EXPECT_EQ(text(), "host");
    write("none vfio-pci [host]\n");
    ASSERT_TRUE(platform.set(2, AssignmentMode::Default, TakeFromHost::No));
    EXPECT_EQ(text(), "none");
}

TEST_F(AssignmentModeInTheKernel, ThatIsSoAlreadyIsNotWritten) {
    ASSERT_TRUE(platform.set(2, AssignmentMode::None, TakeFromHost::No));
    EXPECT_EQ(text(), "[none] vfio-pci host\n");
}

TEST_F(AssignmentModeInTheKernel, KnowsNoVfioUser) {
    const auto refused = platform.set(2, AssignmentMode::VfioUser, TakeFromHost::No);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::AssignmentRefused);
    EXPECT_EQ(
        refused.error().cause,
        "the PF core in the kernel (vgpu_pf.ko) does not support that assignment mode; it supports "
        "'none', 'vfio-pci', 'host'");
}

TEST_F(AssignmentModeInTheKernel, SaysWhereAWriteFailed) {
    make_unwilling();
    const auto refused = platform.set(2, AssignmentMode::Host, TakeFromHost::No);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().cause, "cannot write " + attribute + ": No space left on device");
    EXPECT_THAT(platform.get(2).error().cause, HasSubstr("names no known assignment mode"));
    EXPECT_THAT(platform.get(9).error().cause, HasSubstr("vf9/assignment_mode: No such file"));
}

// --- process

class AssignmentModeInAProcess : public ::testing::Test {
protected:
    void listen(std::uint32_t vf) {
        auto made = listen_at(socket_of(vf), 0600, 8);
        ASSERT_TRUE(made) << made.error().cause;
        listener = *std::move(made);
    }
    [[nodiscard]] std::string socket_of(std::uint32_t vf) const {
        return directory.file(fmt::format("vf{}.sock", vf));
    }
    /// 0, or why nobody can attach.
    [[nodiscard]] int attach(std::uint32_t vf) const {
        const UniqueFd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        return test::connect_unix(client.get(), socket_of(vf));
    }

    test::TempDir directory;
    UniqueFd listener;
    PlatformAssignment platform{directory.file("uapi.sock"), directory.path().string()};
};

TEST_F(AssignmentModeInAProcess, ToNobodyMeansThatNobodyCanAttach) {
    listen(1);
    EXPECT_EQ(platform.get(1), AssignmentMode::VfioUser);
    EXPECT_EQ(attach(1), 0);
    ASSERT_TRUE(platform.set(1, AssignmentMode::None, TakeFromHost::No));
    EXPECT_EQ(platform.get(1), AssignmentMode::None);
    EXPECT_EQ(attach(1), ENOENT);
    ASSERT_TRUE(platform.set(1, AssignmentMode::None, TakeFromHost::No)) << "it is so already";
    const fs::perms mode = fs::status(directory.file("withheld")).permissions();
    EXPECT_EQ(mode, fs::perms::owner_all);
    ASSERT_TRUE(platform.set(1, AssignmentMode::VfioUser, TakeFromHost::No));
    EXPECT_EQ(attach(1), 0);
    ASSERT_TRUE(platform.set(1, AssignmentMode::None, TakeFromHost::No));
    ASSERT_TRUE(platform.set(1, AssignmentMode::Default, TakeFromHost::No));
    EXPECT_EQ(attach(1), 0);
}

TEST_F(AssignmentModeInAProcess, OfADeviceThatWasStartedAnewIsSeenAndMadeAgain) {
    listen(1);
    ASSERT_TRUE(platform.set(1, AssignmentMode::None, TakeFromHost::No));
    listen(1);
    EXPECT_EQ(platform.get(1), AssignmentMode::VfioUser);
    ASSERT_TRUE(platform.set(1, AssignmentMode::None, TakeFromHost::No));
    EXPECT_EQ(attach(1), ENOENT);
}

TEST_F(AssignmentModeInAProcess, KnowsNoDriversOfTheHost) {
    for (const AssignmentMode assignment_mode : {AssignmentMode::VfioPci, AssignmentMode::Host}) {
        const auto refused = platform.set(1, assignment_mode, TakeFromHost::No);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().id, ErrorId::AssignmentRefused);
        EXPECT_EQ(
            refused.error().cause,
            "the PF core in a process (vgpu-pf) does not support that assignment mode; it supports "
            "'vfio-user', 'none'");
    }
}

TEST_F(AssignmentModeInAProcess, WhoseSocketsAreNotKnownCannotBeWithheld) {
    PlatformAssignment blind(directory.file("uapi.sock"), "");
    EXPECT_EQ(blind.get(1), AssignmentMode::VfioUser);
    const auto refused = blind.set(1, AssignmentMode::None, TakeFromHost::No);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::AssignmentRefused);
    EXPECT_THAT(refused.error().cause, HasSubstr("'vf_socket_dir'"));
    EXPECT_THAT(platform.set(7, AssignmentMode::None, TakeFromHost::No).error().cause,
                HasSubstr("cannot move"));
}

}  // namespace
}  // namespace vgpu::daemon::adapters
