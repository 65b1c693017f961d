// SPDX-License-Identifier: MIT
//
// Algorithms of other systems ("peers") as policies, taken from the systems' sources or documents,
// with their default quanta. If a source leaves a detail open, the policy decides in favour of the
// peer. Comments name what a policy leaves out. No peer has gang slots. It is not known how long a
// reset takes in GIM and xe, and how much service a reset costs the VF. So each policy in this file
// refuses scenarios with hangs, and its refusal says what is known.
#pragma once

#include "daemon/simulator/policy.h"

#include <list>
#include <vector>

namespace vgpu::simulator {

class PeerPolicy : public Policy {
public:
    /// `name` and `hang_refusal` must be literals.
    PeerPolicy(std::string_view name, std::string_view hang_refusal)
        : name_(name), hang_refusal_(hang_refusal) {}
    [[nodiscard]] std::string_view name() const final { return name_; }
    [[nodiscard]] std::string_view hang_refusal() const final { return hang_refusal_; }
    void set(std::uint32_t vf, const VfPolicy& policy, std::int64_t at_ns) override;
    void remove(std::uint32_t vf, std::int64_t at_ns) override;
    void wake(std::uint32_t vf, std::int64_t at_ns) override;
    void sleep(std::uint32_t vf, std::int64_t at_ns) override;
    void started(std::int64_t at_ns) override { started_ns_ = at_ns; }

protected:
    struct Vf {
        std::uint32_t weight = 1;
        bool is_in = false;
        bool has_work = false;
    };

    /// The next VF with work after `last`; 0 if none.
    [[nodiscard]] std::uint32_t next_in_circle(std::uint32_t last) const;
    /// Called when a VF was added.
    virtual void entered(std::uint32_t /*vf*/) {}

    std::vector<Vf> vfs_;
    std::uint32_t current_ = 0;
    std::int64_t started_ns_ = 0;

private:
    std::string_view name_;
    std::string_view hang_refusal_;
};

/// AMD GIM: round robin with slices of 6 ms, no weights. An overrun becomes a debt of the VF, which
/// shortens its next slices by at most a half. While the debt exceeds a slice, the VF loses a slice
/// at a time, and the debt shrinks by a slice. Always skips VFs without work (GIM: at most 8 times
/// in a row). GIM resets a VF (FLR) whose switch takes more than 500 ms.
class GimRoundRobin : public PeerPolicy {
public:
    explicit GimRoundRobin(std::int64_t slice_ns = 6'000'000)
        : PeerPolicy("gim", "it resets a VF after 500 ms; that is not modelled"),
          slice_ns_(slice_ns) {}
    Grant next(std::int64_t at_ns) override;
    void ended(std::int64_t at_ns) override;

protected:
    void entered(std::uint32_t vf) override;

private:
    std::int64_t slice_ns_;
    std::int64_t granted_ns_ = 0;
    std::vector<std::int64_t> debt_ns_;
};

/// Linux xe (GuC firmware) with the PF's fair defaults: round robin with slices of 16 ms, no
/// weights and no debt. Skips VFs without work. xe resets a VF that stays on the engine for 16 ms
/// (default) after its quantum.
class XeSlices : public PeerPolicy {
public:
    explicit XeSlices(std::int64_t quantum_ns = 16'000'000)
        : PeerPolicy("xe", "it resets a VF after 16 ms; that is not modelled"),
          quantum_ns_(quantum_ns) {}
    Grant next(std::int64_t at_ns) override;
    void ended(std::int64_t) override {}

private:
    std::int64_t quantum_ns_;
};

/// Intel GVT-g: slices of 1 ms. Of the VFs with work and credit, the VF that has waited longest is
/// next. Every 100 ms, the VFs get credit for 100 ms, divided by weight. Every tenth time, this
/// credit replaces earlier credit and debt. If no VF with work has credit, the engine idles. Left
/// out: 2 s of priority after a start.
class GvtCredit : public PeerPolicy {
public:
    GvtCredit() : PeerPolicy("gvt-g", "a VF that hangs is not modelled") {}
    void remove(std::uint32_t vf, std::int64_t at_ns) override;
    Grant next(std::int64_t at_ns) override;
    void ended(std::int64_t at_ns) override;
    [[nodiscard]] std::optional<std::int64_t> next_event() const override { return refill_ns_; }
    void advance(std::int64_t at_ns) override;

protected:
    void entered(std::uint32_t vf) override;

private:
    static constexpr std::int64_t kTickNs = 1'000'000;
    static constexpr std::int64_t kPeriodNs = 100'000'000;
    static constexpr int kStages = 10;

    void refill();

    std::list<std::uint32_t> least_recent_;
    std::vector<std::int64_t> credit_ns_;
    std::int64_t refill_ns_ = 0;
    int stage_ = 0;
};

/// Start-time fair queueing, with slices of 2 ms.
class StartTimeFair : public PeerPolicy {
public:
    explicit StartTimeFair(std::int64_t slice_ns = 2'000'000)
        : PeerPolicy("sfq", "a VF that does not leave the engine is not modelled"),
          slice_ns_(slice_ns) {}
    void wake(std::uint32_t vf, std::int64_t at_ns) override;
    Grant next(std::int64_t at_ns) override;
    void ended(std::int64_t at_ns) override;

protected:
    void entered(std::uint32_t vf) override;

private:
    std::int64_t slice_ns_;
    double now_ = 0;  ///< start tag of the slice in service
    std::vector<double> tags_;
};

}  // namespace vgpu::simulator
