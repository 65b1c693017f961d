// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/vfio_user/fake_device.h"

namespace vgpu::softgpu::vfio_user::test {
namespace {

nlohmann::json capabilities_of(const Incoming& reply) {
    EXPECT_GT(reply.body.size(), sizeof(Version));
    EXPECT_EQ(reply.body.back(), std::byte{0});
    std::string text;
    for (std::size_t i = sizeof(Version); i + 1 < reply.body.size(); i++)
        text += static_cast<char>(reply.body[i]);
    return nlohmann::json::parse(text).at("capabilities");
}

TEST(VfioUserVersion, AnswersQemuWithWhatBothSidesHave) {
    Served served;
    TestClient client(served.path());
    const Bytes proposal = version_body(kQemuCapabilities);
    const Incoming reply = client.call(Command::Version, proposal);
    ASSERT_FALSE(reply.is_error());
    EXPECT_EQ(reply.as<Version>().major, 0);
    EXPECT_EQ(reply.as<Version>().minor, 0);
    const auto expected = nlohmann::json::parse(
        R"({"max_msg_fds":16,"max_data_xfer_size":1048576,"pgsizes":4096,
            "max_dma_maps":65535,"write_multiple":true})");
    EXPECT_EQ(capabilities_of(reply), expected);
}

TEST(VfioUserVersion, ReplyFitsIntoTheBufferOfTheProposal) {
    Served served;
    TestClient client(served.path());
    const Bytes proposal = version_body(kQemuCapabilities);
    EXPECT_LE(client.call(Command::Version, proposal).body.size(), proposal.size());
}

TEST(VfioUserVersion, OffersNothingTheClientDidNotName) {
    Served served;
    TestClient client(served.path());
    const auto reply = client.call(
        Command::Version, version_body(R"({"capabilities":{"max_msg_fds":2,"twin_socket":{}}})"));
    EXPECT_EQ(capabilities_of(reply), nlohmann::json::parse(R"({"max_msg_fds":2})"));
}

TEST(VfioUserVersion, CapabilitiesMayBeLeftOut) {
    Served served;
    TestClient client(served.path());
    const auto reply = client.call(Command::Version, as_bytes(Version{0, 3}));
    ASSERT_FALSE(reply.is_error());
    EXPECT_EQ(reply.body.size(), sizeof(Version));
    EXPECT_EQ(reply.as<Version>().minor, 0);
    client.sync();
}

TEST(VfioUserVersion, ClientMayTakeAPageAtATime) {
    Served served;
    TestClient client(served.path());
    const auto reply = client.call(Command::Version,
                                   version_body(R"({"capabilities":{"max_data_xfer_size":4096}})"));
    EXPECT_EQ(capabilities_of(reply), nlohmann::json::parse(R"({"max_data_xfer_size":4096})"));
}

TEST(VfioUserVersion, AnotherMajorIsRefusedAndClosed) {
    Served served;
    TestClient client(served.path());
    EXPECT_EQ(client.error_of(Command::Version, version_body("{}", 1)), EPROTONOSUPPORT);
    EXPECT_TRUE(client.is_closed_by_server());
    EXPECT_EQ(served.device.calls().attached, 0);
}

TEST(VfioUserVersion, MalformedProposalsAreRefusedAndClosed) {
    const Bytes head = as_bytes(Version{0, 0});
    const std::string deep = std::string(2000, '[');
    const std::vector<Bytes> proposals{
        as_bytes(std::uint16_t{0}),                   // too short
        join(head, as_bytes(std::uint16_t{0x7b7d})),  // no NUL
        version_body(""),                             // no JSON
        version_body("{"),                            // broken JSON
        version_body("[1]"),                          // no object
        version_body(deep),                           // nested without end
        version_body(R"({"capabilities":3})"),        // no object inside
        version_body(R"({"capabilities":{"max_msg_fds":"8"}})"),
        version_body(R"({"capabilities":{"max_data_xfer_size":-1}})"),
        version_body(R"({"capabilities":{"max_data_xfer_size":0}})"),
        version_body(R"({"capabilities":{"max_data_xfer_size":1}})"),
        version_body(R"({"capabilities":{"max_data_xfer_size":4095}})"),
        version_body(R"({"capabilities":{"pgsizes":8192}})"),
        version_body(R"({"capabilities":{"write_multiple":1}})"),
        version_body(std::string(5000, ' ')),  // more than anybody needs
    };
    Served served;
    for (std::size_t i = 0; i < proposals.size(); i++) {
        TestClient client(served.path());
        EXPECT_EQ(client.error_of(Command::Version, proposals[i]), EINVAL) << "proposal " << i;
        EXPECT_TRUE(client.is_closed_by_server());
    }
    EXPECT_EQ(served.device.calls().attached, 0);
    TestClient good = served.connect();
    good.sync();
}

TEST(VfioUserVersion, MustComeFirst) {
    Served served;
    TestClient client(served.path());
    EXPECT_EQ(client.error_of(Command::DeviceGetInfo, as_bytes(DeviceInfo{})), EPROTO);
    EXPECT_TRUE(client.is_closed_by_server());
}

TEST(VfioUserVersion, ComesOnce) {
    Served served;
    TestClient client = served.connect();
    EXPECT_EQ(client.error_of(Command::Version, version_body(kQemuCapabilities)), EINVAL);
    client.sync();
    EXPECT_EQ(served.device.calls().attached, 1);
}

TEST(VfioUserAttach, SecondClientIsNotifiedThatTheDeviceIsBusy) {
    Served served;
    TestClient first = served.connect();
    TestClient second(served.path());
    EXPECT_EQ(second.error_of(Command::Version, version_body(kQemuCapabilities)), EBUSY);
    EXPECT_TRUE(second.is_closed_by_server());
    first.sync();
    EXPECT_EQ(served.counters().refused_clients, 1u);
    EXPECT_EQ(served.device.calls().attached, 1);
}

TEST(VfioUserAttach, ASilentConnectionDoesNotKeepOthersOut) {
    Served served;
    std::vector<TestClient> silent;
    for (int i = 0; i < 20; i++) silent.emplace_back(served.path());
    TestClient client = served.connect();
    client.sync();
    EXPECT_EQ(served.device.calls().attached, 1);
}

TEST(VfioUserAttach, NextClientFollowsTheFirst) {
    Served served;
    TestClient first = served.connect();
    first.close();
    ASSERT_TRUE(served.device.wait_for([](const auto& calls) { return calls.detached == 1; }));
    TestClient second = served.connect();
    second.sync();
    EXPECT_EQ(served.device.calls().attached, 2);
}

TEST(VfioUserAttach, DeviceMayRefuseAClient) {
    Served served;
    served.device.attach_error = {EBUSY, "attached to the host view"};
    TestClient client(served.path());
    EXPECT_EQ(client.error_of(Command::Version, version_body(kQemuCapabilities)), EBUSY);
    EXPECT_TRUE(client.is_closed_by_server());
    EXPECT_EQ(served.device.calls().detached, 0);
}

TEST(VfioUserAttach, LeavingWithdrawsMemoryAndDetaches) {
    Served served;
    {
        TestClient client = served.connect();
        EXPECT_EQ(client.error_of(Command::DmaMap, as_bytes(DmaMap{.flags = 3, .size = 4096})), 0);
    }
    ASSERT_TRUE(served.device.wait_for([](const auto& calls) { return calls.detached == 1; }));
    EXPECT_EQ(served.device.calls().unmapped_all, 1);
}

}  // namespace
}  // namespace vgpu::softgpu::vfio_user::test
