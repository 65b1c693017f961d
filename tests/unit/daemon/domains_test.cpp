// SPDX-License-Identifier: MIT
//
// What libvirt's domains tell vgpud: the lines, and the process that prints them.
#include "daemon/service/owners/domains.h"

#include "daemon/adapters/domain_event_source.h"
#include "daemon/adapters/system_clock.h"
#include "tests/unit/daemon/fake_vm_sockets.h"
#include "tests/unit/daemon/world.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace vgpu::daemon {
namespace {

using ::testing::ElementsAre;
using testing::FakeVmSockets;
using ::testing::IsEmpty;
using testing::World;

const std::string kUuid = "4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10";
const std::string kOwner = "libvirt:" + kUuid;

std::string domain_json(const std::string& name, bool is_active, const std::string& uuid = kUuid) {
    return R"({"uuid": ")" + uuid + R"(", "name": ")" + name + R"(", "active": )" +
           (is_active ? "true" : "false") + "}";
}

std::string uuid_number(std::size_t number) {
    return fmt::format("00000000-0000-4000-8000-{:012x}", number);
}

class KnownDomains : public ::testing::Test {
protected:
    World world;
    FakeVmSockets sockets;
    Assignments assignments{*world.manager, sockets, world.clock};
    Domains domains{assignments};
};

TEST_F(KnownDomains, OwnersGetTheirDomainsNames) {
    domains.take(R"({"domains": [)" + domain_json("vm1", true) + "]}");
    EXPECT_EQ(assignments.domain_name_of(kOwner), "vm1");
    domains.take(R"({"domain": )" + domain_json("vm2", true) + "}");
    EXPECT_EQ(assignments.domain_name_of(kOwner), "vm2");
}

TEST_F(KnownDomains, AnOrphansReasonIsThatItIsShutOffOrNotThere) {
    EXPECT_EQ(domains.describe(kOwner), "") << "nobody has told anything";
    domains.take(R"({"domains": [)" + domain_json("vm1", true) + "]}");
    EXPECT_EQ(domains.describe(kOwner), "");
    domains.take(R"({"domain": )" + domain_json("vm1", false) + "}");
    EXPECT_EQ(domains.describe(kOwner), "domain 'vm1' is shut off");
    domains.take(R"({"removed": ")" + kUuid + "\"}");
    EXPECT_EQ(domains.describe(kOwner), "libvirt has no such domain");
    EXPECT_EQ(domains.describe("slurm:7"), "");
}

TEST_F(KnownDomains, WithoutLibvirtNothingIsSaidAndNamesStay) {
    domains.take(R"({"domains": [)" + domain_json("vm1", false) + "]}");
    domains.take(R"({"lost": "no connection"})");
    EXPECT_EQ(domains.describe(kOwner), "");
    EXPECT_EQ(assignments.domain_name_of(kOwner), "vm1");
}

TEST_F(KnownDomains, AThousandAndMoreKeepTheirNames) {
    constexpr std::size_t kCount = 1100;
    std::string all;
    for (std::size_t n = 0; n < kCount; ++n)
        all += (n == 0 ? "" : ", ") + domain_json(fmt::format("vm{}", n), false, uuid_number(n));
    domains.take(R"({"domains": [)" + all + "]}");
    for (std::size_t n = 0; n < kCount; ++n)
        EXPECT_EQ(assignments.domain_name_of("libvirt:" + uuid_number(n)), fmt::format("vm{}", n));
    EXPECT_EQ(domains.describe("libvirt:" + uuid_number(0)), "domain 'vm0' is shut off");
}

TEST_F(KnownDomains, ThoseThatCameAndWentDoNotHideTheNext) {
    domains.take(R"({"domains": []})");
    for (std::size_t n = 0; n < 2 * Domains::kMax; ++n) {
        domains.take(R"({"domain": )" + domain_json("brief", true, uuid_number(n)) + "}");
        domains.take(R"({"removed": ")" + uuid_number(n) + "\"}");
    }
    domains.take(R"({"domain": )" + domain_json("vm1", false) + "}");
    EXPECT_EQ(assignments.domain_name_of(kOwner), "vm1");
    EXPECT_EQ(domains.describe(kOwner), "domain 'vm1' is shut off");
}

TEST_F(KnownDomains, OneForWhichThereIsNoRoomIsNotSaidToBeMissing) {
    domains.take(R"({"domains": []})");
    EXPECT_EQ(domains.describe(kOwner), "libvirt has no such domain");
    for (std::size_t n = 0; n < Domains::kMax; ++n)
        domains.take(R"({"domain": )" + domain_json("vm", true, uuid_number(n)) + "}");
    domains.take(R"({"domain": )" + domain_json("vm1", true) + "}");
    EXPECT_EQ(domains.describe(kOwner), "");
}

TEST_F(KnownDomains, LinesThatAreNoneAreIgnored) {
    for (const char* line :
         {"", "x", "[]", "{", R"({"domains": 3})", R"({"domain": "vm1"})", R"({"removed": 7})",
          R"({"domains": [{"uuid": "x", "name": "y"}, 4]})", R"({"later": true})"})
        domains.take(line);
    EXPECT_EQ(assignments.domain_name_of("libvirt:x"), "");
}

// --- the process

class Feed : public ::testing::Test {
protected:
    /// Turns of a main loop until `condition`.
    template <typename Condition>
    void serve(adapters::DomainEventSource& feed, Condition condition) {
        for (int i = 0; i < 2000 && !condition(); ++i) {
            adapters::PollSet poll_set;
            feed.watch(poll_set);
            poll_set.wake_by(clock.now() + std::chrono::milliseconds(10));
            adapters::wait_for(poll_set, clock);
            feed.dispatch(poll_set);
            for (std::string& line : feed.take_lines()) lines.push_back(std::move(line));
            is_lost = feed.take_loss() || is_lost;
        }
        EXPECT_TRUE(condition());
    }

    adapters::SystemClock clock;
    std::vector<std::string> lines;
    bool is_lost = false;
};

TEST_F(Feed, LinesComeWholeAndTheEndIsNotified) {
    adapters::DomainEventSource feed({"/bin/sh", "-c", "echo one; printf tw; sleep 0.1; echo o"},
                                     clock);
    serve(feed, [this] { return is_lost; });
    EXPECT_THAT(lines, ElementsAre("one", "two"));
    EXPECT_FALSE(feed.is_running());
}

TEST_F(Feed, AProgramThatIsNotThereChangesNothing) {
    adapters::DomainEventSource feed({"/no/such/program"}, clock);
    adapters::PollSet poll_set;
    feed.watch(poll_set);
    feed.dispatch(poll_set);
    EXPECT_FALSE(feed.is_running());
    poll_set = {};
    feed.watch(poll_set);
    EXPECT_THAT(poll_set.fds, IsEmpty());
    ASSERT_TRUE(poll_set.wake_at);
    EXPECT_GT(*poll_set.wake_at, clock.now()) << "it is tried again, later";
    EXPECT_THAT(feed.take_problem(),
                ::testing::HasSubstr("cannot run '/no/such/program': No such"));
    EXPECT_EQ(feed.take_problem(), "") << "told once";
}

TEST_F(Feed, NothingIsStartedThatIsNotWanted) {
    adapters::DomainEventSource feed({}, clock);
    adapters::PollSet poll_set;
    feed.watch(poll_set);
    EXPECT_FALSE(poll_set.wake_at);
    EXPECT_THAT(poll_set.fds, IsEmpty());
}

TEST_F(Feed, ALineWithoutAnEndEndsTheChild) {
    adapters::DomainEventSource feed(
        {"/bin/sh", "-c", "head -c 4000000 /dev/zero | tr '\\0' x; sleep 60"}, clock);
    serve(feed, [this] { return is_lost; });
    EXPECT_THAT(lines, IsEmpty());
}

TEST_F(Feed, TheChildsInputStaysOpenAsLongAsItIsWanted) {
    adapters::DomainEventSource feed({"/bin/sh", "-c", "echo ready; cat; echo never"}, clock);
    serve(feed, [this] { return !lines.empty(); });
    EXPECT_TRUE(feed.is_running());
    EXPECT_THAT(lines, ElementsAre("ready"));
}

}  // namespace
}  // namespace vgpu::daemon
