// SPDX-License-Identifier: MIT
//
// Recordings of what vgpud decided: replayed, damaged, exported. They are of simulations, which run
// the same GpuModel.
#include "daemon/simulator/recording.h"

#include "daemon/service/trace/recorder.h"
#include "daemon/simulator/comparison.h"
#include "daemon/simulator/recording_export.h"
#include "daemon/simulator/rng.h"
#include "daemon/simulator/scenario.h"
#include "tests/support/hostile_recording.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <cmath>
#include <nlohmann/json.hpp>

namespace vgpu::simulator {
namespace {

using daemon::GpuSchedule;
using daemon::Nanoseconds;
using ::testing::HasSubstr;
namespace trace = daemon::trace;

ProductOutcome outcome_of(const std::string& document) {
    const auto scenario = parse_scenario(document);
    EXPECT_TRUE(scenario) << scenario.error();
    auto outcome = simulate(*scenario);
    EXPECT_TRUE(outcome) << outcome.error();
    return std::move(*outcome);
}

std::string bytes_of(const std::string& document) {
    return outcome_of(document).recording;
}

Recording recording_of(const std::string& bytes) {
    auto recording = read_recording(bytes);
    EXPECT_TRUE(recording) << recording.error();
    return recording ? std::move(*recording) : Recording{};
}

/// VFs that come and go, sleep, are capped and have reservations; more than a ring keeps.
std::string lively_document() {
    return R"({"duration_ms": 20000, "seed": 7, "vfs": [
        {"name": "busy", "weight": 300, "quantum_ms": 2, "max_gap_ms": 500},
        {"name": "other", "weight": 100, "quantum_ms": 2, "max_gap_ms": 500},
        {"name": "capped", "max_pct": 20, "burst_ms": 10, "quantum_ms": 2, "max_gap_ms": 500},
        {"name": "reserved", "min_pct": 10, "latency_ms": 20, "quantum_ms": 2, "max_gap_ms": 500,
         "work": {"arrivals": "periodic", "work_ms": 1.5, "period_ms": 20}},
        {"name": "bursty", "quantum_ms": 2, "max_gap_ms": 500,
         "work": {"arrivals": "bursty", "work_ms": 8, "period_ms": 90}},
        {"name": "late", "joins_later": true, "quantum_ms": 2, "max_gap_ms": 500}],
        "changes": [{"at_ms": 18000, "vf": "late", "what": "join", "weight": 200},
                    {"at_ms": 18700, "vf": "other", "what": "weight", "weight": 900},
                    {"at_ms": 19300, "vf": "late", "what": "leave"}]})";
}

/// One of each kind, with members that are all different from their defaults.
std::vector<trace::Event> one_of_each() {
    const GpuSchedule::Member member{
        .vf = 3,
        .weight = 7,
        .quantum_us = 2500,
        .qos = {.min_pct = 12.5,
                .max_pct = 80,
                .burst_ms = 4,
                .latency_ms = 30,
                .max_gap_ms = 90,
                .preempt_timeout_ms = 2,
                .mode = daemon::scheduler::SlotMode::Strict,
                .priority_class = daemon::scheduler::PriorityClass::Low}};
    constexpr Nanoseconds kAt{123'456'789'012'345};
    return {
        trace::MembersSet{.at = kAt, .members = {member}, .max_gap_ms = 77, .names = {{3, "c"}}},
        trace::Ran{.end = kAt, .vf = 2, .ns = 5'000'000, .reserved_ns = 1'000'000},
        trace::Woke{.at = kAt, .vf = 4},
        trace::WentIdle{.at = kAt, .vf = 5, .is_inactive = true},
        trace::Throttled{.at = kAt, .vf = 6},
        trace::Missed{.vf = 7, .ns = 8, .reserved_ns = 9},
        trace::Restarted{},
        trace::TableMade{.at = kAt, .generation = 10, .is_made = true, .digest = 0xFFFF'FFFE},
        trace::TableInstalled{.at = kAt},
        trace::TableRefused{.at = kAt},
        trace::Annotated{.at = kAt, .vf = 0, .kind = "reset", .text = "it hung"}};
}

TEST(Recording, EveryKindOfEventIsReadAsItWasWritten) {
    const std::vector<trace::Event> events = one_of_each();
    ASSERT_EQ(events.size(), std::variant_size_v<trace::Event>);
    for (const trace::Event& event : events) {
        Nanoseconds written{5}, read{5}, again{5};
        const trace::Json json = trace::json_of(event, written);
        const trace::Event back = trace::event_of(json, read);
        EXPECT_EQ(back.index(), event.index());
        EXPECT_EQ(trace::json_of(back, again), json);
        EXPECT_EQ(written, read) << json;
    }
}

TEST(Recording, ReplayedItDecidesTheSame) {
    const Recording recording = recording_of(bytes_of(lively_document()));
    const Replay replayed = replay(recording);
    EXPECT_EQ(replayed.different, 0u) << replayed.first_difference;
    EXPECT_EQ(replayed.gaps, 0u);
    EXPECT_GT(replayed.tables, 40u);
    EXPECT_GT(replayed.events, 10'000u);
    EXPECT_GE(recording.chunks.size(), 5u) << "the schedule is compared at the end of each";
    EXPECT_FALSE(recording.is_cut);
}

TEST(Recording, WithOtherTextsItIsTheSameForAReplay) {
    const std::string bytes = bytes_of(lively_document());
    const auto replaced = with_texts(bytes, [](const std::string& text) {
        return text == "capped" ? "a name that is much longer than it was" : text;
    });
    ASSERT_TRUE(replaced) << replaced.error();
    EXPECT_THAT(*replaced, ::testing::Not(HasSubstr("capped")));
    const Recording recording = recording_of(*replaced);
    EXPECT_EQ(name_in(recording, 3), "a name that is much longer than it was");
    EXPECT_EQ(name_in(recording, 1), "busy");
    EXPECT_EQ(replay(recording).different, 0u);
    EXPECT_EQ(recording.chunks.size(), recording_of(bytes).chunks.size());
    EXPECT_FALSE(with_texts("no trace", [](const std::string& text) { return text; }));
}

TEST(Recording, ADifferentRunLeadsToADifferentTableOrSchedule) {
    Recording recording = recording_of(bytes_of(lively_document()));
    auto& events = recording.chunks.at(1).events;
    const auto run = std::find_if(events.begin(), events.end(), [](const trace::Event& event) {
        return std::holds_alternative<trace::Ran>(event);
    });
    ASSERT_NE(run, events.end());
    std::get<trace::Ran>(*run).ns += 100'000;
    EXPECT_GT(replay(recording).different, 0u);
}

TEST(Recording, AMissingChunkIsAGapAndNotADifference) {
    Recording recording = recording_of(bytes_of(lively_document()));
    recording.chunks.erase(recording.chunks.begin() + 1);
    const Replay replayed = replay(recording);
    EXPECT_EQ(replayed.gaps, 1u);
    EXPECT_EQ(replayed.different, 0u) << replayed.first_difference;
}

TEST(Recording, CutAtAnyByteItsBeginningCanStillBeRead) {
    const std::string bytes = bytes_of(R"({"duration_ms": 40, "vfs": [{"count": 2}]})");
    const Recording whole = recording_of(bytes);
    std::size_t whole_items = 0;
    for (std::size_t size = 1; size < bytes.size(); ++size) {
        const auto recording = read_recording(std::string_view(bytes).substr(0, size));
        if (!recording) {
            EXPECT_THAT(recording.error(), HasSubstr("there is no chunk")) << size;
            continue;
        }
        whole_items += recording->is_cut ? 0 : 1;
        EXPECT_EQ(replay(*recording).different, 0u) << size;
    }
    EXPECT_GT(whole_items, 10u);
    EXPECT_FALSE(whole.is_cut);
}

TEST(Recording, WhatIsNoRecordingIsRefusedWithItsPlace) {
    const auto refusal = [](const std::string& bytes) {
        const auto recording = read_recording(bytes);
        return recording ? std::string("none") : recording.error();
    };
    EXPECT_THAT(refusal(""), HasSubstr("there is no chunk"));
    EXPECT_THAT(refusal("{\"json\": 1}"), HasSubstr("byte 0"));
    EXPECT_THAT(refusal(std::string(1'000'000, '\x81')), HasSubstr("byte 0"));
    const std::string good = bytes_of(R"({"duration_ms": 40, "vfs": [{}]})");
    EXPECT_THAT(refusal(good + "\xFF\x01"), HasSubstr(fmt::format("byte {}", good.size())));
    const auto with_version = [&](std::uint32_t version) {
        trace::Json head{{"vgpu_trace", version}};
        const auto bytes = trace::Json::to_cbor(head);
        return std::string(bytes.begin(), bytes.end());
    };
    EXPECT_THAT(refusal(with_version(2)), HasSubstr("version 2; this vgpuctl reads version 4"));
}

TEST(Recording, TimesThatNoCalendarHasAreRefusedWithTheirValue) {
    const std::string good = bytes_of(R"({"duration_ms": 40, "vfs": [{}]})");
    const auto refusal = [&good](std::int64_t time) {
        const auto recording = read_recording(test::with_unix_time(good, time));
        return recording ? std::string("none") : recording.error();
    };
    constexpr std::int64_t kLast = 253'402'300'799;
    EXPECT_EQ(refusal(0), "none");
    EXPECT_EQ(refusal(kLast), "none");
    EXPECT_THAT(refusal(kLast + 1), HasSubstr("unix_time 253402300800 is not in 0 to "));
    EXPECT_THAT(refusal(std::int64_t{1} << 62), HasSubstr("unix_time 4611686018427387904 is not"));
    EXPECT_THAT(refusal(-1), HasSubstr("unix_time -1 is not"));
}

TEST(Recording, ItsTextsComeOutPrintable) {
    const std::string good =
        bytes_of(R"({"duration_ms": 40, "vfs": [{"name": "a"}, {"name": "b"}]})");
    const Recording recording = recording_of(test::with_hostile_texts(good));
    const std::string shown = test::kHostileWordsShown;
    EXPECT_EQ(recording.gpu, "gpu0" + shown);
    EXPECT_EQ(recording.vgpud, recording_of(good).vgpud + shown);
    EXPECT_EQ(name_in(recording, 1), "a" + shown);
    EXPECT_EQ(name_in(recording, 2), "b" + shown);
    ASSERT_FALSE(recording.chunks.empty() || recording.chunks.back().events.empty());
    const auto* annotated = std::get_if<trace::Annotated>(&recording.chunks.back().events.back());
    ASSERT_NE(annotated, nullptr);
    EXPECT_EQ(annotated->kind, "note" + shown);
    EXPECT_EQ(annotated->text, "words" + shown);
    EXPECT_EQ(replay(recording).different, 0u);
}

TEST(Recording, AnErrorQuotesWhatItQuotesPrintably) {
    const std::string good = bytes_of(R"({"duration_ms": 40, "vfs": [{}]})");
    const auto recording = read_recording(good + test::with_hostile_texts(good));
    ASSERT_FALSE(recording);
    EXPECT_THAT(recording.error(), HasSubstr("a chunk of gpu0?]0;owned"));
    EXPECT_TRUE(test::is_harmless(recording.error())) << recording.error();
}

/// Items of events that a schedule could not survive.
TEST(Recording, EventsOutOfAllBoundsAreRefused) {
    const auto refuses = [](const std::string& text) {
        const trace::Json json = trace::Json::parse(text);
        Nanoseconds last{0};
        try {
            static_cast<void>(trace::event_of(json, last));
            return false;
        } catch (const trace::BadTrace&) {
            return true;
        }
    };
    EXPECT_TRUE(refuses("[1, 0, 17, 5, 0]")) << "there are 16 VFs";
    EXPECT_TRUE(refuses("[1, 0, 1, -5, 0]")) << "a run shorter than nothing";
    EXPECT_TRUE(refuses("[1, 0, 1, 5]")) << "a member is missing";
    EXPECT_TRUE(refuses("[1, 0, 1, 5, 0, 0]")) << "one too many";
    EXPECT_TRUE(refuses("[99]")) << "no such kind";
    EXPECT_TRUE(refuses("[2, 18446744073709551615, 1]")) << "a time beyond 64 bits";
    EXPECT_TRUE(refuses("\"Ran\"")) << "no array";
    EXPECT_FALSE(refuses("[1, 0, 1, 5, 0]"));
}

TEST(Recording, FiguresAreThoseOfTheSimulation) {
    const ProductOutcome outcome = outcome_of(
        R"({"duration_ms": 1000, "vfs": [{"name": "a", "weight": 300, "quantum_ms": 2},
                                         {"name": "b", "weight": 100, "quantum_ms": 2}]})");
    const Recording recording = recording_of(outcome.recording);
    const RecordedFigures figures = figures_of(recording);
    ASSERT_EQ(figures.vfs.size(), 2u);
    EXPECT_EQ(name_in(recording, figures.vfs.begin()->first), "a");
    const double share = static_cast<double>(figures.vfs.begin()->second.service_ns) /
                         static_cast<double>(figures.service_ns);
    EXPECT_NEAR(share, 0.75, 0.01);
    EXPECT_LE(figures.vfs.begin()->second.longest_run_ns, 2'100'000);
}

TEST(Recording, AsAScenarioItsVfsGetWhatTheyGot) {
    const std::string bytes = bytes_of(
        R"({"duration_ms": 8000, "seed": 3, "vfs": [
            {"name": "a", "weight": 300, "quantum_ms": 2},
            {"name": "b", "weight": 100, "quantum_ms": 2},
            {"name": "c", "quantum_ms": 2,
             "work": {"arrivals": "bursty", "work_ms": 4, "period_ms": 40}}]})");
    const Recording recording = recording_of(bytes);
    const RecordedFigures recorded = figures_of(recording);
    const ProductOutcome again = outcome_of(scenario_text(recording));
    std::size_t i = 0;
    for (const auto& [vf, figures] : recorded.vfs) {
        const double share =
            static_cast<double>(figures.service_ns) / static_cast<double>(recorded.service_ns);
        const double now = static_cast<double>(again.figures.vfs[++i].service_ns) /
                           static_cast<double>(again.figures.service_ns);
        EXPECT_NEAR(now, share, 0.02) << name_in(recording, vf);
    }
    EXPECT_GT(again.figures.vfs[3].jobs, 50u);
}

TEST(Recording, AsAScenarioAGangHasItsSlotsWhenItHadThem) {
    const std::string bytes = bytes_of(
        R"({"duration_ms": 1000, "vfs": [
            {"name": "a", "mode": "gang", "min_pct": 20, "latency_ms": 40, "phase_ms": 30},
            {"name": "b", "quantum_ms": 2, "max_gap_ms": 200}]})");
    const Recording recording = recording_of(bytes);
    const auto json = nlohmann::json::parse(scenario_text(recording));
    const auto& gang = json.at("vfs").at(0);
    EXPECT_EQ(gang.at("mode"), "gang");
    const double begin_ms = ms_of(period_of(recording).begin);
    EXPECT_NEAR(std::fmod(begin_ms + gang.at("phase_ms").get<double>(), 40), 30, 1e-3);
    const ProductOutcome again = outcome_of(json.dump());
    EXPECT_NEAR(static_cast<double>(again.figures.vfs[1].service_ns) /
                    static_cast<double>(again.figures.elapsed_ns),
                0.2, 0.01);
}

TEST(Recording, VfsThatCameAndWentDoSoInTheScenario) {
    const auto json =
        nlohmann::json::parse(scenario_text(recording_of(bytes_of(lively_document()))));
    std::map<std::string, int> changes;
    for (const auto& change : json.at("changes"))
        ++changes[change.at("vf").get<std::string>() + " " + change.at("what").get<std::string>()];
    EXPECT_EQ(changes["late join"], 1);
    EXPECT_EQ(changes["late leave"], 1);
    EXPECT_EQ(changes["other weight"], 1);
    EXPECT_TRUE(parse_scenario(json.dump()));
}

TEST(Recording, TheTraceForPerfettoHasEveryRun) {
    const Recording recording = recording_of(bytes_of(lively_document()));
    const auto json = nlohmann::json::parse(chrome_trace(recording));
    double run_us = 0;
    std::map<std::string, int> phases;
    for (const auto& event : json.at("traceEvents")) {
        ++phases[event.at("ph").get<std::string>()];
        if (event.at("ph") == "X") run_us += event.at("dur").get<double>();
    }
    const RecordedFigures figures = figures_of(recording);
    EXPECT_NEAR(run_us, static_cast<double>(figures.service_ns) / 1000, 1);
    EXPECT_EQ(phases["X"], phases["C"]) << "lags after each run";
    EXPECT_GT(phases["i"], 100);
    EXPECT_GE(phases["M"], 7) << "names of the GPU and of the VFs";
}

TEST(Recording, ThePictureNamesEveryVfAndEscapesItsName) {
    Recording recording = recording_of(bytes_of(R"({"duration_ms": 200, "vfs": [{"count": 3}]})"));
    recording.names[recording.names.begin()->first] = "<&>";
    const std::string picture = svg_picture(recording);
    EXPECT_THAT(picture, HasSubstr("&lt;&amp;&gt;"));
    EXPECT_THAT(picture, HasSubstr("<rect x="));
    EXPECT_TRUE(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
}

TEST(ChunkRing, ReadingOnGivesEverythingOnceAndTellsWhatWasDropped) {
    trace::ChunkRing ring;
    EXPECT_TRUE(ring.read({})->bytes.empty());
    EXPECT_FALSE(ring.read(5));
    const trace::Json item = std::string(1000, 'x');
    std::uint64_t after = 0;
    std::size_t seen = 0, written = 0;
    for (int i = 0; i < 2000; ++i) {
        if (ring.needs_chunk()) ring.begin({{"head", i}});
        ring.append(item);
        if (i % 20 != 0) continue;
        const auto piece = ring.read(after);
        ASSERT_TRUE(piece);
        EXPECT_FALSE(piece->is_late);
        seen += piece->bytes.size();
        after = piece->next;
        written = after;
    }
    EXPECT_EQ(seen, written);
    EXPECT_TRUE(ring.read(0)->is_late);
    EXPECT_LE(ring.read(0)->bytes.size(),
              trace::ChunkRing::kChunks * (trace::ChunkRing::kChunkBytes + 1100));
    EXPECT_FALSE(ring.read(after + 1'000'000)) << "a place that there never was";
}

}  // namespace
}  // namespace vgpu::simulator
