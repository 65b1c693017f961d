// SPDX-License-Identifier: MIT
#include "daemon/exporter/listen.h"

#include <gmock/gmock.h>

namespace vgpu::exporter {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(Listen, TakesAddressesOfBothKindsAndNamesThemAsTheyAreGiven) {
    for (const char* host : {"127.0.0.1:", "[::1]:"}) {
        const auto socket = listen_at(std::string(host) + "0");
        if (!socket && std::string(host).starts_with('[')) continue;  // a machine may have no IPv6
        ASSERT_TRUE(socket) << socket.error();
        EXPECT_THAT(address_of(socket->get()), StartsWith(host));
    }
}

TEST(Listen, RefusesWhatIsNoAddressWithAnExample) {
    for (const char* address :
         {"", ":", "9482", "127.0.0.1", "127.0.0.1:", ":9482", "localhost:1", "127.0.0.1:http",
          "127.0.0.1:65536", "127.0.0.1:-1", "[::1]", "[]:1", "[::1]1", "[127.0.0.1:1", "::1]:1"}) {
        const auto socket = listen_at(address);
        ASSERT_FALSE(socket) << address;
        EXPECT_THAT(socket.error(),
                    StartsWith("'" + std::string(address) + "' is not an address with a port"));
    }
}

TEST(Listen, NamesAnAddressThatIsTaken) {
    const auto first = listen_at("127.0.0.1:0");
    ASSERT_TRUE(first) << first.error();
    const std::string address = address_of(first->get());
    const auto second = listen_at(address);
    ASSERT_FALSE(second);
    EXPECT_THAT(second.error(), HasSubstr("cannot listen at " + address + ": Address already"));
}

TEST(Listen, WithoutSystemdNoSocketIsPassed) {
    const auto sockets = passed_sockets();
    ASSERT_TRUE(sockets) << sockets.error();
    EXPECT_THAT(*sockets, IsEmpty());
}

}  // namespace
}  // namespace vgpu::exporter
