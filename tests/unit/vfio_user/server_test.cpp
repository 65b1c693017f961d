// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "tests/unit/vfio_user/fake_device.h"

namespace vgpu::softgpu::vfio_user::test {
namespace {

std::unique_ptr<Server> new_server() {
    auto server = Server::create();
    EXPECT_TRUE(server.has_value());
    return std::move(*server);
}

/// What a killed server leaves behind: a name nobody answers at.
void leave_stale_socket(const std::string& path) {
    const OwnedFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    const void* generic = &address;
    ASSERT_EQ(::bind(socket.get(), static_cast<const sockaddr*>(generic), sizeof(address)), 0);
}

TEST(VfioUserServer, SocketIsForItsOwnerOnly) {
    const mode_t before = ::umask(0);
    const Served served;
    ::umask(before);
    struct stat status {};
    ASSERT_EQ(::stat(served.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0600u);
    EXPECT_TRUE(S_ISSOCK(status.st_mode));
}

TEST(VfioUserServer, StaleSocketIsReplaced) {
    const SocketFolder folder;
    FakeDevice device;
    leave_stale_socket(folder.path("a"));
    const auto server = new_server();
    const auto listening = server->listen(folder.path("a"), device);
    EXPECT_TRUE(listening.has_value()) << listening.error().message;
}

TEST(VfioUserServer, SocketThatAnswersIsLeftAlone) {
    const SocketFolder folder;
    FakeDevice device;
    const auto first = new_server();
    ASSERT_TRUE(first->listen(folder.path("a"), device).has_value());
    const auto second = new_server();
    const auto refused = second->listen(folder.path("a"), device);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, EADDRINUSE);
}

TEST(VfioUserServer, OtherFilesAreLeftAlone) {
    const SocketFolder folder;
    FakeDevice device;
    std::ofstream(folder.path("a")) << "precious";
    const auto refused = new_server()->listen(folder.path("a"), device);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, EEXIST);
    EXPECT_TRUE(std::filesystem::is_regular_file(folder.path("a")));
}

TEST(VfioUserServer, PathsThatCannotBeSocketsAreRefused) {
    const SocketFolder folder;
    FakeDevice device;
    const auto server = new_server();
    const Error too_long = server->listen(folder.path(std::string(120, 'x')), device).error();
    EXPECT_EQ(too_long.code, ENAMETOOLONG);
    EXPECT_NE(too_long.message.find("1 to 107 are possible"), std::string::npos);
    EXPECT_EQ(server->listen("", device).error().code, ENAMETOOLONG);
    EXPECT_EQ(server->listen(folder.path("missing/a"), device).error().code, ENOENT);
}

TEST(VfioUserServer, LeavesNoSocketBehind) {
    const SocketFolder folder;
    FakeDevice device;
    ASSERT_TRUE(new_server()->listen(folder.path("a"), device).has_value());
    EXPECT_FALSE(std::filesystem::exists(folder.path("a")));
}

TEST(VfioUserServer, DoesNotRemoveItsSuccessorsSocket) {
    const SocketFolder folder;
    FakeDevice device;
    auto first = new_server();
    ASSERT_TRUE(first->listen(folder.path("a"), device).has_value());
    std::filesystem::remove(folder.path("a"));
    const auto second = new_server();
    ASSERT_TRUE(second->listen(folder.path("a"), device).has_value());
    first.reset();
    EXPECT_TRUE(std::filesystem::exists(folder.path("a")));
}

TEST(VfioUserServer, ARemovedSocketIsThereAgainAndItsClientStays) {
    Served served;
    TestClient first = served.connect();
    std::filesystem::remove(served.path());
    first.close();
    ASSERT_TRUE(served.device.wait_for([](const auto& calls) { return calls.detached == 1; }));
    // the loop has had a turn since the removal
    served.connect().sync();
}

bool appears(const std::filesystem::path& path) {
    for (int i = 0; i < 1000 && !std::filesystem::exists(path); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return std::filesystem::exists(path);
}

TEST(VfioUserServer, ASocketThatWasMovedAwayStaysAwayUntilItIsMovedBack) {
    Served served;
    const std::filesystem::path moved = served.path() + ".moved";
    TestClient first = served.connect();
    std::filesystem::rename(served.path(), moved);
    std::filesystem::remove(served.other_path());  // another event of the directory
    first.close();
    ASSERT_TRUE(served.device.wait_for([](const auto& calls) { return calls.detached == 1; }));
    ASSERT_TRUE(appears(served.other_path()));
    EXPECT_FALSE(std::filesystem::exists(served.path()));
    std::filesystem::rename(moved, served.path());
    served.connect().sync();
    std::filesystem::remove(served.path());
    ASSERT_TRUE(appears(served.path()));
    served.connect().sync();
}

TEST(VfioUserServer, AClientThatReadsNothingIsHungUpAndTheNextIsServed) {
    Served served;
    TestClient frozen = served.connect(), other(served.other_path());
    other.negotiate();
    const TestClient waiting(served.path());
    // replies that nobody reads, until they wait in the server
    const std::uint32_t max = kMaxTransfer;
    for (int i = 0; i < 4; ++i)
        frozen.send(Command::RegionRead, as_bytes(RegionAccess{0, FakeDevice::kMemory, max}));
    served.server->hang_up(served.device);
    EXPECT_TRUE(served.device.wait_for([](const auto& calls) { return calls.detached == 1; }));
    served.connect().sync();
    other.sync();
}

TEST(VfioUserServer, AClientThatReadsNothingAndShutsDownIsDropped) {
    Served served;
    TestClient frozen = served.connect(), other(served.other_path());
    other.negotiate();
    const Bytes body = as_bytes(RegionAccess{0, FakeDevice::kMemory, kMaxTransfer});
    const Bytes first = frozen.message(Command::RegionRead, body);
    ASSERT_TRUE(frozen.send_raw(join(first, frozen.message(Command::RegionRead, body))));
    other.sync();  // the first reply waits in the server, and the second request behind it
    ASSERT_EQ(::shutdown(frozen.fd(), SHUT_RDWR), 0);
    EXPECT_TRUE(served.device.wait_for([](const auto& calls) { return calls.detached == 1; }));
}

TEST(VfioUserServer, TheClientsProcessIsNotedWhileItIsAttached) {
    Served served;
    const auto note = std::filesystem::path(served.path()).replace_extension(".client");
    TestClient client = served.connect();
    std::ifstream file(note);
    int pid = 0;
    file >> pid;
    EXPECT_EQ(pid, ::getpid());
    client.close();
    ASSERT_TRUE(served.device.wait_for([](const auto& calls) { return calls.detached == 1; }));
    served.connect().close();
}

TEST(VfioUserServer, DetachesItsClientsAtTheEnd) {
    FakeDevice device;
    const SocketFolder folder;
    auto server = new_server();
    ASSERT_TRUE(server->listen(folder.path("a"), device).has_value());
    std::thread io([&] { server->run(); });
    TestClient client(folder.path("a"));
    client.negotiate();
    server->stop();
    io.join();
    EXPECT_EQ(device.calls().detached, 0);
    server.reset();
    EXPECT_EQ(device.calls().detached, 1);
    EXPECT_TRUE(client.is_closed_by_server());
}

TEST(VfioUserServer, PostedWorkRunsInOrderOnTheIoThread) {
    Served served;
    std::vector<int> order;
    std::promise<std::thread::id> done;
    for (int i = 0; i < 100; i++) served.server->post([&order, i] { order.push_back(i); });
    served.server->post([&] { done.set_value(std::this_thread::get_id()); });
    EXPECT_EQ(done.get_future().get(), served.thread.get_id());
    ASSERT_EQ(order.size(), 100u);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(VfioUserServer, StopBeforeRunIsNotLost) {
    const auto server = new_server();
    server->stop();
    server->run();
}

TEST(VfioUserServer, WatchedDescriptorsAreServedUntilUnwatched) {
    Served served;
    const OwnedFd event = new_eventfd();
    std::promise<void> seen;
    served.server->post([&] {
        const auto watching = served.server->watch(event.get(), [&] {
            EXPECT_EQ(signals(event.get()), 1u);
            served.server->unwatch(event.get());
            seen.set_value();
        });
        EXPECT_TRUE(watching.has_value());
    });
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(event.get(), &one, sizeof(one)), ssize_t{sizeof(one)});
    seen.get_future().wait();
}

TEST(VfioUserServer, ManyDevicesAreServedByOneThread) {
    constexpr std::size_t kDevices = 17;
    const SocketFolder folder;
    std::vector<std::unique_ptr<FakeDevice>> devices;
    const auto server = new_server();
    for (std::size_t i = 0; i < kDevices; i++) {
        devices.push_back(std::make_unique<FakeDevice>());
        ASSERT_TRUE(server->listen(folder.path(std::to_string(i)), *devices[i]).has_value());
    }
    std::thread io([&] { server->run(); });
    std::vector<TestClient> clients;
    for (std::size_t i = 0; i < kDevices; i++) {
        clients.emplace_back(folder.path(std::to_string(i)));
        clients[i].negotiate();
    }
    for (std::uint32_t round = 0; round < 20; round++)
        for (std::uint32_t i = 0; i < kDevices; i++)
            clients[i].post_write(FakeDevice::kSmall, 0, as_bytes(i * 1000 + round));
    for (std::uint32_t i = 0; i < kDevices; i++) {
        const auto reply = clients[i].read_region(FakeDevice::kSmall, 0, 4);
        EXPECT_EQ(load<std::uint32_t>(reply.body, sizeof(RegionAccess)), i * 1000 + 19);
    }
    server->stop();
    io.join();
}

}  // namespace
}  // namespace vgpu::softgpu::vfio_user::test
