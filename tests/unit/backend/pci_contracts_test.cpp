// SPDX-License-Identifier: MIT
//
// Contracts on a driver that serves its functions in turn: each item is kept, approximated or
// refused, and never ignored. Approximated items are refused unless the configuration of the GPU
// accepts them.
#include "daemon/dbus/properties.h"
#include "tests/unit/backend/pci_gpu.h"

namespace vgpu::daemon {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Contract = std::map<std::string, std::string>;

class PciContracts : public PciGpu {
protected:
    void approximate() {
        config.accepts_approximations = true;
        start();
    }
    Contract contract(std::uint32_t vf) {
        Contract words;
        for (const auto& [key, word] : dbus::contract_of(view(vf)))
            words[key] = word.get<std::string>();
        return words;
    }
};

TEST_F(PciContracts, RefuseWeightsUntilTheConfigurationAcceptsApproximations) {
    ASSERT_TRUE(create_for_vm("a"));
    ASSERT_TRUE(create_for_vm("b"));
    const Target b{.gpu = "b50", .vf = 2};
    for (const Options& options :
         {Options{{"weight", std::uint64_t{300}}}, Options{{"min_pct", 10.0}},
          Options{{"latency_ms", 90.0}}, Options{{"max_gap_ms", 90.0}}}) {
        const auto refused = set(b, options);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().id, ErrorId::NotOffered);
        EXPECT_THAT(refused.error().cause, AllOf(HasSubstr("b50 (driver xe) can only approximate " +
                                                           options.begin()->first + " of 'b'"),
                                                 HasSubstr("\"contracts\": \"approximate\"")));
    }
    approximate();
    ASSERT_TRUE(set(b, {{"weight", std::uint64_t{300}}}));
    pass();
    EXPECT_EQ(card.function(1).quantum_ms * 3, card.function(2).quantum_ms);
    EXPECT_EQ(card.function(0).quantum_ms, 1u);
    EXPECT_TRUE(view(1).active.driver_timing->worst_wait_us);
    const auto gpu = dbus::properties_of(snapshot()->gpu);
    for (const char* name : {"QuantumUs", "MaxGapMs"})
        EXPECT_FALSE(gpu.contains(name)) << name << ": VFs have their own";
}

TEST_F(PciContracts, KeepApproximateOrRefuseEachItem) {
    approximate();
    const auto made = create_for_vm("a");
    ASSERT_TRUE(made);
    const std::vector<Options> taken{
        {{"weight", std::uint64_t{300}}}, {{"quantum_us", std::uint64_t{4000}}},
        {{"preempt_timeout_ms", 5.0}},    {{"min_pct", 10.0}},
        {{"latency_ms", 50.0}},           {{"max_gap_ms", 50.0}}};
    for (const Options& options : taken) {
        const auto done = set(*made, options);
        EXPECT_TRUE(done) << options.begin()->first << ": " << done.error().cause;
    }
    EXPECT_EQ(contract(1), (Contract{{"weight", "approximated"},
                                     {"quantum_us", "kept"},
                                     {"preempt_timeout_ms", "kept"},
                                     {"min_pct", "approximated"},
                                     {"latency_ms", "approximated"},
                                     {"max_gap_ms", "approximated"}}));
    const std::vector<Options> refused{{{"max_pct", 50.0}},
                                       {{"burst_ms", 5.0}},
                                       {{"mode", std::string("strict")}},
                                       {{"mode", std::string("gang")}},
                                       {{"priority_class", std::string("high")}}};
    for (const Options& options : refused) {
        const auto done = set(*made, options);
        ASSERT_FALSE(done) << options.begin()->first;
        EXPECT_EQ(done.error().id, ErrorId::NotOffered) << done.error().cause;
    }
    pass();
    EXPECT_EQ(card.function(1).quantum_ms, 4u);
    EXPECT_EQ(card.function(1).timeout_us, 5000u);
    EXPECT_EQ(set(*made, {{"quantum_us", std::uint64_t{1500}}}).error().id, ErrorId::OutOfRange);
}

TEST_F(PciContracts, AreRefusedOnceTheConfigurationNoLongerAcceptsThem) {
    approximate();
    ASSERT_TRUE(create_for_vm("a"));
    ASSERT_TRUE(set({.gpu = "b50", .vf = 1}, {{"min_pct", 10.0}}));
    config.accepts_approximations = false;
    start();
    EXPECT_EQ(contract(1), (Contract{{"min_pct", "refused"}}));
}

TEST_F(PciContracts, BoundWaitsByQuantaAndTimeouts) {
    approximate();
    ASSERT_TRUE(create_for_vm("a"));
    ASSERT_TRUE(create_for_vm("b"));
    ASSERT_TRUE(set({.gpu = "b50", .vf = 1}, {{"max_gap_ms", 30.0}}));
    pass();
    EXPECT_LE(*view(1).active.driver_timing->worst_wait_us, 30'000u);
    EXPECT_EQ(card.function(2).timeout_us, 5000u) << "shorter than without a bound";
    const auto refused = set({.gpu = "b50", .vf = 2}, {{"latency_ms", 5.0}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::NoSchedule);
    EXPECT_THAT(refused.error().cause, HasSubstr("b50: schedule: 'b' may wait at most 5 ms, but"));
}

TEST_F(PciContracts, RefuseAReservationThatTheQuantaDoNotGive) {
    approximate();
    ASSERT_TRUE(create_for_vm("a"));
    ASSERT_TRUE(create_for_vm("b"));
    const Target a{.gpu = "b50", .vf = 1};
    files->forget_writes();
    const auto refused = set(a, {{"min_pct", 60.0}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::NoSchedule);
    EXPECT_THAT(
        refused.error().cause,
        HasSubstr("'a' has min_pct 60, but its share is 48.5 % while all are busy (16 of 33 "
                  "ms); give it a larger weight"));
    EXPECT_THAT(files->writes(), IsEmpty());
    EXPECT_TRUE(set(a, {{"min_pct", 60.0}, {"weight", std::uint64_t{200}}}));
}

TEST_F(PciContracts, AreToldInThePlanWithTheLongestWait) {
    approximate();
    const auto made =
        plan(document("b50", R"({"min_pct": 20, "preempt_timeout_ms": 5})", {"a", "b"}));
    ASSERT_TRUE(made) << made.error().cause;
    EXPECT_EQ(made->at("steps").at(1).at("contract"),
              (nlohmann::json{{"min_pct", "approximated"}, {"preempt_timeout_ms", "kept"}}));
    const nlohmann::json& quanta = made->at("gpus").at(0).at("quanta");
    ASSERT_EQ(quanta.size(), 2u);
    EXPECT_EQ(quanta.at(0),
              (nlohmann::json{{"name", "a"}, {"quantum_us", 16'000}, {"worst_wait_us", 41'000}}));
    const JobView job =
        apply(document("b50", R"({"min_pct": 20, "preempt_timeout_ms": 5})", {"a", "b"}));
    EXPECT_EQ(job.state, "done");
    pass();
    EXPECT_EQ(view(1).active.driver_timing->worst_wait_us, 41'000u) << "as planned";
}

TEST_F(PciContracts, OfOurOwnCoreAreAllKept) {
    const auto made = plan(document("soft", R"({"min_pct": 20, "max_pct": 50})", {"a"}));
    ASSERT_TRUE(made) << made.error().cause;
    EXPECT_EQ(made->at("steps").at(0).at("contract"),
              (nlohmann::json{{"min_pct", "kept"}, {"max_pct", "kept"}}));
    EXPECT_FALSE(made->at("gpus").at(0).contains("quanta"));
}

}  // namespace
}  // namespace vgpu::daemon
