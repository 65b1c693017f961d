// SPDX-License-Identifier: MIT
//
// Whatever vgpuctl exports, vgpuctl takes: over random GPUs, `assert` of the document holds,
// `apply` of it has nothing to do, and on empty GPUs `apply` makes VFs whose export is the same
// text. The verbs run over vgpud's own service with its ports in memory. Only claims stay behind:
// they are no part of a document (docs/profiles.md).
#include "daemon/service/jobs/jobs.h"
#include "tests/unit/cli/cli_fixture.h"
#include "tests/unit/cli/temp_tree.h"
#include "tests/unit/daemon/world.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <algorithm>
#include <random>

namespace vgpu::cli {
namespace {

using daemon::testing::FakePf;
using daemon::testing::World;
using testing::FakeService;
using testing::Lent;
using testing::TempTree;

daemon::Options as_daemon_options(const Options& options) {
    daemon::Options all;
    for (const auto& [name, value] : options) {
        if (const auto* text = std::get_if<std::string>(&value)) all[name] = *text;
        if (const auto* flag = std::get_if<bool>(&value)) all[name] = *flag;
    }
    return all;
}

template <typename T> T value_of(const daemon::Result<T>& answer) {
    if (answer) return *answer;
    throw ServiceError(daemon::dbus_name_of(answer.error().id), daemon::text_of(answer.error()));
}

/// Two GPUs with vgpud's service on them, reached as D-Bus reaches it.
class GpusInMemory final : public Lent {
public:
    GpusInMemory() : Lent(nothing_else_) {
        for (const char* gpu : {"gpu0", "gpu1"}) {
            world.pf(gpu).scrubs_at_once = true;
            world.assignment_mode(gpu).can.insert(
                {daemon::AssignmentMode::VfioPci, daemon::AssignmentMode::Host});
        }
    }

    std::string plan(const std::string& config, const Options& options) override {
        return answer(
            [&](const auto& done) { jobs.plan(config, as_daemon_options(options), done); });
    }
    std::string export_config(const Options& options) override {
        return answer(
            [&](const auto& done) { jobs.export_document(as_daemon_options(options), done); });
    }
    std::string apply(const std::string& config, const Options& options) override {
        return std::to_string(value_of(jobs.apply(config, as_daemon_options(options))));
    }
    std::optional<Properties> await_job(const std::string& path,
                                        const std::function<bool(const Properties&)>& /*is_enough*/,
                                        const std::vector<pollfd>& /*stop_on*/) override {
        constexpr int kSteps = 100;
        for (int i = 0; i < kSteps; ++i) {
            jobs.step();
            world.pass(std::chrono::milliseconds(100));
            const daemon::JobView job = view(path);
            if (job.state == "done") return Properties{{"State", job.state}};
            if (job.error)
                return Properties{{"State", job.state},
                                  {"ErrorName", daemon::dbus_name_of(job.error->id)},
                                  {"Error", daemon::text_of(*job.error)}};
        }
        return Properties{{"State", std::string("never over")}};
    }

    World world{{"gpu0", "gpu1"}};
    daemon::Jobs jobs{*world.manager, world.clock};

private:
    template <typename Ask> std::string answer(const Ask& ask) {
        daemon::Result<std::string> got = daemon::fail(daemon::ErrorId::System, "no answer");
        ask([&got](const daemon::Result<std::string>& result) { got = result; });
        return value_of(got);
    }
    [[nodiscard]] daemon::JobView view(const std::string& path) const {
        const auto all = jobs.list();
        return *std::ranges::find_if(
            all, [&path](const auto& job) { return std::to_string(job.id) == path; });
    }

    FakeService nothing_else_;
};

/// Requests as operators make them, some of which are refused: whatever remains is valid.
class Operators {
public:
    Operators(GpusInMemory& gpus, unsigned seed) : gpus_(gpus), random_(seed) {}

    void set_up() {
        for (const char* gpu : {"gpu0", "gpu1"})
            if (flag())
                std::ignore = world().set_gpu({.gpu = gpu}, {{"quantum_us", number(2, 8) * 1000},
                                                             {"max_gap_ms", number(40, 200)}});
        if (flag()) apply_some_document();
        for (std::uint64_t i = number(5, 15); i > 0; --i)
            std::ignore = world().create(new_vf(), flag() ? "gpu0" : "gpu1");
        for (const char* gpu : {"gpu0", "gpu1"})
            for (std::uint32_t vf = 1; vf <= 16; ++vf)
                if (world().gpu(gpu).has_vf(vf)) change_some({.gpu = gpu, .vf = vf});
        for (int i = 0; i < 10; ++i) world().pass(std::chrono::milliseconds(100));
    }

private:
    World& world() { return gpus_.world; }
    std::uint64_t number(std::uint64_t min, std::uint64_t max) {
        return std::uniform_int_distribution<std::uint64_t>(min, max)(random_);
    }
    bool flag() { return number(0, 1) == 1; }
    bool seldom() { return number(0, 3) == 0; }
    double fraction(double min, double max) {
        return std::uniform_real_distribution<double>(min, max)(random_);
    }

    std::string name() {
        constexpr std::string_view kLetters = "abXY01._-";
        std::string name(1, flag() ? 'v' : 'W');
        for (std::uint64_t i = number(0, seldom() ? 62 : 4); i > 0; --i)
            name += kLetters[number(0, kLetters.size() - 1)];
        return flag() ? name : "run-" + std::to_string(number(1, 12));
    }

    /// What any VF may ask of the engine, often enough something that can be kept.
    daemon::Options contract() {
        daemon::Options options;
        if (flag()) options["weight"] = number(50, 400);
        if (seldom()) options["quantum_us"] = number(500, 6000);
        if (seldom()) options["max_gap_ms"] = number(40, 300);
        if (seldom()) options["preempt_timeout_ms"] = fraction(50, 900);
        switch (number(0, 5)) {
            case 0:
                options.insert({{"min_pct", fraction(1, 9)}, {"latency_ms", fraction(15, 60)}});
                break;
            case 1:
                options.insert({{"max_pct", fraction(20, 90)}, {"burst_ms", number(0, 20)}});
                break;
            case 2:
                options.insert({{"mode", std::string("gang")},
                                {"min_pct", number(3, 6)},
                                {"latency_ms", number(1, 2) * 40},
                                {"phase_ms", fraction(0, 30)}});
                break;
            case 3:
                options.insert({{"priority_class", std::string(flag() ? "high" : "low")},
                                {"min_pct", number(2, 6)}});
                break;
            case 4:
                options["mode"] = std::string("strict");
                break;
            default:
                break;
        }
        return options;
    }
    daemon::Options assignment_policy() {
        constexpr std::array kModes{"default", "none", "vfio-user", "vfio-pci", "host"};
        daemon::Options options;
        if (seldom())
            options["assignment_mode"] = std::string(kModes[number(0, kModes.size() - 1)]);
        if (seldom()) options["scrub_on_release"] = true;
        return options;
    }
    daemon::Options new_vf() {
        daemon::Options options = contract();
        options.merge(assignment_policy());
        if (!seldom()) options["name"] = name();
        options["vram_bytes"] = 16 * FakePf::kMiB * number(1, 8);
        if (seldom()) options["cu_mask"] = number(1, 255);
        if (seldom()) options["doorbell_pages"] = number(1, 512);
        return options;
    }

    void change_some(const daemon::Target& target) {
        if (seldom()) std::ignore = world().set_vf(target, contract());
        if (seldom()) std::ignore = world().set_vf(target, assignment_policy());
        if (seldom()) std::ignore = world().set_vf(target, {{"name", name()}});
        if (seldom()) std::ignore = world().destroy(target);
        if (seldom())
            std::ignore =
                world().claim(target, fmt::format("slurm:{}", target.vf),
                              flag() ? daemon::Options{{"persistent", true}} : daemon::Options{});
    }

    /// Security is a profile's alone; of some of its VFs other values are set later.
    void apply_some_document() {
        constexpr std::array kGuards{"5", "64", R"("off")"};
        std::string profiles, vfs;
        const std::uint64_t count = number(1, 3);
        for (std::uint64_t i = 1; i <= count; ++i) {
            profiles += fmt::format(
                R"({}"{}": {{"resources": {{"vram": "{}MiB", "compute_units": {}}},
                    "scheduler": {{"weight": {}}},
                    "security": {{"preempt_timeout_us": {}, "full_access_timeout_ms": {},
                                  "exclusive_full_access": {}, "scrub_on_release": {},
                                  "guard": {{"flr": {}, "interrupt": {}}}}}}})",
                i == 1 ? "" : ", ", profile(i), 16 * number(1, 6), number(1, 8), number(50, 400),
                number(1, 100'000), number(1, 9000), flag(), flag(), kGuards[number(0, 2)],
                kGuards[number(0, 2)]);
            vfs += fmt::format(R"({}{{"profile": "{}", "count": {}, "name": "{{gpu}}-g{}.{{n}}"}})",
                               i == 1 ? "" : ", ", profile(i), number(1, 3), i);
        }
        const auto job = gpus_.apply(
            fmt::format(
                R"({{"profiles": {{{}}}, "configs": {{"x": [{{"gpu": "*", "vfs": [{}]}}]}}}})",
                profiles, vfs),
            {});
        std::ignore = gpus_.await_job(job, nullptr, {});
    }
    /// The longest that there may be, too.
    static std::string profile(std::uint64_t i) {
        return i == 3 ? std::string(daemon::kMaxLabelBytes, 'p') : fmt::format("6{}MiB", i);
    }

    GpusInMemory& gpus_;
    std::mt19937_64 random_;
};

class Exported : public ::testing::Test {
protected:
    int run(GpusInMemory& gpus, const Words& words) {
        out.str("");
        return run_cli(words,
                       [&gpus](const std::string&) {
                           return std::make_unique<Lent>(static_cast<Service&>(gpus));
                       },
                       {.out = out, .err = out});
    }
    std::string exported(GpusInMemory& gpus) {
        EXPECT_EQ(run(gpus, {"export"}), 0) << out.str();
        return out.str();
    }
    std::string file_with(const std::string& text) {
        std::ofstream(tree.file("wanted.json")) << text;
        return tree.file("wanted.json");
    }
    void expect_no_change(GpusInMemory& gpus, const std::string& text) {
        EXPECT_EQ(run(gpus, {"apply", file_with(text)}), 0) << text << out.str();
        EXPECT_THAT(out.str(), ::testing::HasSubstr("Nothing to do"));
        EXPECT_EQ(run(gpus, {"export", "--json"}), 0);
        EXPECT_EQ(run(gpus, {"assert", file_with(out.str())}), 0) << text << out.str();
    }

    TempTree tree;
    std::ostringstream out;
};

TEST_F(Exported, DocumentsHoldChangeNothingAndMakeTheSameOnEmptyGpus) {
    std::size_t vfs = 0;
    for (unsigned seed = 1; seed <= 10 && !HasFailure(); ++seed) {
        SCOPED_TRACE(fmt::format("seed {}", seed));
        GpusInMemory gpus;
        Operators(gpus, seed).set_up();
        const std::string text = exported(gpus);
        expect_no_change(gpus, text);
        GpusInMemory others;
        EXPECT_EQ(run(others, {"apply", file_with(text)}), 0) << text << out.str();
        EXPECT_EQ(exported(others), text);
        vfs += gpus.world.pf("gpu0").vfs.size() + gpus.world.pf("gpu1").vfs.size();
    }
    EXPECT_GT(vfs, 50u) << "most requests are granted";
}

}  // namespace
}  // namespace vgpu::cli
