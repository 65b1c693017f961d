// SPDX-License-Identifier: MIT
//
// StateStore over a disk that fills up, goes read-only, fails to sync, and is pulled out at every
// point of every write.
#include "daemon/service/state/store.h"

#include "tests/unit/daemon/fake_state.h"

#include <gmock/gmock.h>
#include <fstream>
#include <future>
#include <stdexcept>
#include <thread>
#include <tuple>

namespace vgpu::daemon {
namespace {

using testing::FakeState;
using ::testing::HasSubstr;

GpuRecord some_record(std::uint32_t weight = 7) {
    GpuRecord record;
    record.quantum_us = 5000;
    record.max_gap_ms = 100;
    record.claims = 4;
    record.vfs[3] = {.vf = 3,
                     .name = "train",
                     .uuid = *parse_uuid("00112233-4455-6677-8899-aabbccddeeff"),
                     .weight = weight,
                     .vram_bytes = 64u << 20,
                     .cu_mask = ~0ull};
    record.vfs[3].owner = {.name = "slurm:1",
                           .generation = 4,
                           .lease_s = 60,
                           .since = UnixTime{1000},
                           .expires = UnixTime{1060}};
    record.scrubs[2] = 9;
    return record;
}

/// What a vgpud started now would know.
Result<Records> reload(FakeState& state) {
    StateStore store(state);
    store.load();
    if (store.is_read_only()) return tl::make_unexpected(*store.problem());
    return store.records();
}

TEST(StateStore, WhatIsWrittenIsReadBack) {
    FakeState state;
    StateStore writer(state);
    writer.load();
    ASSERT_TRUE(writer.commit("gpu0", some_record()));
    ASSERT_TRUE(writer.commit("gpu1", some_record(8)));
    EXPECT_EQ(*reload(state), writer.records());
    EXPECT_EQ(writer.gpu("gpu0"), some_record());
    EXPECT_EQ(writer.records().generation, 2u);
    EXPECT_EQ(state.appends, 1) << "the first change makes the files, the second is appended";
}

TEST(StateStore, UnchangedRecordIsNotWrittenAgain) {
    FakeState state;
    StateStore store(state);
    store.load();
    ASSERT_TRUE(store.commit("gpu0", some_record()));
    ASSERT_TRUE(store.commit("gpu0", some_record()));
    EXPECT_EQ(state.stores, 1);
    EXPECT_EQ(state.appends, 0);
}

TEST(StateStore, ChangesOfSeveralGpusAreOneRecord) {
    FakeState state;
    StateStore store(state);
    store.load();
    ASSERT_TRUE(store.commit("gpu0", some_record(1)));
    ASSERT_TRUE(store.commit({{"gpu0", some_record(2)}, {"gpu1", some_record(3)}}));
    EXPECT_EQ(state.appends, 1);
    const auto loaded = reload(state);
    EXPECT_EQ(loaded->gpus.at("gpu0"), some_record(2));
    EXPECT_EQ(loaded->gpus.at("gpu1"), some_record(3));
    EXPECT_EQ(loaded->generation, 2u);
}

TEST(StateStore, ALongJournalIsFollowedByACheckpointAndBeginsAnew) {
    FakeState state;
    state.notes_document = false;
    StateStore store(state);
    store.load();
    std::size_t longest = 0;
    int begun_anew = 0;
    for (std::uint32_t i = 1; i <= 4000; ++i) {
        const std::size_t before = state.journal ? state.journal->size() : 0;
        ASSERT_TRUE(store.commit("gpu" + std::to_string(i % 3), some_record(i)));
        longest = std::max(longest, state.journal->size());
        if (state.journal->size() < before) ++begun_anew;
    }
    EXPECT_LE(longest, StateStore::kJournalBytes + kRecordHead);
    EXPECT_GE(begun_anew, 2);
    EXPECT_EQ(*reload(state), store.records());
}

TEST(StateStore, CommitsThatWaitForADiskGoToItTogether) {
    FakeState state;
    StateStore store(state);
    store.load();
    ASSERT_TRUE(store.commit("gpu0", some_record(1)));
    std::promise<void> is_writing, may_go_on;
    bool is_first = true;
    state.on_point = [&] {
        if (!std::exchange(is_first, false)) return;
        is_writing.set_value();
        may_go_on.get_future().wait();
    };
    const auto commit = [&store](std::uint32_t i) {
        return std::async(std::launch::async, [&store, i] {
            return store.commit("gpu" + std::to_string(i), some_record(i)).has_value();
        });
    };
    auto first = commit(1);
    is_writing.get_future().wait();
    std::vector<std::future<bool>> later;
    for (std::uint32_t i = 2; i <= 9; ++i) later.push_back(commit(i));
    while (store.waiting() < later.size()) std::this_thread::yield();
    may_go_on.set_value();
    EXPECT_TRUE(first.get());
    for (auto& one : later) EXPECT_TRUE(one.get());
    EXPECT_EQ(state.appends, 2);
    EXPECT_EQ(store.records().generation, 3u);
    EXPECT_EQ(store.records().gpus.size(), 10u);
    state.on_point = nullptr;
    EXPECT_EQ(*reload(state), store.records());
}

// --- what a disk may do

TEST(StateStore, FullDiskRefusesTheChangeAndTakesItOnceThereIsRoom) {
    FakeState state;
    StateStore store(state);
    store.load();
    state.is_full = true;
    EXPECT_EQ(store.commit("gpu0", some_record()).error().id, ErrorId::StateNotWritten);
    EXPECT_EQ(store.gpu("gpu0"), GpuRecord{});
    EXPECT_EQ(*reload(state), Records{});
    EXPECT_NE(store.trouble(), "");
    state.is_full = false;
    ASSERT_TRUE(store.commit("gpu0", some_record(1)));
    EXPECT_EQ(store.trouble(), "");
    const Records before = store.records();
    state.is_full = true;
    EXPECT_EQ(store.commit("gpu0", some_record(2)).error().id, ErrorId::StateNotWritten);
    EXPECT_EQ(store.records(), before);
    EXPECT_EQ(*reload(state), before) << "what was half written is gone";
    ASSERT_TRUE(store.commit("gpu0", some_record(1)));
    EXPECT_NE(store.trouble(), "") << "nothing was to be written";
    state.is_full = false;
    ASSERT_TRUE(store.commit("gpu0", some_record(3)));
    ASSERT_TRUE(store.commit("gpu0", some_record(4)));
    EXPECT_EQ(*reload(state), store.records());
    EXPECT_EQ(store.gpu("gpu0"), some_record(4));
}

TEST(StateStore, ReadOnlyDiskRefusesChangesAndIsReadAsItIs) {
    FakeState state;
    StateStore store(state);
    store.load();
    ASSERT_TRUE(store.commit("gpu0", some_record(1)));
    const StateImage before = state.image();
    state.is_read_only = true;
    StateStore next(state);
    next.load();
    EXPECT_FALSE(next.is_read_only()) << "the files are sound";
    EXPECT_EQ(next.commit("gpu0", some_record(2)).error().id, ErrorId::StateNotWritten);
    EXPECT_EQ(next.gpu("gpu0"), some_record(1));
    EXPECT_EQ(state.image().journal, before.journal);
    state.is_read_only = false;
    EXPECT_TRUE(next.commit("gpu0", some_record(2)));
    EXPECT_EQ(*reload(state), next.records());
}

TEST(StateStore, AfterAFailedSyncTheJournalIsNotBuiltUpon) {
    FakeState state;
    StateStore store(state);
    store.load();
    ASSERT_TRUE(store.commit("gpu0", some_record(1)));
    state.is_sync_failing = true;
    const auto refused = store.commit("gpu0", some_record(2));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::StateNotWritten);
    EXPECT_EQ(store.gpu("gpu0"), some_record(1));
    EXPECT_FALSE(store.commit("gpu0", some_record(3)));
    EXPECT_EQ(reload(state)->gpus.at("gpu0"), some_record(1));
    state.is_sync_failing = false;
    const int appends = state.appends;
    ASSERT_TRUE(store.commit("gpu0", some_record(4)));
    EXPECT_EQ(state.appends, appends) << "a checkpoint, and a journal of its own";
    EXPECT_EQ(*reload(state), store.records());
    ASSERT_TRUE(store.commit("gpu0", some_record(5)));
    EXPECT_EQ(state.appends, appends + 1);
    EXPECT_EQ(*reload(state), store.records());
}

/// The rename happens, and then the disk fails and goes read-only.
TEST(StateStore, AFailedCheckpointThatCannotBeTakenBackIsSaidToBePossiblyThere) {
    FakeState state;
    StateStore store(state);
    store.load();
    ASSERT_TRUE(store.commit("gpu0", some_record(1)));
    state.is_sync_failing = true;
    ASSERT_FALSE(store.commit("gpu0", some_record(2))) << "the next change is a checkpoint";
    state.is_sync_failing = false;
    int points = 0;
    state.on_point = [&] {
        if (++points == 2) state.is_sync_failing = state.is_read_only = true;
    };
    const auto refused = store.commit("gpu0", some_record(3));
    state.on_point = nullptr;
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::StateNotWritten);
    EXPECT_THAT(refused.error().cause, HasSubstr("may find it made"));
    EXPECT_EQ(store.gpu("gpu0"), some_record(1));
    EXPECT_EQ(reload(state)->gpus.at("gpu0"), some_record(3)) << "as it says";
    state.is_sync_failing = state.is_read_only = false;
    ASSERT_TRUE(store.commit("gpu0", some_record(4)));
    EXPECT_EQ(*reload(state), store.records()) << "the refused change does not come back";
}

TEST(StateStore, AnApplyIsDurableFromItsBeginningToItsEnd) {
    FakeState state;
    StateStore store(state);
    store.load();
    ASSERT_TRUE(store.commit_apply(ApplyIntent{.label = "day", .wanted = {}, .before = {}}));
    EXPECT_EQ(reload(state)->apply->label, "day");
    ASSERT_TRUE(store.commit("gpu0", some_record()));
    EXPECT_EQ(*reload(state), store.records());
    EXPECT_EQ(store.apply()->label, "day");
    const int appends = state.appends;
    ASSERT_TRUE(store.commit_apply(store.apply()));
    EXPECT_EQ(state.appends, appends) << "nothing has changed";
    state.is_full = true;
    EXPECT_EQ(store.commit_apply(std::nullopt).error().id, ErrorId::StateNotWritten);
    EXPECT_TRUE(store.apply());
    state.is_full = false;
    ASSERT_TRUE(store.commit_apply(std::nullopt));
    EXPECT_FALSE(reload(state)->apply);
    EXPECT_EQ(reload(state)->gpus.at("gpu0"), some_record());
}

TEST(StateStore, AFailedChangeThatCannotBeTakenBackIsSaidToBePossiblyThere) {
    FakeState state;
    StateStore store(state);
    store.load();
    ASSERT_TRUE(store.commit("gpu0", some_record(1)));
    state.is_sync_failing = state.is_cut_failing = true;
    const auto refused = store.commit("gpu0", some_record(2));
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().cause, HasSubstr("may find it made"));
    state.is_sync_failing = state.is_cut_failing = false;
    ASSERT_TRUE(store.commit("gpu0", some_record(3)));
    EXPECT_EQ(*reload(state), store.records()) << "the refused change does not come back";
}

// --- kills

struct Killed : std::runtime_error {
    Killed() : std::runtime_error("killed") {}
};

/// Kills at the `at`-th point; false if it never came to that.
bool run_killed_at(FakeState& state, int at, const std::function<void()>& work) {
    int point = 0;
    state.on_point = [&] {
        if (point++ == at) throw Killed();
    };
    bool was_killed = false;
    try {
        work();
    } catch (const Killed&) {
        was_killed = true;
    }
    state.on_point = nullptr;
    return was_killed;
}

/// Twelve changes with everything in between that a store does: first files, appends, a full disk,
/// a failed sync, checkpoints.
void live(FakeState& state, std::vector<Records>& states) {
    StateStore store(state);
    store.load();
    if (store.is_read_only()) throw std::logic_error("not to be read");
    states.push_back(store.records());
    for (std::uint32_t i = 1; i <= 12; ++i) {
        state.is_full = i == 4;
        state.is_sync_failing = i == 7;
        Records next = store.records();
        ++next.generation;
        next.gpus["gpu" + std::to_string(i % 2)] = some_record(i);
        states.push_back(next);
        const auto done = store.commit("gpu" + std::to_string(i % 2), some_record(i));
        if (!done) states.pop_back();
    }
}

TEST(StateStore, KilledAtAnyPointTheNextOneFindsTheOldOrTheNewState) {
    int kills = 0;
    for (;; ++kills) {
        FakeState state;
        std::vector<Records> states;
        const bool was_killed = run_killed_at(state, kills, [&] { live(state, states); });
        state.is_full = state.is_sync_failing = false;
        const auto found = reload(state);
        ASSERT_TRUE(found) << kills << ": " << found.error().cause;
        const bool is_new = *found == states.back();
        const bool is_old = states.size() > 1 && *found == states[states.size() - 2];
        ASSERT_TRUE(is_new || is_old) << kills;
        StateStore next(state);
        next.load();
        ASSERT_TRUE(next.commit("gpu0", some_record(99))) << kills << ": it can be gone on from";
        ASSERT_EQ(*reload(state), next.records()) << kills;
        if (!was_killed) break;
    }
    EXPECT_GE(kills, 50) << "points there are";
}

TEST(StateStore, KilledAgainWhileItGoesOnItStillFindsTheOldOrTheNewState) {
    for (int first = 0; first < 40; ++first)
        for (int second = 0;; ++second) {
            FakeState state;
            std::vector<Records> states;
            run_killed_at(state, first, [&] { live(state, states); });
            state.is_full = state.is_sync_failing = false;
            const Records before = *reload(state);
            Records after = before;
            ++after.generation;
            after.gpus["gpu0"] = some_record(99);
            const bool was_killed = run_killed_at(state, second, [&] {
                StateStore store(state);
                store.load();
                static_cast<void>(store.commit("gpu0", some_record(99)));
            });
            const auto found = reload(state);
            ASSERT_TRUE(found) << first << " " << second << ": " << found.error().cause;
            ASSERT_TRUE(*found == before || *found == after) << first << " " << second;
            if (!was_killed) break;
        }
}

// --- documents of other versions, damaged documents

TEST(StateStore, TheDocumentOfVersion1IsReadAndReplacedByTheFirstChange) {
    std::ifstream file(std::string(VGPU_STATE_GOLDEN_DIR) + "/version1.json");
    const std::string document(std::istreambuf_iterator<char>(file), {});
    for (int kills = 0;; ++kills) {
        FakeState state;
        state.document = document;
        std::ignore = state.read(StateFile::Journal);
        state.journal.reset();
        StateStore store(state);
        store.load();
        ASSERT_FALSE(store.is_read_only()) << store.message();
        EXPECT_EQ(state.checkpoint, document) << "reading writes nothing";
        const Records old = store.records();
        EXPECT_EQ(old.generation, 12u);
        const VfRecord& train = old.gpus.at("gpu0").vfs.at(1);
        EXPECT_EQ(train.name, "train");
        EXPECT_EQ(uuid_text(train.uuid), "00112233-4455-4677-8899-aabbccddee01");
        EXPECT_EQ(train.weight, 700u);
        EXPECT_TRUE(old.gpus.at("gpu0").vfs.at(3).is_releasing);
        EXPECT_EQ(old.gpus.at("gpu0").scrubs.at(2), 9u);
        EXPECT_EQ(old.gpus.at("gpu0").max_gap_ms, 100u);
        const bool was_killed = run_killed_at(
            state, kills, [&] { static_cast<void>(store.commit("gpu0", some_record())); });
        const auto found = reload(state);
        ASSERT_TRUE(found) << kills << ": " << found.error().cause;
        Records changed = old;
        ++changed.generation;
        changed.gpus["gpu0"] = some_record();
        ASSERT_TRUE(*found == old || *found == changed) << kills;
        if (was_killed) continue;
        EXPECT_EQ(*found, changed);
        EXPECT_THAT(*state.checkpoint, HasSubstr("\"version\": 5"));
        break;
    }
}

class StateOfAnEarlierVersion : public ::testing::TestWithParam<const char*> {};

TEST_P(StateOfAnEarlierVersion, IsReadWithItsJournalAndReplacedByTheFirstChange) {
    FakeState state;
    {
        StateStore store(state);
        store.load();
        ASSERT_TRUE(store.commit("gpu0", some_record()));
        GpuRecord next = some_record();
        next.max_gap_ms = 77;
        ASSERT_TRUE(store.commit("gpu0", next));
    }
    const std::size_t at = state.checkpoint->find("\"version\": 5");
    ASSERT_NE(at, std::string::npos);
    state.checkpoint->replace(at, 12, std::string("\"version\": ") + GetParam());
    StateStore store(state);
    store.load();
    ASSERT_FALSE(store.is_read_only()) << store.message();
    EXPECT_EQ(store.gpu("gpu0").max_gap_ms, 77u) << "from the journal";
    GpuRecord with_contract = store.gpu("gpu0");
    ASSERT_FALSE(with_contract.vfs.empty());
    with_contract.vfs.begin()->second.qos.min_pct = 12.5;
    with_contract.vfs.begin()->second.qos.band = scheduler::Band::Low;
    with_contract.vfs.begin()->second.custody = {.handover = Handover::VfioPci,
                                                 .scrub = ScrubPolicy::Release};
    ASSERT_TRUE(store.commit("gpu0", with_contract));
    EXPECT_THAT(*state.checkpoint, HasSubstr("\"version\": 5"))
        << "a vgpud that knows no contracts, no custody or no apply must not read on as if there "
           "were none";
    const auto found = reload(state);
    ASSERT_TRUE(found) << found.error().cause;
    EXPECT_EQ(found->gpus.at("gpu0"), with_contract);
}

INSTANTIATE_TEST_SUITE_P(WithAJournal, StateOfAnEarlierVersion, ::testing::Values("2", "3", "4"));

TEST(StateStore, DocumentCutAnywhereIsReadOnly) {
    Records records;
    records.gpus["gpu0"] = some_record();
    const std::string whole = encode_records(records);
    for (std::size_t length = 0; length + 2 < whole.size(); ++length) {
        FakeState state;
        state.document = whole.substr(0, length);
        StateStore store(state);
        store.load();
        ASSERT_TRUE(store.is_read_only()) << length;
        ASSERT_EQ(store.commit("gpu0", {}).error().id, ErrorId::StateReadOnly);
    }
}

TEST(StateStore, EveryFlippedBitIsFoundOrHarmless) {
    Records records;
    records.gpus["gpu0"] = some_record();
    const std::string whole = encode_records(records);
    for (std::size_t at = 0; at < whole.size(); ++at)
        for (int bit = 0; bit < 8; ++bit) {
            std::string damaged = whole;
            damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
            const auto decoded = decode_records(damaged);
            ASSERT_EQ(decoded.value_or(records), records) << at << " " << bit;
        }
}

TEST(StateStore, NewerVersionIsRefusedClearly) {
    std::string document = encode_records({});
    const std::size_t at = document.find("\"version\": 5");
    ASSERT_NE(at, std::string::npos);
    document.replace(at, 12, "\"version\": 6");
    FakeState state;
    state.document = document;
    StateStore store(state);
    store.load();
    ASSERT_TRUE(store.is_read_only());
    EXPECT_EQ(store.problem()->id, ErrorId::StateNewer);
    EXPECT_EQ(
        store.message(),
        "the state file memory cannot be trusted: it has version 6; this vgpud knows versions "
        "1 to 5");
}

TEST(StateStore, ATornChangeIsDroppedAndSaidAndTheNextOneBeginsACheckpoint) {
    FakeState state;
    StateStore writer(state);
    writer.load();
    ASSERT_TRUE(writer.commit("gpu0", some_record(1)));
    const Records before = writer.records();
    ASSERT_TRUE(writer.commit("gpu0", some_record(2)));
    state.journal->resize(state.journal->size() - 5);
    StateStore store(state);
    store.load();
    EXPECT_FALSE(store.is_read_only());
    EXPECT_EQ(store.records(), before);
    EXPECT_THAT(store.note(), HasSubstr("a change that was never finished; it is dropped"));
    ASSERT_TRUE(store.commit("gpu0", some_record(3)));
    StateStore next(state);
    next.load();
    EXPECT_EQ(next.note(), "");
    EXPECT_EQ(next.gpu("gpu0"), some_record(3));
}

}  // namespace
}  // namespace vgpu::daemon
