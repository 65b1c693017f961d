// SPDX-License-Identifier: MIT
//
// Uevents: the format of the kernel's messages.
#include "daemon/backend/sriov/uevents.h"

#include <gmock/gmock.h>

namespace vgpu::daemon::sriov {
namespace {

using std::string_literals::operator""s;

TEST(Uevents, OfAPciFunctionAreRead) {
    const auto event = parse_uevent(
        "bind@/devices/pci0000:00/0000:00:02.0/0000:03:00.1\0ACTION=bind\0DEVPATH=/devices/pci0\0"
        "SUBSYSTEM=pci\0DRIVER=vfio-pci\0PCI_SLOT_NAME=0000:03:00.1\0SEQNUM=4711\0"s);
    ASSERT_TRUE(event);
    EXPECT_EQ(*event, (Uevent{.action = "bind", .address = "0000:03:00.1", .driver = "vfio-pci"}));
}

TEST(Uevents, OfOthersAndMalformedOnesAreLeftOut) {
    for (const std::string& message :
         {"add@/devices/virtual/net/tap0\0ACTION=add\0SUBSYSTEM=net\0"s,
          "add@/x\0ACTION=add\0SUBSYSTEM=pci\0"s, "libudev\0\xfe\xed\xca\xfe"s, ""s,
          "SUBSYSTEM=pci"s, std::string(5000, '\0')})
        EXPECT_FALSE(parse_uevent(message));
}

TEST(Uevents, OfAnotherDriverAreThoseOfTheFunctionItself) {
    const std::string pf = "0000:03:00.0";
    for (const char* action : {"bind", "unbind"}) {
        EXPECT_TRUE(changes_driver_of({.action = action, .address = pf, .driver = {}}, pf));
        EXPECT_FALSE(
            changes_driver_of({.action = action, .address = "0000:03:00.1", .driver = {}}, pf));
    }
    for (const char* action : {"add", "remove", "change"})
        EXPECT_FALSE(changes_driver_of({.action = action, .address = pf, .driver = {}}, pf));
}

TEST(Uevents, ASocketThatIsNotOpenHasNone) {
    UeventSocket socket;
    EXPECT_EQ(socket.fd(), -1);
    EXPECT_TRUE(socket.read().events.empty());
    const auto opened = socket.open();
    if (!opened) GTEST_SKIP() << "netlink is not allowed here: " << opened.error().cause;
    EXPECT_GE(socket.fd(), 0);
    EXPECT_FALSE(socket.read().has_lost);
}

}  // namespace
}  // namespace vgpu::daemon::sriov
