// SPDX-License-Identifier: MIT
//
// DomainWatch against libvirt's own test driver, which keeps its domains in this process.
#include "daemon/libvirt/domain_watch.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace vgpu::libvirt {
namespace {

using std::chrono_literals::operator""ms;
using Json = nlohmann::json;

constexpr const char* kTest = "test:///default";
constexpr const char* kUuid = "4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10";

class Watch : public ::testing::Test {
protected:
    static constexpr int kReads = 500;

    [[nodiscard]] DomainWatch watch(const char* uri) {
        return DomainWatch(uri, [this](const std::string& line) {
            told.push_back(Json::parse(line, nullptr, false));
        });
    }
    /// The first line with this member, after as many turns as it takes.
    Json heard(DomainWatch& watch, const std::string& member) {
        const auto has = [&member](const Json& line) { return line.contains(member); };
        for (int i = 0; i < kReads && std::none_of(told.begin(), told.end(), has); ++i)
            watch.iterate(10ms);
        const auto at = std::find_if(told.begin(), told.end(), has);
        return at == told.end() ? Json() : at->at(member);
    }

    std::vector<Json> told;
};

/// The test driver's domains live as long as a connection to it.
class TestDriver {
public:
    TestDriver() : connection_(virConnectOpen(kTest)) {}
    ~TestDriver() { virConnectClose(connection_); }
    TestDriver(const TestDriver&) = delete;
    TestDriver& operator=(const TestDriver&) = delete;

    /// A transient one.
    virDomainPtr start(const std::string& name) {
        return virDomainCreateXML(connection_, xml_of(name).c_str(), 0);
    }
    virDomainPtr define(const std::string& name) {
        return virDomainDefineXML(connection_, xml_of(name).c_str());
    }

private:
    static std::string xml_of(const std::string& name) {
        return "<domain type='test'><name>" + name + "</name><uuid>" + kUuid +
               "</uuid><memory>8192</memory><os><type>hvm</type></os></domain>";
    }

    virConnectPtr connection_;
};

TEST_F(Watch, AllDomainsAreToldFirst) {
    DomainWatch watched = watch(kTest);
    const Json all = heard(watched, "domains");
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].at("name"), "test");
    EXPECT_EQ(all[0].at("active"), true);
    EXPECT_EQ(all[0].at("uuid").get<std::string>().size(), 36u);
    EXPECT_TRUE(watched.is_connected());
}

TEST_F(Watch, StartsAndEndsAreTold) {
    TestDriver driver;
    DomainWatch watched = watch(kTest);
    static_cast<void>(heard(watched, "domains"));
    virDomainPtr domain = driver.start("vm \"1\"");
    ASSERT_NE(domain, nullptr);
    const Json started = heard(watched, "domain");
    EXPECT_EQ(started.at("name"), "vm \"1\"");
    EXPECT_EQ(started.at("uuid"), kUuid);
    EXPECT_EQ(started.at("active"), true);
    told.clear();
    EXPECT_EQ(virDomainDestroy(domain), 0);
    virDomainFree(domain);
    EXPECT_EQ(heard(watched, "removed"), kUuid) << "a transient domain ends with its run";
}

TEST_F(Watch, ADefinedDomainThatStopsIsThereUntilItIsUndefined) {
    TestDriver driver;
    DomainWatch watched = watch(kTest);
    static_cast<void>(heard(watched, "domains"));
    virDomainPtr domain = driver.define("vm1");
    ASSERT_NE(domain, nullptr);
    EXPECT_EQ(heard(watched, "domain").at("active"), false);
    told.clear();
    EXPECT_EQ(virDomainCreate(domain), 0);
    EXPECT_EQ(heard(watched, "domain").at("active"), true);
    told.clear();
    EXPECT_EQ(virDomainDestroy(domain), 0);
    EXPECT_EQ(heard(watched, "domain").at("active"), false);
    told.clear();
    EXPECT_EQ(virDomainUndefine(domain), 0);
    virDomainFree(domain);
    EXPECT_EQ(heard(watched, "removed"), kUuid);
}

TEST_F(Watch, ARunningDomainThatIsUndefinedGoesWhenItEnds) {
    TestDriver driver;
    DomainWatch watched = watch(kTest);
    static_cast<void>(heard(watched, "domains"));
    virDomainPtr domain = driver.define("vm1");
    ASSERT_NE(domain, nullptr);
    EXPECT_EQ(virDomainCreate(domain), 0);
    EXPECT_EQ(virDomainUndefine(domain), 0);
    EXPECT_EQ(heard(watched, "domain").at("active"), true);
    told.clear();
    EXPECT_EQ(virDomainDestroy(domain), 0);
    virDomainFree(domain);
    EXPECT_EQ(heard(watched, "removed"), kUuid);
}

/// libvirt answers a query about no domain with an error, as it does after a time-out.
TEST_F(Watch, ADomainThatLibvirtDoesNotAnswerAboutIsNeitherOffNorGone) {
    DomainWatch watched = watch(kTest);
    static_cast<void>(heard(watched, "domains"));
    told.clear();
    watched.on_change(nullptr);
    EXPECT_TRUE(told.empty());
    EXPECT_TRUE(heard(watched, "lost").is_string());
    EXPECT_EQ(heard(watched, "domains").size(), 1u) << "all domains are told again";
    for (const Json& line : told)
        EXPECT_FALSE(line.contains("removed") || line.contains("domain")) << line;
}

TEST_F(Watch, ALibvirtThatIsNotThereIsNotifiedOnceAndTriedAgain) {
    DomainWatch watched = watch("qemu:///system?socket=/no/such/socket");
    const Json lost = heard(watched, "lost");
    EXPECT_NE(lost.get<std::string>().find("no connection to qemu:///system"), std::string::npos);
    const auto began = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - began < 2 * DomainWatch::kFirstDelay)
        watched.iterate(50ms);
    EXPECT_EQ(told.size(), 1u);
    EXPECT_FALSE(watched.is_connected());
}

}  // namespace
}  // namespace vgpu::libvirt
