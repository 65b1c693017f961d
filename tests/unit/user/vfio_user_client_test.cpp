// SPDX-License-Identifier: MIT
//
// vgpu-pf's vfio-user client against a device that breaks the protocol's time limits.
#include "pf-driver/user/vfio_user_client.h"
#include "tests/support/unique_fd.h"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

namespace vgpu::test {
namespace {

using std::chrono::milliseconds;

/// Waits for the first request and answers it by the text `answer`, a byte each `interval`, until
/// the client closes the connection. An empty answer: zeroes without an end.
class SlowDevice {
public:
    explicit SlowDevice(milliseconds interval, std::string answer = "")
        : interval_(interval), answer_(std::move(answer)) {
        sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
        path().copy(address.sun_path, sizeof(address.sun_path) - 1);
        EXPECT_EQ(::bind(listener_.get(), static_cast<sockaddr*>(static_cast<void*>(&address)),
                         sizeof(address)),
                  0);
        EXPECT_EQ(::listen(listener_.get(), 1), 0);
        thread_ = std::thread([this] { serve(); });
    }
    ~SlowDevice() {
        thread_.join();
        std::filesystem::remove_all(directory_);
    }
    [[nodiscard]] std::string path() const { return directory_ + "/device"; }
    /// Bytes sent so far.
    [[nodiscard]] int sent() const { return sent_; }

private:
    void serve() {
        const UniqueFd client(::accept(listener_.get(), nullptr, nullptr));
        char first = 0;
        if (::recv(client.get(), &first, 1, 0) != 1) return;
        const std::string zero(1, '\0');
        for (std::size_t i = 0; answer_.empty() || i < answer_.size(); ++i) {
            const char* byte = answer_.empty() ? zero.data() : answer_.data() + i;
            if (::send(client.get(), byte, 1, MSG_NOSIGNAL) != 1) return;
            ++sent_;
            std::this_thread::sleep_for(interval_);
        }
    }

    milliseconds interval_;
    std::string answer_;
    std::string directory_ = ::mkdtemp(std::string("/tmp/vgpu-client-XXXXXX").data());
    std::atomic<int> sent_ = 0;
    UniqueFd listener_{::socket(AF_UNIX, SOCK_STREAM, 0)};
    std::thread thread_;
};

TEST(VfioUserClient, AReplyThatComesByteByByteEndsTheConnectionInTime) {
    constexpr int kHeaderBytes = 16;
    SlowDevice device(milliseconds(200));
    vfio_user_client client{};
    vgpu_user_client_init(&client);
    client.timeout_ms = 500;
    EXPECT_EQ(vgpu_user_client_connect(&client, device.path().c_str()), -ENODEV);
    EXPECT_LT(device.sent(), kHeaderBytes);
    EXPECT_FALSE(vgpu_user_client_is_connected(&client));
}

TEST(VfioUserClient, ADeviceThatDoesNotAnswerEndsTheConnectionInTime) {
    SlowDevice device(milliseconds(400));
    vfio_user_client client{};
    vgpu_user_client_init(&client);
    client.timeout_ms = 100;
    EXPECT_EQ(vgpu_user_client_connect(&client, device.path().c_str()), -ENODEV);
    EXPECT_FALSE(vgpu_user_client_is_connected(&client));
}

TEST(VfioUserClient, AnErrorOfTheDeviceIsNotTakenForALostConnection) {
    // id 1, COMMAND_VERSION, 16 bytes, a reply with an error, ENODEV
    const std::string answer("\x01\0\x01\0\x10\0\0\0\x21\0\0\0\x13\0\0\0", 16);
    SlowDevice device(milliseconds(0), answer);
    vfio_user_client client{};
    vgpu_user_client_init(&client);
    EXPECT_EQ(vgpu_user_client_connect(&client, device.path().c_str()), -EIO);
}

}  // namespace
}  // namespace vgpu::test
