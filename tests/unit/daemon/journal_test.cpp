// SPDX-License-Identifier: MIT
//
// The journal and recovery as pure functions of bytes: whatever happened to a journal, what is read
// from it is a state that once was, or nothing at all.
#include "daemon/service/state/journal.h"

#include "daemon/service/state/crc32c.h"
#include "daemon/service/state/record_json.h"
#include "daemon/service/state/recovery.h"
#include "daemon/service/state/store.h"

#include <gmock/gmock.h>
#include <algorithm>
#include <map>

namespace vgpu::daemon {
namespace {

using ::testing::HasSubstr;

TEST(Crc32c, HasTheValuesOfRfc3720) {
    EXPECT_EQ(crc32c(""), 0u);
    EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
    EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
    EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
    EXPECT_EQ(crc32c("6789", crc32c("12345")), 0xe3069283u) << "in pieces";
}

/// A checkpoint, and a journal of four changes after it; every state there was, by generation.
struct History {
    static constexpr std::uint64_t kFirst = 7;

    History() {
        Records records;
        records.generation = kFirst;
        records.gpus["gpu0"].quantum_us = 1000;
        image = {.checkpoint = encode_records(records),
                 .journal = encode_journal_head(kFirst),
                 .checkpoint_path = "C",
                 .journal_path = "J"};
        states[kFirst] = records;
        for (std::uint32_t i = 1; i <= 4; ++i) change(records, i);
    }

    void change(Records& records, std::uint32_t i) {
        const Changes before = records.gpus;
        const std::string id = "gpu" + std::to_string(i % 2);
        GpuRecord& gpu = records.gpus[id];
        gpu.vfs[i] = {.vf = i, .name = "vf" + std::to_string(i), .uuid = make_uuid(), .weight = i};
        ++records.generation;
        starts.push_back(image.journal->size());
        *image.journal += encode_record(records.generation, encode_changes(before, {{id, gpu}}));
        states[records.generation] = records;
    }

    [[nodiscard]] Result<Recovered> recover_from(std::string journal) const {
        StateImage damaged = image;
        damaged.journal = std::move(journal);
        return recover(damaged);
    }
    /// A state that was, or a refusal.
    [[nodiscard]] bool is_honest(const Result<Recovered>& recovered) const {
        if (!recovered) return !recovered.error().cause.empty();
        const auto was = states.find(recovered->records.generation);
        return was != states.end() && was->second == recovered->records;
    }

    StateImage image;
    std::map<std::uint64_t, Records> states;
    std::vector<std::size_t> starts;  ///< of the records
};

TEST(Journal, IsReplayedToItsLastRecord) {
    const History history;
    const auto recovered = recover(history.image);
    ASSERT_TRUE(recovered) << recovered.error().cause;
    EXPECT_EQ(recovered->records, history.states.rbegin()->second);
    EXPECT_TRUE(recovered->is_appendable);
    EXPECT_EQ(recovered->journal_end, history.image.journal->size());
    EXPECT_EQ(recovered->note, "");
}

TEST(Journal, ZeroesThatWereReservedAreOneTornRecordToWhoeverTakesThemForContent) {
    const History history;
    std::string reserved = *history.image.journal;
    reserved.resize(StateStore::kJournalBytes);
    const auto recovered = history.recover_from(reserved);
    ASSERT_TRUE(recovered) << recovered.error().cause;
    EXPECT_EQ(recovered->records, history.states.rbegin()->second);
    EXPECT_EQ(recovered->journal_end, history.image.journal->size());
}

TEST(Journal, CutAnywhereGivesTheStateOfItsWholeRecordsAndSaysWhatWasDropped) {
    const History history;
    const std::string& whole = *history.image.journal;
    for (std::size_t length = 0; length < whole.size(); ++length) {
        const auto recovered = history.recover_from(whole.substr(0, length));
        if (length < history.starts.front()) {
            ASSERT_FALSE(recovered) << "without a whole head nothing can be told, " << length;
            continue;
        }
        ASSERT_TRUE(recovered) << length << " " << recovered.error().cause;
        const auto begun = std::upper_bound(history.starts.begin(), history.starts.end(), length);
        const auto kept = static_cast<std::uint64_t>(begun - history.starts.begin()) - 1;
        ASSERT_EQ(recovered->records, history.states.at(History::kFirst + kept)) << length;
        const bool is_torn = length != history.starts.at(kept);
        ASSERT_EQ(!recovered->note.empty(), is_torn) << length;
        ASSERT_EQ(recovered->is_appendable, !is_torn) << length;
    }
}

TEST(Journal, EveryFlippedByteIsRefusedOrCostsNoMoreThanTheLastRecord) {
    const History history;
    const std::string& whole = *history.image.journal;
    for (std::size_t at = 0; at < whole.size(); ++at)
        for (const int mask : {0x01, 0x10, 0x80, 0xff}) {
            std::string damaged = whole;
            damaged[at] = static_cast<char>(damaged[at] ^ mask);
            const auto recovered = history.recover_from(damaged);
            ASSERT_TRUE(history.is_honest(recovered)) << at << " " << mask;
            if (at < history.starts.back()) {
                ASSERT_FALSE(recovered) << at << " " << mask << ": whole records follow";
                continue;
            }
            ASSERT_TRUE(recovered);
            ASSERT_EQ(recovered->records, history.states.at(History::kFirst + 3));
            ASSERT_NE(recovered->note, "");
        }
}

/// The disk may have written the blocks of the last records in any order, or lost one.
TEST(Journal, BlocksOfTheLastRecordsLostOrExchangedAreNeverTakenForAnotherState) {
    constexpr std::size_t kBlock = 32;
    const History history;
    const std::string& whole = *history.image.journal;
    const std::size_t from = history.starts.at(2);
    for (std::size_t a = from; a + kBlock <= whole.size(); a += kBlock) {
        std::string zeroed = whole;
        zeroed.replace(a, kBlock, kBlock, '\0');
        ASSERT_TRUE(history.is_honest(history.recover_from(zeroed))) << a;
        std::string missing = whole;
        missing.erase(a, kBlock);
        ASSERT_TRUE(history.is_honest(history.recover_from(missing))) << a;
        for (std::size_t b = a + kBlock; b + kBlock <= whole.size(); b += kBlock) {
            std::string exchanged = whole;
            exchanged.replace(a, kBlock, whole, b, kBlock);
            exchanged.replace(b, kBlock, whole, a, kBlock);
            ASSERT_TRUE(history.is_honest(history.recover_from(exchanged))) << a << " " << b;
        }
    }
}

TEST(Journal, WholeRecordsMissingRepeatedOrExchangedAreRefused) {
    const History history;
    const std::string& whole = *history.image.journal;
    const std::size_t second = history.starts[1], third = history.starts[2],
                      fourth = history.starts[3];
    const std::string head = whole.substr(0, second);
    const std::string two = whole.substr(second, third - second);
    const std::string three = whole.substr(third, fourth - third);
    const std::string four = whole.substr(fourth);
    const auto missing = history.recover_from(head + two + four);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().id, ErrorId::StateCorrupt);
    EXPECT_EQ(missing.error().cause, "the journal J is damaged at offset " + std::to_string(third) +
                                         ": generation 11 follows generation 9");
    EXPECT_FALSE(history.recover_from(head + two + two));
    EXPECT_FALSE(history.recover_from(head + three + two + four));
    EXPECT_FALSE(history.recover_from(head + two + four + three));
}

TEST(Journal, DamageInTheMiddleNamesFileAndOffsetAndWhatFollows) {
    const History history;
    std::string damaged = *history.image.journal;
    char& letter = damaged[history.starts[1] + kRecordHead + 3];
    letter = static_cast<char>(letter ^ 0x20);
    const auto refused = history.recover_from(damaged);
    ASSERT_FALSE(refused);
    EXPECT_EQ(text_of(refused.error()),
              "VGPU-503: the journal J is damaged at offset " + std::to_string(history.starts[1]) +
                  ": no sound record there, but one follows at offset " +
                  std::to_string(history.starts[2]) +
                  ". Stop vgpud, run 'vgpud --recover-state' and start it again; "
                  "docs/durable-state.md says what that keeps.");
}

TEST(Journal, MoreRubbishThanOneRecordHasIsRefused) {
    const History history;
    const auto refused =
        history.recover_from(*history.image.journal + std::string(kMaxPayload + 100, 'x'));
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().cause, HasSubstr("too many to be one that was torn"));
    EXPECT_TRUE(history.recover_from(*history.image.journal + std::string(100, 'x')));
}

TEST(Journal, OfANewerVersionIsRefusedClearly) {
    const History history;
    const auto refused =
        history.recover_from(encode_record(7, R"({"schema":"vgpud-journal","version":4})"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::StateNewer);
    EXPECT_EQ(refused.error().cause,
              "the journal J has version 4; this vgpud knows versions 1 to 3");
    EXPECT_FALSE(history.recover_from(encode_record(7, R"({"schema":"x","version":1})")));
    EXPECT_FALSE(history.recover_from(encode_record(7, "[]")));
    EXPECT_FALSE(history.recover_from(encode_record(7, "")));
}

/// As the first version was written: records of GPUs are whole.
TEST(Journal, OfTheFirstVersionIsReadAndNotGoneOnWith) {
    const History history;
    const auto recovered = history.recover_from(
        encode_journal_head(7, 1) +
        encode_record(8, R"({"gpus":{"gpu0":{"claims":3,"max_gap_ms":60,"quantum_us":2000,
            "scrubs":[{"generation":5,"vf":2}],"vfs":[]}}})") +
        encode_record(9, R"({"gpus":{"gpu0":{"claims":4,"max_gap_ms":70,"quantum_us":2000,
            "scrubs":[],"vfs":[]}}})"));
    ASSERT_TRUE(recovered) << recovered.error().cause;
    const GpuRecord wanted{
        .quantum_us = 2000, .max_gap_ms = 70, .vfs = {}, .scrubs = {}, .claims = 4};
    EXPECT_EQ(recovered->records.gpus.at("gpu0"), wanted);
    EXPECT_EQ(recovered->records.generation, 9u);
    EXPECT_FALSE(recovered->is_appendable) << "an older vgpud would read what is added wrongly";
}

TEST(Journal, ARecordHoldsWhatChangedAndNoMore) {
    GpuRecord before;
    for (std::uint32_t i = 1; i <= 16; ++i)
        before.vfs[i] = {.vf = i, .name = "vf" + std::to_string(i), .uuid = make_uuid()};
    before.scrubs = {{3, 7}};
    GpuRecord after = before;
    after.vfs[2].weight = 700;
    after.vfs.erase(5);
    const std::string text = encode_changes({{"gpu0", before}}, {{"gpu0", after}});
    EXPECT_THAT(text, HasSubstr("vf2"));
    EXPECT_THAT(text, ::testing::Not(HasSubstr("vf3")));
    EXPECT_LT(text.size(), 400u);
    Records records{.gpus = {{"gpu0", before}, {"gpu1", before}}};
    ASSERT_TRUE(apply_changes(text, kJournalVersion, records));
    EXPECT_EQ(records.gpus.at("gpu0"), after);
    EXPECT_EQ(records.gpus.at("gpu1"), before);
    after.scrubs = {{4, 1}};
    ASSERT_TRUE(
        apply_changes(encode_changes(records.gpus, {{"gpu0", after}}), kJournalVersion, records));
    EXPECT_EQ(records.gpus.at("gpu0"), after);
}

/// Two GPUs; what is wanted is new, what was there has all.
ApplyIntent some_apply() {
    const VfDefinition web{.name = "web",
                           .shape = {.vram_bytes = 64u << 20, .security = {.guard_limits = {5}}},
                           .weight = 300,
                           .custody = {.scrub = ScrubPolicy::Release},
                           .profile = "small"};
    VfDefinition old_web = web;
    old_web.name = "www";
    old_web.uuid = make_uuid();
    old_web.qos.min_pct = 12.5;
    const OwnerRecord owner{.name = "slurm:1", .generation = 4, .since = UnixTime{1000}};
    return {.label = "night",
            .is_forced = true,
            .wanted = {{.gpu = "gpu0", .quantum_us = 2000, .vfs = {{.definition = web, .vf = 2}}},
                       {.gpu = "gpu1"}},
            .before = {{.gpu = "gpu0",
                        .quantum_us = 6000,
                        .max_gap_ms = 60,
                        .vfs = {{.definition = old_web, .vf = 3, .owner = owner, .is_open = true}}},
                       {.gpu = "gpu1", .quantum_us = 6000, .max_gap_ms = 60}}};
}

TEST(Journal, AnApplyIsThereFromItsRecordToTheOneOfItsEnd) {
    const std::optional<ApplyIntent> forward = some_apply(), none;
    std::optional<ApplyIntent> back = forward;
    back->back_cause = "step 2 of 4 was refused";
    Records records;
    for (const auto& apply : {forward, back}) {
        ASSERT_TRUE(apply_changes(encode_changes({}, {}, &apply), kJournalVersion, records));
        EXPECT_EQ(records.apply, apply);
        EXPECT_EQ(*decode_records(encode_records(records)), records) << "also in a checkpoint";
    }
    ASSERT_TRUE(apply_changes(encode_changes({}, {{"gpu0", {}}}), kJournalVersion, records));
    EXPECT_EQ(records.apply, back) << "other changes say nothing about it";
    const Records before = records;
    EXPECT_FALSE(apply_changes(R"({"gpus":{},"apply":{"label":"x"}})", kJournalVersion, records));
    EXPECT_EQ(records, before);
    ASSERT_TRUE(apply_changes(encode_changes({}, {}, &none), kJournalVersion, records));
    EXPECT_FALSE(records.apply);
}

/// An older vgpud would pass over the apply that is under way.
TEST(Journal, OfTheSecondVersionIsReadAndNotGoneOnWith) {
    const History history;
    const auto recovered = history.recover_from(
        encode_journal_head(7, 2) +
        encode_record(8, R"({"gpus":{"gpu0":{"claims":3,"max_gap_ms":60,"quantum_us":2000}}})"));
    ASSERT_TRUE(recovered) << recovered.error().cause;
    EXPECT_EQ(recovered->records.gpus.at("gpu0").quantum_us, 2000u);
    EXPECT_FALSE(recovered->is_appendable);
}

TEST(Journal, AChangeThatDoesNotFitChangesNothing) {
    GpuRecord gpu;
    gpu.vfs[1] = {.vf = 1, .name = "one", .uuid = make_uuid()};
    const Records known{.gpus = {{"gpu0", gpu}}};
    Records records = known;
    const std::string good = R"("gpu0":{"claims":0,"max_gap_ms":9,"quantum_us":2000,"gone":[1]})";
    const std::string bad = R"("gpu1":{"claims":0,"max_gap_ms":9,"quantum_us":2000,"gone":[1]})";
    EXPECT_FALSE(apply_changes("{\"gpus\":{" + good + "," + bad + "}}", kJournalVersion, records));
    EXPECT_EQ(records, known);
    EXPECT_TRUE(apply_changes("{\"gpus\":{" + good + "}}", kJournalVersion, records));
    EXPECT_TRUE(records.gpus.at("gpu0").vfs.empty());
}

TEST(Journal, SoundRecordsThatSayNothingKnownAreRefused) {
    const History history;
    for (const std::string payload :
         {"", "{}", "[]", R"({"gpus":[]})", R"({"gpus":{"gpu0":{}}})",
          R"({"gpus":{"gpu0":{"quantum_us":1,"max_gap_ms":1,"gone":[1]}}})",
          R"({"gpus":{"gpu0":{"quantum_us":1,"max_gap_ms":1,"vfs":[{"vf":17}],"scrubs":[]}}})"}) {
        const auto refused =
            history.recover_from(encode_journal_head(7) + encode_record(8, payload));
        ASSERT_FALSE(refused) << payload;
        EXPECT_EQ(refused.error().id, ErrorId::StateCorrupt);
        EXPECT_THAT(refused.error().cause, HasSubstr("the journal J is damaged at offset"));
    }
}

TEST(Recovery, ACheckpointAheadOfItsJournalIsTheEndOfAnInterruptedOne) {
    const History history;
    StateImage image = history.image;
    image.checkpoint = encode_records(history.states.at(9));
    const auto between = recover(image);
    ASSERT_TRUE(between);
    EXPECT_EQ(between->records, history.states.at(11));
    EXPECT_TRUE(between->is_appendable);
    Records newer = history.states.at(11);
    newer.generation = 12;
    image.checkpoint = encode_records(newer);
    const auto ahead = recover(image);
    ASSERT_TRUE(ahead);
    EXPECT_EQ(ahead->records, newer);
    EXPECT_FALSE(ahead->is_appendable) << "the journal would have a gap";
}

TEST(Recovery, FilesThatDoNotBelongTogetherAreRefused) {
    const History history;
    StateImage no_journal = history.image;
    no_journal.journal.reset();
    EXPECT_THAT(recover(no_journal).error().cause, HasSubstr("the journal J is missing"));
    StateImage no_checkpoint = history.image;
    no_checkpoint.checkpoint.reset();
    EXPECT_EQ(recover(no_checkpoint).error().cause,
              "the state file C is missing, but there is the journal J with generations 7 to 11");
    StateImage old_checkpoint = history.image;
    old_checkpoint.checkpoint = encode_records({.generation = 6, .gpus = {}});
    EXPECT_THAT(
        recover(old_checkpoint).error().cause,
        HasSubstr("begins after generation 7, but the state file C ends with generation 6"));
}

TEST(Recovery, AFirstStartThatWasInterruptedGoesOn) {
    const StateImage image{.checkpoint = {},
                           .journal = encode_journal_head(0),
                           .checkpoint_path = "C",
                           .journal_path = "J"};
    const auto recovered = recover(image);
    ASSERT_TRUE(recovered);
    EXPECT_EQ(recovered->records, Records{});
    EXPECT_FALSE(recovered->is_appendable);
}

}  // namespace
}  // namespace vgpu::daemon
