// SPDX-License-Identifier: MIT
#include "cli/colour.h"
#include "tests/unit/cli/cli_fixture.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace vgpu::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Events : public testing::Cli {
protected:
    Events() {
        service.tell(0, "attached", "the PF core answers");
        service.tell(1, "hang", "does not give up the engine (run-timeout); it will be reset");
        service.tell(2, "reset-done", "was reset (guest-flr)");
    }
    /// "kind kind …" of the lines that were printed.
    [[nodiscard]] std::string kinds() const {
        std::istringstream lines(out.str());
        std::string all;
        for (std::string line; std::getline(lines, line);)
            all += (all.empty() ? "" : " ") +
                   nlohmann::json::parse(line).at("kind").get<std::string>();
        return all;
    }
};

TEST_F(Events, AreLinesWithTimeTargetKindAndText) {
    EXPECT_EQ(run({"events"}), 0);
    EXPECT_EQ(out.str(),
              "2023-11-14T22:13:21.500000Z  gpu0: attached: the PF core answers\n"
              "2023-11-14T22:13:23.000000Z  gpu0/vf1: hang: does not give up the engine "
              "(run-timeout); it will be reset\n"
              "2023-11-14T22:13:24.500000Z  gpu0/vf2: reset-done: was reset (guest-flr)\n");
}

TEST_F(Events, OnATerminalWhatIsLongIsWrappedBesideTheTime) {
    is_terminal = true;
    service.tell(3, "guard", std::string(120, 'x'));
    EXPECT_EQ(run({"events"}), 0);
    expect_golden("events-terminal.txt");
    expect_80_columns();
    uses_colour = true;
    EXPECT_EQ(run({"events"}), 0);
    EXPECT_THAT(out.str(), HasSubstr("gpu0/vf1: " + painted("hang", Colour::Red, true) +
                                     ": does not give up the engine\n"));
}

TEST_F(Events, JsonIsOneDocumentALineWithItsSchemaId) {
    EXPECT_EQ(run({"events", "--json"}), 0);
    expect_golden("events.jsonl");
    EXPECT_EQ(kinds(), "attached hang reset-done");
}

TEST_F(Events, OfOneTargetOnlyAndTheNewestOfThem) {
    EXPECT_EQ(run({"events", "--json", "gpu0/vf1"}), 0);
    EXPECT_EQ(kinds(), "hang");
    EXPECT_EQ(run({"events", "--json", "gpu0"}), 0);
    EXPECT_EQ(kinds(), "attached hang reset-done");
    EXPECT_EQ(run({"events", "--json", "--limit", "1"}), 0);
    EXPECT_EQ(kinds(), "reset-done");
    EXPECT_EQ(run({"events", "--json", "gpu1"}), 0);
    EXPECT_THAT(out.str(), IsEmpty());
}

TEST_F(Events, OfAVfThatIsGoneAreFoundByItsTarget) {
    service.tell(9, "released", "VF 9 is scrubbed and free");
    EXPECT_EQ(run({"events", "--json", "gpu0/vf9"}), 0);
    EXPECT_EQ(kinds(), "released");
    EXPECT_EQ(run({"events", "nobody"}), 3);
}

TEST_F(Events, OfWhatCannotBeAreAnError) {
    for (const char* target :
         {"gpu9", "gpu9/vf1", "gpu0/vf17", "gpu0/vf0", "gpu0/vfx", "gpu0/vf"}) {
        EXPECT_EQ(run({"events", target}), 3) << target;
        EXPECT_THAT(err.str(), HasSubstr("there is no GPU or VF")) << target;
    }
    EXPECT_EQ(run({"events", "gpu0/vf16"}), 0);
}

TEST_F(Events, FollowGoesOnWithWhatComesNothingTwice) {
    service.script = {{BusChange::Event, [this] { service.tell(1, "guard", "exceeded"); }},
                      {BusChange::Event, {}},
                      {BusChange::Event, [this] {
                           service.tell(1, "hang", "again");
                           service.tell(1, "reset-done", "again");
                       }}};
    EXPECT_EQ(run({"events", "--json", "--follow", "--limit", "0"}), 0);
    EXPECT_EQ(kinds(), "guard hang reset-done");
    EXPECT_THAT(err.str(), IsEmpty());
}

TEST_F(Events, FollowSaysWhatWasMissed) {
    service.script = {{BusChange::Event, [this] {
                           for (int i = 0; i < 5; ++i) service.tell(1, "guard", "exceeded");
                           service.events.erase(service.events.begin(), service.events.end() - 1);
                       }}};
    EXPECT_EQ(run({"events", "--json", "--follow", "--limit", "0"}), 0);
    EXPECT_EQ(kinds(), "guard");
    EXPECT_EQ(err.str(), "vgpuctl: 4 events were missed\n");
}

TEST_F(Events, FollowWaitsForAVgpudThatIsGoneAndStartsWithTheNewOne) {
    service.script = {{BusChange::Gone, [this] { service.is_there = false; }},
                      {BusChange::Event, {}},
                      {BusChange::Back, [this] {
                           service.is_there = true;
                           service.events.clear();
                           service.told = 0;
                           service.tell(0, "attached", "anew");
                       }}};
    EXPECT_EQ(run({"events", "--json", "--follow", "--limit", "0"}), 0);
    EXPECT_EQ(kinds(), "attached");
    EXPECT_EQ(err.str(),
              "vgpuctl: vgpud is gone; events continue when it is back\n"
              "vgpuctl: vgpud is back\n");
}

TEST_F(Events, WithoutVgpudThereIsNothingToFollow) {
    service.is_there = false;
    EXPECT_EQ(run({"events", "--follow"}), 5);
    EXPECT_THAT(err.str(), HasSubstr("vgpud does not answer on this bus"));
}

TEST_F(Events, FollowEndsWhenNothingCanBeWrittenAnyMore) {
    service.script = {{BusChange::Event,
                       [this] {
                           service.tell(1, "guard", "exceeded");
                           out.setstate(std::ios::badbit);
                       }},
                      {BusChange::Event, [] { FAIL() << "it went on"; }}};
    EXPECT_EQ(run({"events", "--follow"}), 1);
    EXPECT_EQ(err.str(), "vgpuctl: cannot write the output\n");
    out.clear();
}

TEST_F(Events, AreColouredOnlyWhereColourIsWanted) {
    EXPECT_EQ(run({"events"}), 0);
    EXPECT_THAT(out.str(), Not(HasSubstr("\x1b")));
    uses_colour = true;
    EXPECT_EQ(run({"events"}), 0);
    EXPECT_THAT(out.str(), HasSubstr("\x1b[31mhang\x1b[0m"));
    EXPECT_EQ(run({"events", "--json"}), 0);
    EXPECT_THAT(out.str(), Not(HasSubstr("\x1b")));
}

TEST(ColourWanted, OnATerminalOnlyAndNotWithNoColor) {
    EXPECT_TRUE(may_use_colour(true, nullptr, "xterm"));
    EXPECT_TRUE(may_use_colour(true, "", "xterm")) << "an empty NO_COLOR says nothing";
    EXPECT_FALSE(may_use_colour(true, "1", "xterm"));
    EXPECT_FALSE(may_use_colour(false, nullptr, "xterm"));
    EXPECT_FALSE(may_use_colour(true, nullptr, "dumb"));
    EXPECT_FALSE(may_use_colour(true, nullptr, nullptr));
}

}  // namespace
}  // namespace vgpu::cli
