// SPDX-License-Identifier: MIT
//
// The state files as bytes: whatever has happened to one of them, what is read is a state that once
// was, or a refusal that concerns this file alone.
#include "daemon/service/state/store.h"

#include "tests/unit/daemon/fake_state.h"
#include "tests/unit/daemon/some_state.h"

#include <gmock/gmock.h>
#include <set>

namespace vgpu::daemon {
namespace {

using ::testing::ElementsAre;
using testing::FakeState;
using ::testing::HasSubstr;
using testing::newer;
using testing::rewritten;
using testing::some_apply;
using testing::some_record;

constexpr const char* kMain = "gpus/gpu0.json";
constexpr const char* kCopy = "gpus/gpu0.json.bak";
constexpr const char* kApplyFile = "apply.json";

TEST(Crc32c, HasTheValuesOfRfc3720) {
    EXPECT_EQ(crc32c(""), 0u);
    EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
    EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
    EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

// --- one file

TEST(StateFile, SaysItsGpuItsVersionAndItsGenerationToPeople) {
    const std::string text = encode_gpu({.gpu = "gpu0", .generation = 3, .record = some_record()});
    for (const char* line : {"  \"schema\": \"vgpud-gpu\",\n", "  \"version\": 1,\n",
                             "  \"generation\": 3,\n", "  \"gpu\": \"gpu0\",\n"})
        EXPECT_THAT(text, HasSubstr(line));
}

TEST(StateFile, OfAnApplyIsReadBackInBothDirections) {
    ApplyIntent apply = some_apply();
    for (const std::string back : {"", "step 2 of 4 was refused", "no \xff text"}) {
        apply.rollback_reason = back;
        const auto read = decode_apply(encode_apply(apply));
        ASSERT_TRUE(read) << read.error().cause;
        EXPECT_EQ(read->goes_forward(), back.empty());
        EXPECT_EQ(read->after, apply.after);
        EXPECT_EQ(read->before, apply.before);
    }
}

TEST(StateFile, OfANewerVersionIsRefusedClearly) {
    const auto refused = decode_gpu(newer(encode_gpu({.gpu = "gpu0"})));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::StateNewer);
    EXPECT_EQ(refused.error().cause, "it has version 2; this vgpud knows version 1");
    EXPECT_EQ(decode_apply(newer(encode_apply(some_apply()))).error().id, ErrorId::StateNewer);
}

TEST(StateFile, ThatIsSoundAndSaysNothingKnownIsRefused) {
    const std::string good = encode_gpu({.gpu = "gpu0", .record = some_record()});
    const std::vector<std::function<void(nlohmann::json&)>> changes{
        [](nlohmann::json& json) { json = nlohmann::json::object(); },
        [](nlohmann::json& json) { json["schema"] = "vgpud-apply"; },
        [](nlohmann::json& json) { json.erase("version"); },
        [](nlohmann::json& json) { json.erase("gpu"); },
        [](nlohmann::json& json) { json["vfs"][0]["vf"] = 65; },
        [](nlohmann::json& json) { json["vfs"][0]["vf"] = 0; },
        [](nlohmann::json& json) { json["vfs"][0]["uuid"] = "x"; },
        [](nlohmann::json& json) { json["vfs"][0]["owner"]["name"] = ""; },
        [](nlohmann::json& json) { json["scrubs"] = nlohmann::json::array({1}); }};
    for (const auto& change : changes) {
        const auto refused = decode_gpu(rewritten(good, change));
        ASSERT_FALSE(refused) << rewritten(good, change);
        EXPECT_EQ(refused.error().id, ErrorId::StateCorrupt);
        EXPECT_NE(refused.error().cause, "");
    }
    for (const char* text : {"", "[]", "null", "{}", "\"checksum\"", "{\"checksum\": 1}"})
        EXPECT_EQ(decode_gpu(text).error().id, ErrorId::StateCorrupt) << text;
}

/// Damaged at every byte, and cut at every byte. `decode` gives the content.
template <typename Decode> void expect_damage_is_found(const std::string& text, Decode decode) {
    const auto whole = decode(text);
    ASSERT_TRUE(whole);
    for (std::size_t at = 0; at < text.size(); ++at) {
        std::string damaged = text;
        damaged[at] = static_cast<char>(damaged[at] ^ 1 << at % 8);
        for (const std::string& one : {damaged, text.substr(0, at)}) {
            const auto read = decode(one);
            if (read) {
                ASSERT_EQ(*read, *whole) << "a change of white space, at " << at;
            } else {
                ASSERT_EQ(read.error().id, ErrorId::StateCorrupt) << at;
            }
        }
    }
}

TEST(StateFile, EveryFlippedByteAndEveryCutIsFoundOrHarmless) {
    expect_damage_is_found(encode_gpu({.gpu = "gpu0", .generation = 7, .record = some_record()}),
                           decode_gpu);
    expect_damage_is_found(encode_apply(some_apply()), decode_apply);
}

// --- all files

/// Two GPUs, each with a copy that is one change older, and an apply.
class Files : public ::testing::Test {
protected:
    Files() {
        StateStore store(state);
        store.load();
        for (std::uint32_t weight = 1; weight <= 2; ++weight)
            for (const char* id : {"gpu0", "gpu1"})
                EXPECT_TRUE(store.commit(id, some_record(weight)));
        whole = store.records();
        older = whole;
        older["gpu0"] = some_record(1);
    }
    void begin_apply() {
        StateStore store(state);
        store.load();
        EXPECT_TRUE(store.commit_apply(some_apply()));
    }
    /// What a vgpud that is started now knows.
    std::unique_ptr<StateStore> start() {
        auto store = std::make_unique<StateStore>(state);
        store->load();
        return store;
    }
    /// gpu0 cannot be changed for this reason; gpu1 can, and nothing is written to gpu0's files.
    void expect_only_gpu0_is_read_only(const std::string& why,
                                       ErrorId id = ErrorId::StateReadOnly) {
        const auto files = state.files;
        const auto store = start();
        const auto refused = store->commit("gpu0", some_record(9));
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().id, id);
        EXPECT_THAT(refused.error().cause, HasSubstr(why));
        EXPECT_THAT(store->condition(), HasSubstr(why));
        EXPECT_EQ(store->commit_apply(some_apply()).error().id, id);
        GpuRecord other = state.record("gpu1");
        EXPECT_EQ(store->gpu("gpu1"), other);
        ++other.vfs.at(3).spec.weight;
        EXPECT_TRUE(store->commit("gpu1", other));
        EXPECT_EQ(store->gpu("gpu0"), start()->gpu("gpu0"));
        for (const char* name : {kMain, kCopy}) EXPECT_EQ(state.files[name], files.at(name));
    }
    void recover(std::size_t problems = 1) {
        const auto done = start()->recover();
        ASSERT_TRUE(done) << done.error().cause;
        EXPECT_EQ(done->size(), problems);
        EXPECT_TRUE(start()->problems().empty()) << start()->condition();
    }

    FakeState state;
    std::map<std::string, GpuRecord> whole, older;  ///< older: gpu0 as its copy says
};

TEST_F(Files, AreOfOneGpuEachAndTheCopyIsOneChangeOlder) {
    EXPECT_EQ(start()->records(), whole);
    EXPECT_EQ(decode_gpu(state.files.at(kCopy))->record, some_record(1));
    EXPECT_EQ(decode_gpu(state.files.at(kMain))->generation, 2u);
    EXPECT_EQ(decode_gpu(state.files.at(kCopy))->generation, 1u);
    EXPECT_EQ(start()->generation(), 4u);
}

TEST_F(Files, ASoundFileCountsWhateverItsCopyIs) {
    const std::string main = state.files.at(kMain);
    const std::string ahead =
        encode_gpu({.gpu = "gpu0", .generation = 99, .record = some_record(99)});
    for (const std::string& copy : {std::string("x"), ahead, main, newer(ahead)}) {
        state.files[kCopy] = copy;
        EXPECT_TRUE(start()->problems().empty()) << copy;
        EXPECT_EQ(start()->records(), whole);
    }
    state.files.erase(kCopy);
    EXPECT_TRUE(start()->problems().empty());
    EXPECT_EQ(start()->records(), whole);
}

TEST_F(Files, OfADamagedOneTheSoundCopyIsShownAndRecovered) {
    state.files[kMain].resize(100);
    const std::string damaged = state.files.at(kMain);
    EXPECT_EQ(start()->records(), older);
    expect_only_gpu0_is_read_only("the state file memory/gpus/gpu0.json cannot be trusted: ");
    expect_only_gpu0_is_read_only("; its copy with generation 1 is sound");
    recover();
    EXPECT_EQ(start()->gpu("gpu0"), some_record(1));
    EXPECT_EQ(state.files.at("gpus/gpu0.json.damaged"), damaged);
    EXPECT_EQ(decode_gpu(state.files.at(kCopy))->record, some_record(1)) << "still there";
    EXPECT_TRUE(start()->commit("gpu0", some_record(5)));
}

TEST_F(Files, OfADamagedOneWithoutASoundCopyNothingIsShownAndTheGpuStartsAnew) {
    state.files[kMain] = "x";
    state.files[kCopy] = "y";
    EXPECT_FALSE(start()->records().contains("gpu0"));
    expect_only_gpu0_is_read_only("; it has no sound copy");
    recover();
    EXPECT_FALSE(start()->records().contains("gpu0"));
    EXPECT_EQ(state.files.at("gpus/gpu0.json.damaged"), "x");
    EXPECT_EQ(state.files.at("gpus/gpu0.json.bak.damaged"), "y");
    EXPECT_TRUE(start()->commit("gpu0", some_record(5)));
    state.files.erase(kCopy);
    state.files[kMain] = "x";
    recover();
    EXPECT_FALSE(start()->records().contains("gpu0"));
}

TEST_F(Files, AMissingOneWithACopyIsLostAndTheSoundCopyIsRecovered) {
    state.files.erase(kMain);
    const auto store = start();
    EXPECT_EQ(store->records(), older);
    EXPECT_EQ(store->commit("gpu0", some_record()).error().cause,
              "the state file memory/gpus/gpu0.json is missing; its copy with generation 1 is "
              "sound");
    recover();
    EXPECT_EQ(start()->gpu("gpu0"), some_record(1));
    state.files.erase(kMain);
    state.files[kCopy] = "x";
    EXPECT_TRUE(start()->is_read_only("gpu0"));
    EXPECT_FALSE(start()->is_read_only("gpu1"));
    recover();
    EXPECT_FALSE(start()->records().contains("gpu0"));
}

TEST_F(Files, AMissingOneWithoutACopyIsANewState) {
    state.files.erase(kMain);
    state.files.erase(kCopy);
    EXPECT_TRUE(start()->problems().empty());
    EXPECT_EQ(start()->gpu("gpu0"), GpuRecord{});
    EXPECT_TRUE(start()->commit("gpu0", some_record(5)));
}

TEST_F(Files, OfANewerVgpudAreNotTouchedAndTheOthersAreRecovered) {
    const std::string of_newer = newer(state.files.at(kMain));
    state.files[kMain] = of_newer;
    expect_only_gpu0_is_read_only("it has version 2; this vgpud knows version 1",
                                  ErrorId::StateNewer);
    EXPECT_EQ(start()->problems().at("gpu0").id, ErrorId::StateNewer);
    state.files["gpus/gpu1.json"] = "x";
    EXPECT_EQ(start()->recover()->size(), 1u);
    EXPECT_EQ(state.files.at(kMain), of_newer);
    EXPECT_FALSE(start()->problems().contains("gpu1"));
    state.files[kMain] = "x";
    state.files[kCopy] = of_newer;
    EXPECT_EQ(start()->problems().at("gpu0").id, ErrorId::StateNewer) << "so it wrote this one";
    EXPECT_TRUE(start()->recover()->empty());
    EXPECT_EQ(state.files.at(kMain), "x");
}

TEST_F(Files, OfAnotherGpuUnderItsNameIsRefused) {
    state.files[kMain] = state.files.at("gpus/gpu1.json");
    expect_only_gpu0_is_read_only("it is the file of 'gpu1'");
}

TEST_F(Files, OfNobodyArePassedOver) {
    for (const char* name : {"gpus/gpu0.json.new", "gpus/gpu0.json.damaged", "gpus/x y.json",
                             "gpus/.json", "gpus/lost+found", "gpus/a/b.json"})
        state.files[name] = "x";
    EXPECT_TRUE(start()->problems().empty());
    EXPECT_EQ(start()->records(), whole);
}

TEST_F(Files, ADamagedApplyIsNotContinuedAndNoGpuIsChangedUntilItIsDropped) {
    begin_apply();
    EXPECT_EQ(start()->apply()->label, "night");
    state.files[kApplyFile].pop_back();
    state.files[kApplyFile].pop_back();
    const auto store = start();
    EXPECT_FALSE(store->apply());
    EXPECT_EQ(store->records(), whole) << "shown";
    for (const char* id : {"gpu0", "gpu1", "new"}) {
        EXPECT_EQ(store->commit(id, some_record(9)).error().id, ErrorId::StateReadOnly);
        EXPECT_THAT(store->commit(id, some_record(9)).error().cause,
                    HasSubstr("the state file memory/apply.json cannot be trusted: "));
    }
    EXPECT_EQ(store->commit_apply(std::nullopt).error().id, ErrorId::StateReadOnly);
    recover();
    EXPECT_FALSE(state.files.contains(kApplyFile));
    EXPECT_TRUE(state.files.contains("apply.json.damaged"));
    EXPECT_EQ(start()->records(), whole);
    EXPECT_TRUE(start()->commit("gpu0", some_record(9)));
}

/// Without a list nobody knows which GPUs have a state.
TEST_F(Files, InADirectoryThatCannotBeReadMakeAllGpusReadOnlyAndCannotBeRecovered) {
    state.is_unreadable = true;
    const auto store = start();
    EXPECT_EQ(store->commit("gpu0", some_record(9)).error().cause, "cannot read memory/gpus");
    EXPECT_FALSE(store->recover());
    state.is_unreadable = false;
    EXPECT_EQ(start()->records(), whole);
}

/// One of the files is `damaged`. True if that was found.
bool is_found(const FakeState& sound, const std::string& name, const std::string& damaged,
              const std::map<std::string, GpuRecord>& whole,
              const std::map<std::string, GpuRecord>& older) {
    FakeState state;
    state.files = sound.files;
    state.files[name] = damaged;
    StateStore store(state);
    store.load();
    const bool is_refused = store.is_read_only();
    EXPECT_EQ(store.records(), is_refused && name == kMain ? older : whole);
    EXPECT_EQ(store.apply().has_value(), !is_refused || name != kApplyFile);
    EXPECT_EQ(store.is_read_only("gpu0"), is_refused);
    EXPECT_EQ(store.is_read_only("gpu1"), is_refused && name == kApplyFile);
    for (const auto& [id, problem] : store.problems()) {
        EXPECT_EQ(problem.id, ErrorId::StateCorrupt) << problem.cause;
        EXPECT_THAT(problem.cause, HasSubstr(name));
    }
    return is_refused;
}

/// Each is read with some of its bytes changed, and without its end.
TEST_F(Files, DamageConcernsItsFileAlone) {
    constexpr std::size_t kStride = 29;
    begin_apply();
    for (const char* name : {kMain, kCopy, kApplyFile}) {
        const std::string whole_file = state.files.at(name);
        const bool is_copy = std::string_view(name) == kCopy;
        for (std::size_t at = 0; at + 1 < whole_file.size(); at += kStride) {
            SCOPED_TRACE(fmt::format("{} {}", name, at));
            std::string damaged = whole_file;
            damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
            EXPECT_EQ(is_found(state, name, damaged, whole, older), !is_copy);
            const std::string cut = whole_file.substr(0, at);
            EXPECT_EQ(is_found(state, name, cut, whole, older), !is_copy);
        }
        EXPECT_EQ(is_found(state, name, whole_file + "x", whole, older), !is_copy);
    }
}

/// A disk may lose a block, or write one in the place of another.
TEST_F(Files, BlocksThatAreLostOrExchangedAreFound) {
    constexpr std::size_t kBlock = 64;
    const std::string whole_file = state.files.at(kMain);
    begin_apply();
    for (std::size_t a = 0; a + kBlock <= whole_file.size(); a += kBlock) {
        std::string zeroed = whole_file;
        zeroed.replace(a, kBlock, kBlock, '\0');
        EXPECT_TRUE(is_found(state, kMain, zeroed, whole, older)) << a;
        std::string missing = whole_file;
        EXPECT_TRUE(is_found(state, kMain, missing.erase(a, kBlock), whole, older)) << a;
        for (std::size_t b = a + kBlock; b + kBlock <= whole_file.size(); b += kBlock) {
            std::string exchanged = whole_file;
            exchanged.replace(a, kBlock, whole_file, b, kBlock);
            exchanged.replace(b, kBlock, whole_file, a, kBlock);
            EXPECT_TRUE(is_found(state, kMain, exchanged, whole, older)) << a << " " << b;
        }
    }
}

struct Killed {};

TEST_F(Files, ARecoveryThatIsKilledAtAnyPointCanBeRepeated) {
    begin_apply();
    state.files[kMain] = "x";
    state.files["gpus/gpu1.json"] = "x";
    state.files["gpus/gpu1.json.bak"] = "y";
    state.files[kApplyFile] = "z";
    const auto damaged = state.files;
    int kill = 0;
    for (bool was_killed = true; was_killed; ++kill) {
        state.files = damaged;
        int point = 0;
        state.on_point = [&] {
            if (point++ == kill) throw Killed{};
        };
        was_killed = false;
        try {
            EXPECT_TRUE(start()->recover());
        } catch (const Killed&) {
            was_killed = true;
        }
        state.on_point = nullptr;
        const auto store = start();
        EXPECT_EQ(store->gpu("gpu0"), some_record(1)) << kill;
        EXPECT_FALSE(store->records().contains("gpu1")) << kill;
        EXPECT_TRUE(store->recover()) << kill;
        EXPECT_EQ(start()->condition(), "") << kill;
        EXPECT_EQ(start()->gpu("gpu0"), some_record(1)) << kill;
        for (const char* name :
             {"gpus/gpu0.json", "gpus/gpu1.json", "gpus/gpu1.json.bak", kApplyFile})
            EXPECT_EQ(state.files.at(std::string(name) + ".damaged"), damaged.at(name)) << kill;
    }
    EXPECT_GE(kill, 10);
}

}  // namespace
}  // namespace vgpu::daemon
