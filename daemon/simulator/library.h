// SPDX-License-Identifier: MIT
//
// LibraryPolicy: the scheduler library as a policy that decides at the end of every slice, without
// tables. The product (product.h) is compared with it.
#pragma once

#include "daemon/simulator/policy.h"

namespace vgpu::simulator {

/// The PF core runs gang slots and resets VFs.
inline constexpr std::string_view kLeavesGangs =
    "the PF core runs gang slots; the library has none";
inline constexpr std::string_view kLeavesHangs = "the PF core resets VFs; the library does not";

class LibraryPolicy : public Policy {
public:
    LibraryPolicy() = default;
    explicit LibraryPolicy(const daemon::scheduler::Scheduler::Settings& settings)
        : scheduler_(settings) {}

    [[nodiscard]] std::string_view name() const override { return "library"; }
    void set(std::uint32_t vf, const VfPolicy& policy, std::int64_t at_ns) override {
        scheduler_.set(vf, policy, at_ns);
    }
    void remove(std::uint32_t vf, std::int64_t at_ns) override { scheduler_.remove(vf, at_ns); }
    void wake(std::uint32_t vf, std::int64_t at_ns) override { scheduler_.wake(vf, at_ns); }
    void sleep(std::uint32_t vf, std::int64_t at_ns) override { scheduler_.sleep(vf, at_ns); }
    Grant next(std::int64_t at_ns) override {
        decision_ = scheduler_.decide(at_ns);
        if (!decision_) return {};
        return {.vf = decision_.vf,
                .slice_ns = decision_.slice_ns,
                .is_reserved = decision_.service == daemon::scheduler::ServiceClass::Reserved};
    }
    void started(std::int64_t at_ns) override { scheduler_.start(decision_, at_ns); }
    void ended(std::int64_t at_ns) override { scheduler_.stop(at_ns); }
    [[nodiscard]] std::optional<std::int64_t> preempt_at(std::int64_t at_ns) const override {
        return scheduler_.preempt_at(at_ns);
    }
    [[nodiscard]] std::optional<std::int64_t> next_event() const override {
        return scheduler_.next_event();
    }
    void advance(std::int64_t at_ns) override { scheduler_.advance(at_ns); }
    [[nodiscard]] bool is_held_back(std::uint32_t vf) const override {
        return scheduler_.is_capped(vf);
    }
    [[nodiscard]] std::uint32_t weight(std::uint32_t vf) const override {
        return scheduler_.weight(vf);
    }

    [[nodiscard]] std::string_view refuses_gangs() const override { return kLeavesGangs; }
    [[nodiscard]] std::string_view refuses_hangs() const override { return kLeavesHangs; }

    [[nodiscard]] const daemon::scheduler::Scheduler& scheduler() const { return scheduler_; }

private:
    daemon::scheduler::Scheduler scheduler_;
    daemon::scheduler::Decision decision_;
};

}  // namespace vgpu::simulator
