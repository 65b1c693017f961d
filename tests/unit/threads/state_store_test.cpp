// SPDX-License-Identifier: MIT
//
// StateStore over a disk that fills up, goes read-only, fails to sync, and is pulled out at every
// point of every write; and with several threads.
#include "daemon/service/state/store.h"

#include "tests/unit/daemon/fake_state.h"
#include "tests/unit/daemon/some_state.h"

#include <gmock/gmock.h>
#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

namespace vgpu::daemon {
namespace {

using testing::FakeState;
using ::testing::HasSubstr;
using testing::some_apply;
using testing::some_record;

/// All that a store knows.
struct Known {
    std::map<std::string, GpuRecord> gpus{};
    std::optional<ApplyIntent> apply{};

    bool operator==(const Known&) const = default;
};

Known known_to(const StateStore& store) {
    return {.gpus = store.records(), .apply = store.apply()};
}

/// What a vgpud started now would know; its files are all sound.
Known reload(FakeState& state) {
    StateStore store(state);
    store.load();
    EXPECT_EQ(store.condition(), "");
    return known_to(store);
}

TEST(StateStore, WhatIsWrittenIsReadBack) {
    FakeState state;
    StateStore writer(state);
    writer.load();
    EXPECT_TRUE(state.files.empty()) << "reading writes nothing";
    ASSERT_TRUE(writer.commit("gpu0", some_record()));
    ASSERT_TRUE(writer.commit("gpu1", some_record(8)));
    EXPECT_EQ(reload(state), known_to(writer));
    EXPECT_EQ(writer.gpu("gpu0"), some_record());
    EXPECT_EQ(writer.generation(), 2u);
}

TEST(StateStore, UnchangedRecordIsNotWrittenAgain) {
    FakeState state;
    StateStore store(state);
    store.load();
    ASSERT_TRUE(store.commit("gpu0", some_record()));
    ASSERT_TRUE(store.commit("gpu0", some_record()));
    EXPECT_EQ(state.stores, 1);
}

TEST(StateStore, AChangeWritesTheFileOfItsGpuAlone) {
    FakeState state;
    StateStore store(state);
    store.load();
    ASSERT_TRUE(store.commit("gpu0", some_record(1)));
    ASSERT_TRUE(store.commit("gpu1", some_record(2)));
    const std::string before = state.file("gpu1");
    ASSERT_TRUE(store.commit("gpu0", some_record(3)));
    EXPECT_EQ(state.file("gpu1"), before);
    EXPECT_EQ(state.record("gpu0"), some_record(3));
}

TEST(StateStore, AGpuWaitsForNoOtherGpusDiskAndAReaderForNone) {
    FakeState state;
    StateStore store(state);
    store.load();
    ASSERT_TRUE(store.commit("gpu0", some_record(1)));
    std::promise<void> is_writing, may_go_on;
    const auto fast = std::this_thread::get_id();
    std::atomic<bool> is_first = true;
    state.on_point = [&] {
        if (std::this_thread::get_id() == fast || !is_first.exchange(false)) return;
        is_writing.set_value();
        may_go_on.get_future().wait();
    };
    auto first = std::async(std::launch::async,
                            [&store] { return store.commit("gpu0", some_record(2)).has_value(); });
    is_writing.get_future().wait();
    EXPECT_TRUE(store.commit("gpu1", some_record(3)));
    EXPECT_TRUE(store.commit_apply(some_apply()));
    EXPECT_EQ(store.gpu("gpu0"), some_record(1)) << "not durable yet";
    EXPECT_EQ(store.gpu("gpu1"), some_record(3));
    may_go_on.set_value();
    EXPECT_TRUE(first.get());
    EXPECT_EQ(store.gpu("gpu0"), some_record(2));
    state.on_point = nullptr;
    EXPECT_EQ(reload(state), known_to(store));
}

TEST(StateStore, ChangesOfManyThreadsAreAllThere) {
    constexpr std::uint32_t kGpus = 4, kChanges = 20;
    FakeState state;
    StateStore store(state);
    store.load();
    std::vector<std::thread> threads;
    for (std::uint32_t gpu = 0; gpu < kGpus; ++gpu)
        threads.emplace_back([&store, gpu] {
            for (std::uint32_t weight = 1; weight <= kChanges; ++weight) {
                EXPECT_TRUE(store.commit("gpu" + std::to_string(gpu), some_record(weight)));
                EXPECT_GE(store.names().size(), 1u);
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(store.generation(), kGpus * kChanges);
    EXPECT_EQ(reload(state), known_to(store));
    EXPECT_EQ(reload(state).gpus.size(), kGpus);
}

// --- what a disk may do

TEST(StateStore, FullDiskRefusesTheChangeAndTakesItOnceThereIsRoom) {
    FakeState state;
    StateStore store(state);
    store.load();
    state.is_full = true;
    const auto refused = store.commit("gpu0", some_record());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::StateNotWritten);
    EXPECT_EQ(refused.error().cause, "no space left");
    EXPECT_EQ(store.gpu("gpu0"), GpuRecord{});
    EXPECT_EQ(reload(state), Known{});
    EXPECT_NE(store.condition(), "");
    state.is_full = false;
    ASSERT_TRUE(store.commit("gpu0", some_record(1)));
    EXPECT_EQ(store.condition(), "");
    const Known before = known_to(store);
    state.is_full = true;
    EXPECT_EQ(store.commit("gpu0", some_record(2)).error().id, ErrorId::StateNotWritten);
    EXPECT_EQ(known_to(store), before);
    EXPECT_EQ(reload(state), before) << "what was half written is gone";
    ASSERT_TRUE(store.commit("gpu0", some_record(1)));
    EXPECT_NE(store.condition(), "") << "nothing was to be written";
    state.is_full = false;
    ASSERT_TRUE(store.commit("gpu0", some_record(3)));
    ASSERT_TRUE(store.commit("gpu0", some_record(4)));
    EXPECT_EQ(reload(state), known_to(store));
    EXPECT_EQ(store.gpu("gpu0"), some_record(4));
}

TEST(StateStore, ReadOnlyDiskRefusesChangesAndIsReadAsItIs) {
    FakeState state;
    StateStore store(state);
    store.load();
    ASSERT_TRUE(store.commit("gpu0", some_record(1)));
    const auto before = state.files;
    state.is_read_only = true;
    StateStore next(state);
    next.load();
    EXPECT_FALSE(next.is_read_only()) << "the files are sound";
    const auto refused = next.commit("gpu0", some_record(2));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::StateNotWritten);
    EXPECT_EQ(refused.error().cause, "as the test wants") << "nothing was written";
    EXPECT_EQ(next.gpu("gpu0"), some_record(1));
    EXPECT_EQ(state.files, before);
    state.is_read_only = false;
    EXPECT_TRUE(next.commit("gpu0", some_record(2)));
    EXPECT_EQ(reload(state), known_to(next));
}

TEST(StateStore, AfterAFailedSyncTheOldFileIsWrittenBack) {
    FakeState state;
    StateStore store(state);
    store.load();
    ASSERT_TRUE(store.commit("gpu0", some_record(1)));
    ASSERT_TRUE(store.commit("gpu0", some_record(2)));
    int points = 0;
    state.on_point = [&] { state.is_sync_failing = ++points == 5; };
    const auto refused = store.commit("gpu0", some_record(3));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().cause, "as the test wants") << "it was taken back";
    EXPECT_EQ(store.gpu("gpu0"), some_record(2));
    EXPECT_EQ(reload(state), known_to(store));
    EXPECT_EQ(decode_gpu(state.files.at("gpus/gpu0.json.bak"))->record, some_record(2))
        << "a refused change is no copy";
    ASSERT_TRUE(store.commit("gpu0", some_record(4)));
    EXPECT_EQ(reload(state), known_to(store));
}

TEST(StateStore, AfterAFailedSyncOfTheFirstFileThereIsNone) {
    FakeState state;
    StateStore store(state);
    store.load();
    int points = 0;
    state.on_point = [&] { state.is_sync_failing = ++points == 4; };
    ASSERT_FALSE(store.commit("gpu0", some_record(3)));
    EXPECT_EQ(points, 6) << "the file was there, and was removed";
    EXPECT_TRUE(state.files.empty());
    EXPECT_EQ(reload(state), Known{});
}

/// The rename happens, and then the disk fails and goes read-only.
TEST(StateStore, AChangeThatCannotBeTakenBackIsSaidToBePossiblyThere) {
    FakeState state;
    StateStore store(state);
    store.load();
    ASSERT_TRUE(store.commit("gpu0", some_record(1)));
    int points = 0;
    state.on_point = [&] {
        if (++points == 5) state.is_sync_failing = state.is_read_only = true;
    };
    const auto refused = store.commit("gpu0", some_record(3));
    state.on_point = nullptr;
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::StateNotWritten);
    EXPECT_THAT(refused.error().cause, HasSubstr("may find this change made"));
    EXPECT_EQ(store.gpu("gpu0"), some_record(1));
    EXPECT_EQ(reload(state).gpus.at("gpu0"), some_record(3)) << "as it says";
    state.is_sync_failing = state.is_read_only = false;
    ASSERT_TRUE(store.commit("gpu0", some_record(4)));
    EXPECT_EQ(reload(state), known_to(store)) << "the refused change does not come back";
}

TEST(StateStore, AnApplyIsDurableFromItsBeginningToItsEnd) {
    FakeState state;
    StateStore store(state);
    store.load();
    ASSERT_TRUE(store.commit_apply(some_apply()));
    EXPECT_EQ(reload(state).apply, some_apply());
    ASSERT_TRUE(store.commit("gpu0", some_record()));
    EXPECT_EQ(reload(state), known_to(store));
    const int stores = state.stores;
    ASSERT_TRUE(store.commit_apply(store.apply()));
    EXPECT_EQ(state.stores, stores) << "nothing has changed";
    ApplyIntent back = some_apply();
    back.rollback_reason = "step 2 of 4 was refused";
    ASSERT_TRUE(store.commit_apply(back));
    EXPECT_EQ(reload(state).apply, back);
    state.is_read_only = true;
    EXPECT_EQ(store.commit_apply(std::nullopt).error().id, ErrorId::StateNotWritten);
    EXPECT_TRUE(store.apply());
    state.is_read_only = false;
    ASSERT_TRUE(store.commit_apply(std::nullopt));
    EXPECT_FALSE(reload(state).apply);
    EXPECT_EQ(reload(state).gpus.at("gpu0"), some_record());
}

TEST(StateStore, AnEndOfAnApplyThatWasNotSyncedIsTakenBack) {
    FakeState state;
    StateStore store(state);
    store.load();
    ASSERT_TRUE(store.commit_apply(some_apply()));
    int points = 0;
    state.on_point = [&] { state.is_sync_failing = ++points == 2; };
    const auto refused = store.commit_apply(std::nullopt);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().cause, "as the test wants");
    EXPECT_EQ(reload(state).apply, some_apply());
    EXPECT_EQ(store.apply(), some_apply());
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
    state.is_full = state.is_sync_failing = false;
    return was_killed;
}

/// Twelve changes with everything in between that a store does: first files, a full disk, a failed
/// sync, an apply that begins, turns back and ends. `states` gets each one that may be found.
void live(FakeState& state, std::vector<Known>& states) {
    StateStore store(state);
    store.load();
    if (store.is_read_only()) throw std::logic_error("not to be read");
    states.push_back(known_to(store));
    for (std::uint32_t i = 1; i <= 12; ++i) {
        state.is_full = i == 4;
        state.is_sync_failing = i == 7 || i == 9;
        Known next = known_to(store);
        std::function<Result<>()> change;
        if (i % 3 != 0) {
            const std::string id = "gpu" + std::to_string(i % 2);
            next.gpus[id] = some_record(i);
            change = [&store, id, i] { return store.commit(id, some_record(i)); };
        } else {
            next.apply = i == 12 ? std::nullopt : std::optional(some_apply());
            if (i == 6) next.apply->rollback_reason = "cancelled";
            change = [&store, apply = next.apply] { return store.commit_apply(apply); };
        }
        states.push_back(next);
        if (!change()) states.pop_back();
        if (known_to(store) != states.back()) throw std::logic_error("memory is ahead");
    }
}

TEST(StateStore, KilledAtAnyPointTheNextOneFindsTheOldOrTheNewState) {
    int kills = 0;
    for (bool was_killed = true; was_killed; ++kills) {
        FakeState state;
        std::vector<Known> states;
        was_killed = run_killed_at(state, kills, [&] { live(state, states); });
        const Known found = reload(state);
        const bool is_new = found == states.back();
        const bool is_old = states.size() > 1 && found == states[states.size() - 2];
        ASSERT_TRUE(is_new || is_old) << kills;
        StateStore next(state);
        next.load();
        ASSERT_TRUE(next.commit("gpu0", some_record(99))) << kills << ": it can be gone on from";
        ASSERT_TRUE(next.commit_apply(std::nullopt)) << kills;
        ASSERT_EQ(reload(state), known_to(next)) << kills;
    }
    EXPECT_GE(kills, 50) << "points there are";
}

TEST(StateStore, KilledAgainWhileItGoesOnItStillFindsTheOldOrTheNewState) {
    for (int first = 0; first < 60; ++first)
        for (int second = 0;; ++second) {
            FakeState state;
            std::vector<Known> states;
            run_killed_at(state, first, [&] { live(state, states); });
            const Known before = reload(state);
            Known after = before;
            after.gpus["gpu0"] = some_record(99);
            const bool was_killed = run_killed_at(state, second, [&] {
                StateStore store(state);
                store.load();
                static_cast<void>(store.commit("gpu0", some_record(99)));
            });
            const Known found = reload(state);
            ASSERT_TRUE(found == before || found == after) << first << " " << second;
            if (!was_killed) break;
        }
}

}  // namespace
}  // namespace vgpu::daemon
