// SPDX-License-Identifier: MIT
//
// HomeHandover against both homes: a tree that looks like vgpu_pf.ko's sysfs, and sockets that are
// listened at as softgpu does.
#include "daemon/adapters/home_handover.h"

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

class HandoverInTheKernel : public ::testing::Test {
protected:
    /// Any character device; this one has number 1:3.
    static constexpr const char* kDevice = "/dev/null";

    HandoverInTheKernel() {
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
    std::string attribute = directory.file("sys/dev/char/1:3/device/sriov_admin/vf2/handover");
    HomeHandover home{kDevice, "", directory.file("sys")};
};

TEST_F(HandoverInTheKernel, IsReadFromAndWrittenToTheModulesSysfs) {
    EXPECT_EQ(home.get(2), Handover::None);
    ASSERT_TRUE(home.set(2, Handover::VfioPci));
    EXPECT_EQ(text(), "vfio-pci");
    write("none [vfio-pci] host\n");
    EXPECT_EQ(home.get(2), Handover::VfioPci);
    ASSERT_TRUE(home.set(2, Handover::Host));
    EXPECT_EQ(text(), "host");
    write("none vfio-pci [host]\n");
    ASSERT_TRUE(home.set(2, Handover::Default));
    EXPECT_EQ(text(), "none");
}

TEST_F(HandoverInTheKernel, ThatIsSoAlreadyIsNotWritten) {
    ASSERT_TRUE(home.set(2, Handover::None));
    EXPECT_EQ(text(), "[none] vfio-pci host\n");
}

TEST_F(HandoverInTheKernel, KnowsNoVfioUser) {
    const auto refused = home.set(2, Handover::VfioUser);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::HandoverRefused);
    EXPECT_EQ(refused.error().cause,
              "the PF core in the kernel (vgpu_pf.ko) does not support that handover; it supports "
              "'none', 'vfio-pci', 'host'");
}

TEST_F(HandoverInTheKernel, SaysWhereAWriteFailed) {
    make_unwilling();
    const auto refused = home.set(2, Handover::Host);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().cause, "cannot write " + attribute + ": No space left on device");
    EXPECT_THAT(home.get(2).error().cause, HasSubstr("names no known handover"));
    EXPECT_THAT(home.get(9).error().cause, HasSubstr("vf9/handover: No such file"));
}

// --- process

class HandoverInAProcess : public ::testing::Test {
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
    HomeHandover home{directory.file("uapi.sock"), directory.path().string()};
};

TEST_F(HandoverInAProcess, ToNobodyMeansThatNobodyCanAttach) {
    listen(1);
    EXPECT_EQ(home.get(1), Handover::VfioUser);
    EXPECT_EQ(attach(1), 0);
    ASSERT_TRUE(home.set(1, Handover::None));
    EXPECT_EQ(home.get(1), Handover::None);
    EXPECT_EQ(attach(1), ENOENT);
    ASSERT_TRUE(home.set(1, Handover::None)) << "it is so already";
    const fs::perms mode = fs::status(directory.file("withheld")).permissions();
    EXPECT_EQ(mode, fs::perms::owner_all);
    ASSERT_TRUE(home.set(1, Handover::VfioUser));
    EXPECT_EQ(attach(1), 0);
    ASSERT_TRUE(home.set(1, Handover::None));
    ASSERT_TRUE(home.set(1, Handover::Default));
    EXPECT_EQ(attach(1), 0);
}

TEST_F(HandoverInAProcess, OfADeviceThatWasStartedAnewIsSeenAndMadeAgain) {
    listen(1);
    ASSERT_TRUE(home.set(1, Handover::None));
    listen(1);
    EXPECT_EQ(home.get(1), Handover::VfioUser);
    ASSERT_TRUE(home.set(1, Handover::None));
    EXPECT_EQ(attach(1), ENOENT);
}

TEST_F(HandoverInAProcess, KnowsNoDriversOfTheHost) {
    for (const Handover handover : {Handover::VfioPci, Handover::Host}) {
        const auto refused = home.set(1, handover);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().id, ErrorId::HandoverRefused);
        EXPECT_EQ(refused.error().cause,
                  "the PF core in a process (vgpu-pf) does not support that handover; it supports "
                  "'vfio-user', 'none'");
    }
}

TEST_F(HandoverInAProcess, WhoseSocketsAreNotKnownCannotBeWithheld) {
    HomeHandover blind(directory.file("uapi.sock"), "");
    EXPECT_EQ(blind.get(1), Handover::VfioUser);
    const auto refused = blind.set(1, Handover::None);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::HandoverRefused);
    EXPECT_THAT(refused.error().cause, HasSubstr("'vf_socket_dir'"));
    EXPECT_THAT(home.set(7, Handover::None).error().cause, HasSubstr("cannot move"));
}

}  // namespace
}  // namespace vgpu::daemon::adapters
