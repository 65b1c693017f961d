// SPDX-License-Identifier: MIT
//
// Errors of a caller's mistakes, and of missing resources.
#include "daemon/adapters/state_files.h"
#include "daemon/service/state/store.h"
#include "tests/scenario/dbus/error_path.h"

#include <future>
#include <sstream>

namespace vgpu::daemon::testing {

std::string document(const std::string& vram, int vfs) {
    return fmt::format(
        R"({{"profiles": {{"p": {{"resources": {{"vram": "{}"}}}}}},
             "configs": {{"x": [{{"gpu": "gpu0", "vfs": [{}]}}]}}}})",
        vram,
        vfs == 1 ? R"({"profile": "p", "name": "train"})"
                 : R"({"profile": "p", "count": 16, "name": "a{n}"},
                            {"profile": "p", "name": "b"})");
}

std::string text_of_file(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

// --- what a caller gets wrong

Told ErrorPath::raise_UnknownOption() {
    return create({{"wait", sdbus::Variant{true}}});
}

Told ErrorPath::raise_WrongType() {
    return create({{"weight", sdbus::Variant{"x"}}});
}

Told ErrorPath::raise_OutOfRange() {
    return plan(std::string(300'000, ' '));
}

Told ErrorPath::raise_InvalidName() {
    return with_ctl(create({{"name", sdbus::Variant{"1st"}}}), {"create", "--name", "1st"});
}

Told ErrorPath::raise_NameTaken() {
    return with_ctl(create({{"name", sdbus::Variant{"gpu0"}}}), {"create", "--name", "gpu0"});
}

Told ErrorPath::raise_BadConfiguration() {
    return plan(R"({"profiles": {}})");
}

Told ErrorPath::raise_InvalidOwner() {
    make_train();
    return with_ctl(train("Claim", std::string("a b"), Dict{}),
                    {"claim", "train", "--owner", "a b"});
}

Told ErrorPath::raise_NoSuchGpu() {
    return with_ctl(manager("CreateVf", std::string("gpu9"), Dict{}), {"create", "--gpu", "gpu9"});
}

Told ErrorPath::raise_NoSuchVf() {
    return with_ctl(manager("Resolve", std::string("train"), Dict{}), {"show", "train"});
}

Told ErrorPath::raise_NoSuchLabel() {
    return plan(document("64MiB", 1), {{"label", sdbus::Variant{"y"}}}, {"--label", "y"});
}

/// Uses a state that two vgpuds, or a person, wrote.
Told ErrorPath::raise_AmbiguousName() {
    vgpud->kill_now();
    {
        adapters::StateFiles files(directory.file("state"));
        StateStore store(files);
        store.load();
        GpuRecord record = store.gpu("gpu0");
        for (const std::uint32_t vf : {1u, 2u})
            record.vfs[vf] = {.vf = vf,
                              .spec = {.name = "train",
                                       .uuid = make_uuid(),
                                       .resources = {.vram_bytes = 64 * FakePf::kMiB}}};
        EXPECT_TRUE(store.commit("gpu0", record));
    }
    start_daemon();
    Told told = with_ctl(manager("Resolve", std::string("train"), Dict{}), {"show", "train"});
    EXPECT_EQ(ctl({"set", "gpu0/vf2", "--name", "train2"}).status, 0) << "as the error says";
    EXPECT_EQ(ctl({"show", "train"}).status, 0);
    return told;
}

// --- missing resources and wrong states

Told ErrorPath::raise_NoFreeVf() {
    return plan(document("64MiB", 17));
}

Told ErrorPath::raise_NoVram() {
    return with_ctl(create({{"vram_bytes", sdbus::Variant{512 * FakePf::kMiB}}}),
                    {"create", "--vram", "512M"});
}

Told ErrorPath::raise_NoDoorbells() {
    return with_ctl(create({{"doorbell_pages", sdbus::Variant{100'000u}}}),
                    {"create", "--doorbell-pages", "100000"});
}

Told ErrorPath::raise_NoComputeUnits() {
    return with_ctl(create({{"cu_mask", sdbus::Variant{std::uint64_t{0x100}}}}),
                    {"create", "--cu-mask", "0x100"});
}

Told ErrorPath::raise_NoSchedule() {
    EXPECT_EQ(ctl({"create", "--name", "train", "--min-pct", "60"}).status, 0);
    return with_ctl(create({{"min_pct", sdbus::Variant{60.0}}}), {"create", "--min-pct", "60"});
}

Told ErrorPath::raise_WrongState() {
    make_train();
    server.with([](FakePf& pf) {
        pf.vfs.at(1).attached = 1;
        pf.push(VGPU_PF_EVENT_ATTACH, 1, 1);
    });
    return with_ctl(train_job("Destroy", {}), {"destroy", "train"});
}

Told ErrorPath::raise_NoAgent() {
    make_train();
    return with_ctl(train("SelfTest", Dict{}), {"self-test", "train"});
}

Told ErrorPath::raise_PolicyNotTaken() {
    make_train();
    server.with(
        [](FakePf& pf) { pf.push(VGPU_PF_EVENT_POLICY, 1, VGPU_PF_POLICY_SCHED_PRIORITY, 2); });
    std::string text;
    test::wait_for("the notice", kPrompt, [&] {
        // one document a line
        std::istringstream lines(ctl({"events", "--json"}).out);
        for (std::string line; std::getline(lines, line);) {
            const auto event = nlohmann::json::parse(line);
            if (event.at("kind") == "policy-refused") text = event.at("text");
        }
        return !text.empty();
    });
    return {.name = "", .text = text};
}

Told ErrorPath::raise_Busy() {
    static_cast<void>(start_job());
    const Told told = with_ctl(train("Set", Dict{{"weight", sdbus::Variant{7u}}}),
                               {"set", "train", "--weight", "7"});
    end_scrub();
    return told;
}

Told ErrorPath::raise_Cancelled() {
    make_train();
    server.with([](FakePf& pf) { pf.holds_scrubs = true; });
    std::ofstream(directory.file("wanted.json")) << document("128MiB", 1);
    auto asked = std::async(std::launch::async, [this] {
        return ctl({"apply", directory.file("wanted.json"), "--yes"});
    });
    const std::string job = "/org/vgpu1/job/1";
    test::wait_for("train to be released", kPrompt, [&] {
        return ctl_json({"show", "train"}).at("vf").at("state") == "scrubbing";
    });
    EXPECT_EQ(call(job, "Job", "Cancel", Dict{}).name, "none");
    end_scrub();
    auto done = asked.get();
    return {.name = job_property(job, "ErrorName"),
            .text = job_property(job, "Error"),
            .ctl = std::move(done)};
}

Told ErrorPath::raise_Claimed() {
    make_train();
    EXPECT_EQ(ctl({"claim", "train", "--owner", "job:1"}).status, 0);
    return with_ctl(train("Claim", std::string("job:2"), Dict{}),
                    {"claim", "train", "--owner", "job:2"});
}

Told ErrorPath::raise_StaleClaim() {
    make_train();
    EXPECT_EQ(ctl({"claim", "train", "--owner", "job:1"}).status, 0);
    return with_ctl(train("Release", std::string("job:1"), std::uint64_t{99}, Dict{}),
                    {"release", "train", "--owner", "job:1", "--generation", "99"});
}

Told ErrorPath::raise_NoMatchingVf() {
    const std::vector<sdbus::Struct<std::string, std::string>> wanted{{"profile", "large"}};
    return manager("Assign", std::string("job:1"), wanted, Dict{{"wait_ms", sdbus::Variant{0u}}});
}

Told ErrorPath::raise_AssignmentRefused() {
    make_train();
    return with_ctl(train("Set", Dict{{"assignment_mode", sdbus::Variant{"vfio-pci"}}}),
                    {"set", "train", "--assignment-mode", "vfio-pci"});
}

}  // namespace vgpu::daemon::testing
