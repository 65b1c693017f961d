// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <linux/pci_regs.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <nlohmann/json.hpp>

#include "pf-driver/softgpu/gpu_control.h"
#include "tests/unit/gpu/gpu_rig.h"

namespace vgpu::softgpu::test {
namespace {

using Json = nlohmann::json;

class ControlTest : public GpuRig {
protected:
    ControlTest() {
        std::atomic<bool> is_up{false};
        gpu->server().post([&] {
            control = *GpuControl::create(*gpu, directory + "/control.sock");
            is_up = true;
            is_up.notify_all();
        });
        is_up.wait(false);
    }
    ~ControlTest() override {
        std::atomic<bool> is_down{false};
        gpu->server().post([&] {
            control.reset();
            is_down = true;
            is_down.notify_all();
        });
        is_down.wait(false);
    }
    OwnedFd connected() const {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        (directory + "/control.sock").copy(address.sun_path, sizeof(address.sun_path));
        OwnedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const timeval limit{kLongest.count(), 0};
        setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        const auto* generic = static_cast<const sockaddr*>(static_cast<const void*>(&address));
        EXPECT_EQ(connect(fd.get(), generic, sizeof(address)), 0);
        return fd;
    }
    static std::string line_of(int fd) {
        std::string line;
        char byte = 0;
        while (recv(fd, &byte, 1, 0) == 1 && byte != '\n') line += byte;
        return line;
    }
    static Json ask(int fd, const std::string& line) {
        EXPECT_EQ(send(fd, (line + "\n").data(), line.size() + 1, MSG_NOSIGNAL),
                  static_cast<ssize_t>(line.size() + 1));
        return Json::parse(line_of(fd));
    }

    std::unique_ptr<GpuControl> control;
};

TEST_F(ControlTest, PlansFaults) {
    const OwnedFd fd = connected();
    EXPECT_EQ(ask(fd.get(), R"({"inject":{"vf":3,"point":"idle","effect":"lost","count":2}})"),
              Json({{"ok", true}}));
    EXPECT_TRUE(gpu->faults().take(VfId{3}, iov::FaultPoint::Idle));
    EXPECT_EQ(ask(fd.get(), R"({"clear":{}})"), Json({{"ok", true}}));
    EXPECT_FALSE(gpu->faults().take(VfId{3}, iov::FaultPoint::Idle));
}

TEST_F(ControlTest, ALostDeviceAnswersNobodyUntilThePlanIsCleared) {
    const OwnedFd fd = connected();
    const auto driver = pf();
    ASSERT_EQ(driver->reg(REG_VGPU_ID), VGPU_ID_MAGIC);
    EXPECT_EQ(ask(fd.get(), R"({"inject":{"point":"device","effect":"lost"}})"),
              Json({{"ok", true}}));
    EXPECT_EQ(driver->config<std::uint32_t>(PCI_VENDOR_ID), ~0u);
    EXPECT_EQ(driver->reg(REG_VGPU_ID), ~0u);
    EXPECT_EQ(ask(fd.get(), R"({"clear":{}})"), Json({{"ok", true}}));
    EXPECT_EQ(driver->config<std::uint16_t>(PCI_VENDOR_ID), VGPU_PCI_VENDOR_ATI);
    EXPECT_EQ(driver->reg(REG_VGPU_ID), ~0u) << "reset: BARs do not decode yet";
    driver->set_config(PCI_COMMAND, std::uint16_t{PCI_COMMAND_MEMORY});
    EXPECT_EQ(driver->reg(REG_VGPU_ID), VGPU_ID_MAGIC);
}

TEST_F(ControlTest, ShowsCountersOfTheDeviceAndEveryVf) {
    const OwnedFd fd = connected();
    const auto guest = vf(2);
    guest->ring(0x1000, 1);  // its gate is shut
    const Json stats = ask(fd.get(), R"({"stats":{}})");
    EXPECT_EQ(stats["vfs"].size(), 4u);
    EXPECT_EQ(stats["vfs"][1]["vf"], 2);
    EXPECT_EQ(stats["vfs"][1]["attached"], true);
    EXPECT_EQ(stats["vfs"][1]["doorbells_dropped"], 1);
    EXPECT_EQ(stats["vfs"][1]["bad_accesses"], 1);
    EXPECT_EQ(stats["device"]["world_switch"], "Empty");
}

TEST_F(ControlTest, EveryMistakeIsAnsweredWithWhatIsWrong) {
    const OwnedFd fd = connected();
    for (const char* line : {"", "nonsense", "[]", "{}", "7", R"({"inject":7})", R"({"inject":{}})",
                             R"({"inject":{"vf":5,"point":"idle","effect":"lost"}})",
                             R"({"inject":{"point":"idle","effect":"lost"}})",
                             R"({"inject":{"vf":-1,"point":"idle","effect":"lost"}})",
                             R"({"inject":{"vf":1,"point":"core","effect":"lost"}})",
                             R"({"inject":{"vf":1,"point":"idle","effect":"odd"}})",
                             R"({"inject":{"vf":1,"point":"sdma","effect":"late"}})",
                             R"({"inject":{"vf":1,"point":"idle","effect":"lost","count":0}})",
                             R"({"inject":{"vf":1,"point":4,"effect":"lost"}})",
                             R"({"stats":{},"clear":{}})", R"({"reboot":{}})"})
        EXPECT_TRUE(ask(fd.get(), line).contains("error")) << line;
}

TEST_F(ControlTest, AnEndlessLineClosesItsClientAlone) {
    const OwnedFd bad = connected();
    const OwnedFd good = connected();
    const std::string endless(GpuControl::kMaxLineBytes * 3, 'x');
    (void)send(bad.get(), endless.data(), endless.size(), MSG_NOSIGNAL);
    char byte = 0;
    EXPECT_LE(recv(bad.get(), &byte, 1, 0), 0);
    EXPECT_TRUE(ask(good.get(), R"({"clear":{}})").contains("ok"));
}

TEST_F(ControlTest, ClientsBeyondTheLimitAreClosed) {
    std::vector<OwnedFd> clients;
    for (std::size_t i = 0; i < GpuControl::kMaxClients; ++i) {
        clients.push_back(connected());
        EXPECT_TRUE(ask(clients.back().get(), R"({"clear":{}})").contains("ok"));
    }
    const OwnedFd one_more = connected();
    char byte = 0;
    EXPECT_EQ(recv(one_more.get(), &byte, 1, 0), 0);
}

}  // namespace
}  // namespace vgpu::softgpu::test
