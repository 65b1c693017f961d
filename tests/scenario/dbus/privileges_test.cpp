// SPDX-License-Identifier: MIT
//
// Which method requires which privilege: calls every method of the XML while polkit says no.
#include "tests/scenario/dbus/bus_fixture.h"
#include "tests/scenario/dbus/fake_authority.h"
#include "tests/scenario/dbus/method_table.h"

#include <gmock/gmock.h>
#include <algorithm>

namespace vgpu::daemon {
namespace {

using testing::BusFixture;
using ::testing::ElementsAre;
using testing::FakeAuthority;
using testing::FakePf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Method;
using testing::Right;
using ::testing::UnorderedElementsAreArray;

constexpr const char* kNotAuthorized = "org.vgpu1.Error.NotAuthorized";

const Right& right_of(const Method& method) {
    const auto& all = testing::rights();
    const auto at = std::find_if(all.begin(), all.end(), [&method](const Right& right) {
        return right.method == method.full_name();
    });
    EXPECT_NE(at, all.end()) << method.full_name();
    return *at;
}

TEST(PrivilegeTable, NamesEveryMethodOfTheXml) {
    std::vector<std::string> in_xml, in_table;
    for (const Method& method : testing::methods_of_the_xml()) in_xml.push_back(method.full_name());
    for (const Right& right : testing::rights()) in_table.emplace_back(right.method);
    EXPECT_THAT(in_table, UnorderedElementsAreArray(in_xml));
    EXPECT_GE(in_xml.size(), 30u);
}

class Privileges : public BusFixture {
protected:
    Privileges()
        : BusFixture(Setup{.gpus = "",
                           .bus_policy = testing::fake_authority_rules(),
                           .authority = "",
                           .start = Setup::Start::Later}) {
        polkit.emplace(connect());
        start_daemon();
        polkit->say(true);
        EXPECT_EQ(ctl({"create", "--name", "train", "--vram", "64M"}).status, 0);
        testing::make_job(*connect());
        polkit->take_questions();
    }

    std::optional<FakeAuthority> polkit;
};

TEST_F(Privileges, EveryMethodIsFreeOrRefusedInTheNameOfItsAction) {
    polkit->say(false);
    // a run table for the new VF may still come
    const auto changes = [this] {
        auto all = server.with([](FakePf& pf) { return pf.log; });
        std::erase(all, "set_run_table");
        return all;
    };
    const auto before = changes();
    const auto caller = connect();
    for (const Method& method : testing::methods_of_the_xml()) {
        SCOPED_TRACE(method.full_name());
        const std::string action = right_of(method).action;
        const auto outcome = testing::call(*caller, method);
        if (action.empty()) {
            EXPECT_EQ(outcome.error, "") << outcome.text;
            EXPECT_THAT(polkit->take_actions(), IsEmpty());
            continue;
        }
        EXPECT_EQ(outcome.error, kNotAuthorized);
        EXPECT_THAT(outcome.text, HasSubstr("VGPU-401: " + action + ": polkit denies it"));
        EXPECT_THAT(polkit->take_actions(), ElementsAre(action));
    }
    EXPECT_EQ(changes(), before) << "nothing was changed";
    EXPECT_EQ(ctl_json({"show", "train"}).at("vf").at("owner"), "");
}

TEST_F(Privileges, WhatIsRefusedIsDoneWhenPolkitSaysYes) {
    const auto caller = connect();
    for (const Method& method : testing::methods_of_the_xml()) {
        if (method.full_name() == "org.vgpu1.Vf.Destroy") continue;  // the others need the VF
        SCOPED_TRACE(method.full_name());
        EXPECT_NE(testing::call(*caller, method).error, kNotAuthorized);
    }
}

}  // namespace
}  // namespace vgpu::daemon
