// SPDX-License-Identifier: MIT
//
// The socket of the uapi server, when its directory vanishes.
#include "pf-driver/user/uapi_server.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>

#include "tests/support/stack/temp_dir.h"

namespace vgpu::test {
namespace {

class UapiListen : public ::testing::Test {
protected:
    UapiListen() { EXPECT_EQ(vgpu_user_server_init(server.get(), nullptr), 0); }
    ~UapiListen() override { vgpu_user_server_fini(server.get()); }
    std::uint32_t polled() {
        std::array<pollfd, UAPI_POLL_FDS> fds{};
        return vgpu_user_server_poll_fds(server.get(), fds.data());
    }

    TempDir directory;
    std::string folder = directory.file("sockets");
    std::string path = folder + "/uapi.sock";
    std::unique_ptr<uapi_server> server = std::make_unique<uapi_server>();
};

TEST_F(UapiListen, ASocketThatCannotBeBoundAgainIsNotPolled) {
    std::filesystem::create_directory(folder);
    ASSERT_EQ(vgpu_user_server_listen(server.get(), path.c_str()), 0);
    EXPECT_EQ(polled(), 1u);
    std::filesystem::remove_all(folder);
    EXPECT_EQ(vgpu_user_server_listen_again(server.get()), -ENOENT);
    EXPECT_EQ(polled(), 0u) << "poll() would report it without end";
    std::filesystem::create_directory(folder);
    EXPECT_EQ(vgpu_user_server_listen_again(server.get()), 1);
    EXPECT_EQ(polled(), 1u);
}

}  // namespace
}  // namespace vgpu::test
