// SPDX-License-Identifier: MIT
//
// Whatever vgpud writes, it reads back: state, journal, configurations and recordings, over random
// values, and over what a PF core that misbehaves makes it write.
#include "daemon/service/config/configuration.h"
#include "daemon/service/state/record_json.h"
#include "daemon/service/trace/event.h"
#include "tests/unit/daemon/world.h"

#include <gmock/gmock.h>
#include <limits>
#include <random>

namespace vgpu::daemon {
namespace {

using testing::FakePf;
using testing::World;
using trace::Json;

/// Values as they may be in records: numbers over their whole ranges, words as others chose them.
class Random {
public:
    explicit Random(unsigned seed) : random_(seed) {}

    std::uint64_t number(std::uint64_t min, std::uint64_t max) {
        return std::uniform_int_distribution<std::uint64_t>(min, max)(random_);
    }
    std::uint32_t number32(std::uint64_t min = 0, std::uint64_t max = UINT32_MAX) {
        return static_cast<std::uint32_t>(number(min, max));
    }
    std::int64_t signed_number(std::int64_t max) {
        return std::uniform_int_distribution<std::int64_t>(0, max)(random_);
    }
    double real(double min, double max) {
        return std::uniform_real_distribution<double>(min, max)(random_);
    }
    bool flag() { return number(0, 1) == 1; }
    std::string word(std::size_t max) {
        constexpr std::string_view kLetters = "abcXYZ019._-";
        std::string word(1, 'v');
        for (std::size_t i = number(0, max - 1); i > 0; --i)
            word += kLetters[number(0, kLetters.size() - 1)];
        return word;
    }
    Uuid uuid() {
        Uuid uuid{};
        for (auto& byte : uuid) byte = static_cast<std::uint8_t>(number(0, 255));
        return uuid;
    }

private:
    std::mt19937_64 random_;
};

VfQos qos_of(Random& random) {
    VfQos qos;
#define VF_SETTING(...)
#define VF_REAL(key, member, section, kind, property, help) \
    if (random.flag()) qos.key = random.real(kind.min, kind.max);
#include "schemas/vf_settings.def"
    qos.mode = static_cast<scheduler::SlotMode>(random.number(0, 2));
    qos.priority_class = static_cast<scheduler::PriorityClass>(random.number(0, 2));
    return qos;
}

VfAssignmentPolicy assignment_policy_of(Random& random) {
    return {.assignment_mode = static_cast<AssignmentMode>(random.number(0, 4)),
            .scrubs_on_release = random.flag()};
}

VfResources resources_of(Random& random) {
    VfResources resources{.vram_bytes = random.number(1, 1ull << 50),
                          .cu_mask = random.flag() ? 0 : random.number(1, UINT64_MAX),
                          .doorbell_pages = random.number32()};
    resources.security = {.preempt_timeout_us = random.number32(0, kMaxPreemptTimeoutUs),
                          .full_access_timeout_ms = random.number32(0, kMaxFullAccessTimeoutMs),
                          .is_exclusive_full_access = random.flag()};
    for (std::uint32_t& limit : resources.security.guard_limits)
        limit = random.flag() ? kGuardOff : random.number32(0, kMaxGuardLimit);
    return resources;
}

OwnerRecord owner_of(Random& random) {
    if (random.flag()) return {};
    OwnerRecord owner;
    owner.name = random.word(128);
    owner.generation = random.number(1, UINT64_MAX);
    owner.lease_s = random.number32(0, kMaxLeaseS);
    owner.since = UnixTime{random.signed_number(1ll << 40)};
    owner.expires = UnixTime{random.signed_number(1ll << 40)};
    owner.is_persistent = random.flag();
    return owner;
}

VfSpec spec_of(Random& random) {
    return {.name = random.word(63),
            .uuid = random.uuid(),
            .resources = resources_of(random),
            .weight = random.number32(scheduler::kMinWeight, scheduler::kMaxWeight),
            .quantum_us = random.flag()
                              ? 0
                              : random.number32(scheduler::kMinQuantumUs, scheduler::kMaxQuantumUs),
            .qos = qos_of(random),
            .assignment_policy = assignment_policy_of(random),
            .profile = random.flag() ? random.word(62) : "",
            .description = random.flag() ? "B\u00fcro \"1\", " + random.word(240) : ""};
}

VfRecord record_of(Random& random, std::uint32_t vf) {
    VfRecord record{.vf = vf,
                    .spec = spec_of(random),
                    .is_releasing = random.flag(),
                    .owner = owner_of(random)};
    if (random.flag())
        record.next = VfNext{.resources = resources_of(random),
                             .replaces = random.number32(),
                             .needs_scrub = random.flag()};
    return record;
}

GpuRecord gpu_of(Random& random) {
    GpuRecord gpu{.settings = {.quantum_us = random.number32(scheduler::kMinQuantumUs,
                                                             scheduler::kMaxQuantumUs),
                               .max_gap_ms = random.number32(1, 60'000)},
                  .claims = random.number(0, UINT64_MAX)};
    for (std::uint32_t vf = 1; vf <= VGPU_PF_MAX_VFS; ++vf) {
        if (random.flag()) gpu.vfs[vf] = record_of(random, vf);
        if (random.flag()) gpu.scrubs[vf] = random.number32();
    }
    return gpu;
}

std::vector<DesiredGpu> sections_of(Random& random) {
    std::vector<DesiredGpu> gpus;
    for (std::uint64_t i = random.number(0, 2); i > 0; --i) {
        DesiredGpu& gpu = gpus.emplace_back();
        gpu.gpu = random.word(20);
        if (random.flag()) gpu.scheduler.quantum_us = random.number32();
        if (random.flag()) gpu.scheduler.max_gap_ms = random.number32();
        for (std::uint64_t n = random.number(0, 3); n > 0; --n) {
            gpu.vfs.push_back({.spec = spec_of(random),
                               .vf = random.number32(0, VGPU_PF_MAX_VFS),
                               .owner = owner_of(random),
                               .is_open = random.flag()});
            if (random.flag()) gpu.vfs.back().spec.uuid = {};
        }
    }
    return gpus;
}

TEST(RoundTrip, OfTheFileOfAGpu) {
    for (unsigned seed = 0; seed < 50; ++seed) {
        Random random(seed);
        GpuFile file{.gpu = random.word(20),
                     .generation = random.number(0, UINT64_MAX),
                     .record = gpu_of(random)};
        if (random.flag())
            file.lease_time = LeaseTime{.boot = random.word(36),
                                        .base = UnixTime{random.signed_number(1ll << 40)},
                                        .reading = UnixTime{random.signed_number(1ll << 40)}};
        const auto read = decode_gpu(encode_gpu(file));
        ASSERT_TRUE(read) << seed << ": " << read.error().cause;
        EXPECT_EQ(*read, file) << seed;
    }
}

TEST(RoundTrip, OfTheFileOfAnApply) {
    for (unsigned seed = 0; seed < 50; ++seed) {
        Random random(seed);
        const ApplyIntent apply{
            .label = random.word(62),
            .is_forced = random.flag(),
            .rollback_reason = random.flag() ? "no \"space\" left for Büro 数据\n" : "",
            .after = sections_of(random),
            .before = sections_of(random)};
        const auto read = decode_apply(encode_apply(apply));
        ASSERT_TRUE(read) << seed << ": " << read.error().cause;
        EXPECT_EQ(*read, apply) << seed;
    }
}

Configuration configuration_of(Random& random) {
    Configuration configuration;
    for (std::uint64_t i = random.number(1, 4); i > 0; --i) {
        VfSpec profile = spec_of(random);
        profile.name = profile.profile = "";
        profile.uuid = {};
        configuration.profiles["p" + std::to_string(i)] = profile;
    }
    for (std::uint64_t i = random.number(1, 3); i > 0; --i) {
        auto& sections = configuration.configs["label" + std::to_string(i)];
        for (std::uint64_t n = random.number(0, 2); n > 0; --n) {
            GpuSection& section = sections.emplace_back();
            section.gpu = "gpu" + std::to_string(n);
            if (random.flag()) section.scheduler.quantum_us = scheduler::kMinQuantumUs;
            if (random.flag()) section.scheduler.max_gap_ms = random.number32(kMinGapMs, kMaxGapMs);
            section.vfs.push_back({.profile = "p1",
                                   .count = random.number32(1, VGPU_PF_MAX_VFS),
                                   .name = random.word(20) + "{n}",
                                   .was = random.flag() ? "was{n}" : "",
                                   .description = random.flag() ? "for \u6570\u636e" : ""});
        }
    }
    return configuration;
}

TEST(RoundTrip, OfAConfiguration) {
    for (unsigned seed = 0; seed < 100; ++seed) {
        Random random(seed);
        const Configuration configuration = configuration_of(random);
        const auto read = parse_configuration(encode_configuration(configuration));
        ASSERT_TRUE(read) << seed << ": " << read.error().cause;
        EXPECT_EQ(*read, configuration) << seed;
    }
}

GpuSchedule::Member member_of(Random& random, std::uint32_t vf) {
    return {.vf = vf,
            .weight = random.number32(scheduler::kMinWeight, scheduler::kMaxWeight),
            .quantum_us = random.number32(scheduler::kMinQuantumUs, scheduler::kMaxQuantumUs),
            .qos = qos_of(random)};
}

/// Of each kind one; times of a host that has been up for long.
std::vector<trace::Event> recorded_events_of(Random& random) {
    const auto at = [&random] { return Nanoseconds{random.signed_number(1ll << 60)}; };
    const auto ns = [&random] { return random.signed_number(1ll << 56); };
    const auto vf = [&random] { return random.number32(1, VGPU_PF_MAX_VFS); };
    return {
        trace::MembersSet{.at = at(),
                          .members = {member_of(random, 1), member_of(random, 16)},
                          .max_gap_ms = random.number32(kMinGapMs, kMaxGapMs),
                          .names = {{1, random.word(63)}, {16, random.word(63)}}},
        trace::Ran{.end = at(), .vf = vf(), .ns = ns(), .reserved_ns = ns()},
        trace::Woke{.at = at(), .vf = vf()},
        trace::WentIdle{.at = at(), .vf = vf(), .is_inactive = random.flag()},
        trace::Throttled{.at = at(), .vf = vf()},
        trace::Missed{.vf = vf(), .ns = ns(), .reserved_ns = ns()},
        trace::Restarted{},
        trace::TableMade{.at = at(),
                         .generation = random.number(0, 1ull << 56),
                         .is_made = random.flag(),
                         .digest = random.number32()},
        trace::TableInstalled{.at = at()},
        trace::TableRefused{.at = at()},
        trace::Annotated{.at = at(), .vf = vf(), .kind = random.word(20), .text = "Büro 数据 1"}};
}

TEST(RoundTrip, OfRecordedEvents) {
    for (unsigned seed = 0; seed < 50; ++seed) {
        Random random(seed);
        const std::vector<trace::Event> events = recorded_events_of(random);
        ASSERT_EQ(events.size(), std::variant_size_v<trace::Event>);
        Nanoseconds written{0}, read{0}, again{0};
        for (const trace::Event& event : events) {
            const Json json = trace::json_of(event, written);
            const trace::Event back = trace::event_of(Json::from_cbor(Json::to_cbor(json)), read);
            EXPECT_EQ(back.index(), event.index()) << seed;
            EXPECT_EQ(trace::json_of(back, again), json) << seed;
            EXPECT_EQ(written, read) << seed << ": " << json;
        }
    }
}

TEST(RoundTrip, OfARecordedSchedule) {
    for (unsigned seed = 0; seed < 50; ++seed) {
        Random random(seed);
        GpuSchedule schedule;
        Nanoseconds now{random.signed_number(1ll << 60)};
        std::vector<GpuSchedule::Member> members;
        for (std::uint32_t vf = 1; vf <= random.number32(1, 4); ++vf) members.push_back({.vf = vf});
        schedule.set_members(members, random.number32(200, kMaxGapMs), now);
        for (int i = 0; i < 20; ++i) {
            const std::uint32_t vf = random.number32(1, 4);
            now += std::chrono::microseconds(random.signed_number(20'000));
            if (random.flag()) schedule.on_wake(vf, now);
            if (random.flag()) schedule.on_run(vf, random.signed_number(9'000'000), now);
            if (random.flag()) schedule.on_inactive_idle(vf, now);
            if (random.flag()) schedule.on_throttled(vf);
        }
        if (schedule.make_table(1, now)) schedule.installed(now);
        const GpuSchedule::Image image = schedule.image();
        Nanoseconds written{0}, read{0};
        const Json json = trace::json_of(image, written);
        EXPECT_EQ(trace::image_of(Json::from_cbor(Json::to_cbor(json)), read), image) << seed;
        EXPECT_EQ(written, read) << seed;
    }
}

/// Every chunk of it, with every event that is in it; the times of a chunk count from its own.
void expect_readable(const std::vector<std::uint8_t>& bytes, unsigned seed) {
    std::size_t at = 0, events = 0;
    Nanoseconds last{0};
    while (at < bytes.size()) {
        // Reads one item and leaves the rest, which it is told by its own length.
        const std::vector<std::uint8_t> rest(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                                             bytes.end());
        const Json item = Json::from_cbor(rest, /*strict=*/false);
        at += Json::to_cbor(item).size();
        try {
            if (item.is_object()) {
                last = Nanoseconds{item.at("at").get<std::int64_t>()};
                const Nanoseconds begin = last;
                std::ignore = trace::image_of(item.at("schedule"), last);
                last = begin;
            } else {
                std::ignore = trace::event_of(item, last);
                ++events;
            }
        } catch (const std::exception& error) {
            FAIL() << seed << ": " << error.what() << ": " << item.dump().substr(0, 300);
        }
    }
    EXPECT_GT(events, 0u) << seed;
}

/// Of any kind and any VF, with any numbers.
vgpu_pf_event event_of(Random& random, std::uint64_t seq) {
    const auto any = [&random] {
        return random.flag() ? random.number(0, 20) : random.number(0, UINT64_MAX);
    };
    vgpu_pf_event event{};
    event.seq = seq;
    event.type = random.number32(0, VGPU_PF_EVENT_DEVICE_RESET + 2);
    event.vf = random.flag() ? random.number32(0, 4) : random.number32();
    event.time_ns = any();
    event.duration_ns = any();
    event.reserved_ns = any();
    event.arg = any();
    event.arg2 = any();
    return event;
}

TEST(RoundTrip, OfWhatAPfCoreThatMisbehavesMakesVgpudWrite) {
    for (unsigned seed = 0; seed < 20; ++seed) {
        Random random(seed);
        World world;
        for (int i = 0; i < 3; ++i) ASSERT_TRUE(world.create({}));
        for (int i = 0; i < 60; ++i) {
            world.pf().ring.push_back(event_of(random, world.pf().next_seq));
            ++world.pf().next_seq;
            for (auto& [vf, active] : world.pf().vfs) {
                active.service_ns = random.number(0, UINT64_MAX);
                active.reserved_service_ns = random.number(0, UINT64_MAX);
            }
            world.pass(std::chrono::milliseconds(random.signed_number(1500)));
        }
        const auto recorded = world.gpu().trace({});
        ASSERT_TRUE(recorded);
        expect_readable(recorded->bytes, seed);
        world.start();
        ASSERT_FALSE(world.manager->store().is_read_only())
            << seed << ": " << world.manager->store().condition();
    }
}

TEST(PfEvents, OfAVfThatCannotBeAreIgnoredAndReportedInOneLine) {
    World world;
    ASSERT_TRUE(world.create({}));
    std::ignore = world.manager->take_admin_events();
    const GpuRecord before = world.manager->store().gpu("gpu0");
    for (int i = 0; i < 100; ++i) {
        world.pf().push(VGPU_PF_EVENT_SCRUBBED, 0, 7);
        world.pf().push(VGPU_PF_EVENT_SCRUBBED, 1, 7);
        world.pf().push(VGPU_PF_EVENT_HANG, 17);
        world.pf().push(VGPU_PF_EVENT_RUN, 1, 0, 0, UINT64_MAX);
        world.pass(std::chrono::milliseconds(100));
    }
    EXPECT_EQ(world.manager->store().gpu("gpu0"), before);
    std::vector<std::string> reported;
    for (const AdminEvent& admin_event : world.manager->take_admin_events())
        reported.push_back(admin_event.text);
    EXPECT_EQ(reported.size(), 1u) << ::testing::PrintToString(reported);
    world.pass(std::chrono::minutes(1));
    world.pf().push(VGPU_PF_EVENT_HANG, 0);
    world.pass(std::chrono::seconds(1));
    const auto later = world.manager->take_admin_events();
    ASSERT_EQ(later.size(), 1u);
    EXPECT_EQ(later.front().kind, EventKind::ImpossibleEvents);
    EXPECT_THAT(later.front().text, ::testing::HasSubstr("400 impossible events"))
        << "the rest of the first";
    world.start();
    EXPECT_FALSE(world.manager->store().is_read_only());
}

TEST(PfEvents, OfTheGuardNameTheLimitAndSayWhenItIsLifted) {
    World world;
    ASSERT_TRUE(world.create({}));
    const auto reported = [&](std::uint64_t limit, std::uint64_t level) {
        std::ignore = world.manager->take_admin_events();
        world.pf().push(VGPU_PF_EVENT_GUARD, 1, limit, level);
        world.pass(std::chrono::seconds(1));
        std::vector<std::string> texts;
        for (const AdminEvent& admin_event : world.manager->take_admin_events())
            if (admin_event.kind == EventKind::Guard) texts.push_back(admin_event.text);
        return texts;
    };
    EXPECT_THAT(reported(1, 2),
                ::testing::ElementsAre("exceeded the guard limit 'exclusive', level 2"));
    EXPECT_THAT(reported(4, 0), ::testing::ElementsAre("is within its guard limits again"));
    EXPECT_THAT(reported(UINT64_MAX, 3), ::testing::ElementsAre(::testing::HasSubstr("level 3")));
}

}  // namespace
}  // namespace vgpu::daemon
