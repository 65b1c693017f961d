// SPDX-License-Identifier: MIT
//
// The description of a VF: a line of free text that each way into vgpud takes, and each shows.
#include "daemon/dbus/properties.h"
#include "daemon/service/config/change_plan.h"
#include "daemon/service/config/profiles.h"
#include "tests/unit/daemon/core_abilities.h"
#include "tests/unit/daemon/some_state.h"
#include "tests/unit/daemon/world.h"

#include <gmock/gmock.h>

namespace vgpu::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::World;

const std::string kText = "B\u00fcro 3: \u6570\u636e, \"night\" \\ shift";

Options described(const std::string& text) {
    return {{"name", std::string("a")}, {"description", text}};
}

TEST(Description, OfACreateOutlivesVgpudUntilASetChangesOrEmptiesIt) {
    World world;
    const auto shown = [&world] { return world.gpu().view(1).record.spec.description; };
    ASSERT_TRUE(world.create(described(kText)));
    world.start();
    world.step();
    EXPECT_EQ(shown(), kText);
    ASSERT_TRUE(world.set_vf({"gpu0", 1}, {{"weight", std::uint64_t{7}}}));
    EXPECT_EQ(shown(), kText) << "another setting leaves it";
    ASSERT_TRUE(world.set_vf({"gpu0", 1}, {{"description", std::string("other")}}));
    EXPECT_EQ(shown(), "other");
    ASSERT_TRUE(world.set_vf({"gpu0", 1}, {{"description", std::string()}}));
    EXPECT_EQ(shown(), "");
}

TEST(Description, OfOtherThanOneShortLineIsRefusedWithTheFix) {
    World world;
    const auto refused = [&world](const Value& text) {
        const auto made = world.create({{"description", text}});
        return made ? "" : made.error().cause;
    };
    EXPECT_EQ(refused(std::string(257, 'x')),
              "option 'description' has 257 bytes; shorten it to 256 or fewer");
    const std::string kPlain =
        "option 'description' has a line break, a control character or a broken letter at byte 3; "
        "write one line of plain text";
    for (const char* text :
         {"ab\ncd", "ab\tcd", "ab\x7f", "ab\xc2\x85", "ab\u2028", "ab\u202e", "ab\xff", "ab\xc3"})
        EXPECT_EQ(refused(std::string(text)), kPlain) << text;
    EXPECT_EQ(refused(std::uint64_t{1}),
              "option 'description' must be a string (s), not a value of type 't'");
    EXPECT_TRUE(world.pf().log.empty());
    EXPECT_EQ(refused(std::string(256, 'x')), "");
}

TEST(Description, IsASignalledProperty) {
    VfView before, after;
    before.gpu = after.gpu = "gpu0";
    after.record.spec.description = kText;
    EXPECT_THAT(dbus::changes(before, after), ElementsAre(dbus::PropertyName{"Description"}));
    EXPECT_EQ(
        dbus::columns_of({&after}, {}).at("Description").get<std::vector<std::string>>().front(),
        kText);
}

TEST(Description, InAStateFileIsOneLineOrTheFileIsDamaged) {
    GpuRecord record = testing::some_record();
    record.vfs.at(3).spec.description = kText;
    const std::string text = encode_gpu({.gpu = "gpu0", .record = record});
    EXPECT_EQ(decode_gpu(text)->record, record);
    const std::string wrong = testing::rewritten(
        text, [](nlohmann::json& json) { json["vfs"][0]["description"] = "a\nb"; });
    ASSERT_FALSE(decode_gpu(wrong));
    EXPECT_THAT(decode_gpu(wrong).error().cause, HasSubstr("a description has a line break"));
}

constexpr const char* kDocument = R"({
    "profiles": {"p": {"resources": {"vram": "64MiB"}, "description": "for the web"}},
    "configs": {"day": [{"gpu": "gpu0", "vfs": [{"profile": "p", "name": "a"}]}]}})";

/// A VF 'a' as kDocument wants it, but for its description.
GpuInventory gpu_with(const std::string& description) {
    GpuInventory gpu{.id = "gpu0",
                     .vram_bytes = 256u << 20,
                     .abilities = testing::core_abilities(128u << 20),
                     .total_vfs = 8};
    gpu.vfs.push_back({.vf = 1,
                       .spec = {.name = "a",
                                .resources = {.vram_bytes = 64u << 20},
                                .profile = "p",
                                .description = description}});
    return gpu;
}

ChangePlan plan_for(const GpuInventory& gpu) {
    const std::vector<std::string> ids{"gpu0"};
    const auto wanted = desired_gpus(*parse_configuration(kDocument), "day", ids);
    return make_change_plan(*wanted, {&gpu, 1}, {.gpus = ids, .names = {}}).value();
}

TEST(Description, OfAProfileIsThatOfItsVfsAndAChangeOfItDisturbsNobody) {
    EXPECT_TRUE(plan_for(gpu_with("for the web")).is_empty());
    GpuInventory gpu = gpu_with("old");
    const ChangePlan plan = plan_for(gpu);
    ASSERT_EQ(plan.steps.size(), 1u);
    EXPECT_EQ(plan.steps[0].action, Action::Set);
    EXPECT_EQ(plan.disruption(), Disruption::None);
    const auto step = nlohmann::json::parse(encode_change_plan(plan)).at("steps").at(0);
    EXPECT_EQ(step.at("from"), (nlohmann::json{{"description", "old"}}));
    EXPECT_EQ(step.at("to"), (nlohmann::json{{"description", "for the web"}}));
    perform(plan.steps[0], gpu);
    EXPECT_TRUE(plan_for(gpu).is_empty());
}

TEST(Description, OfAnEntryOfADocumentComesBeforeThatOfItsProfile) {
    const auto parsed_with = [](const std::string& member) {
        std::string document = kDocument;
        const std::string name = R"("name": "a")";
        return parse_configuration(
            document.replace(document.find(name), name.size(), name + member));
    };
    const std::vector<std::string> ids{"gpu0"};
    const auto wanted = desired_gpus(*parsed_with(R"(, "description": "for Ana")"), "day", ids);
    EXPECT_EQ(wanted->at(0).vfs.at(0).spec.description, "for Ana");
    const auto wrong = parsed_with(R"(, "description": "for\nAna")");
    ASSERT_FALSE(wrong);
    EXPECT_THAT(wrong.error().cause,
                HasSubstr("/configs/day/0/vfs/0/description has a line break"));
}

TEST(Description, OfVfsIsInAnExportThatHoldsAndNeedsNoProfileForEach) {
    GpuInventory gpu = gpu_with("for the web");
    for (const char* name : {"b1", "b2", "b3"}) {
        InventoryVf more = gpu.vfs.front();
        more.vf = static_cast<std::uint32_t>(gpu.vfs.size() + 1);
        more.spec.name = name;
        more.spec.description = name == std::string("b3") ? "" : "same";
        gpu.vfs.push_back(more);
    }
    const Configuration current = current_configuration({&gpu, 1}, "day");
    EXPECT_EQ(current.profiles.size(), 1u);
    const VfGroup two{.profile = "p", .count = 2, .name = "b{n}", .description = "same"};
    EXPECT_EQ(current.configs.at("day").front().vfs.at(1), two);
    const std::string text = encode_configuration(current);
    EXPECT_THAT(text, HasSubstr("\"description\": \"for the web\""));
    const std::vector<std::string> ids{"gpu0"};
    const auto wanted = desired_gpus(*parse_configuration(text), "day", ids);
    EXPECT_TRUE(make_change_plan(*wanted, {&gpu, 1}, {.gpus = ids, .names = {}})->is_empty());
}

}  // namespace
}  // namespace vgpu::daemon
