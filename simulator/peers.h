// SPDX-License-Identifier: MIT
//
// What other systems do, as policies of the simulator. Each is modelled from its sources or its
// documents, with its own default quantum, and where the model has a choice, in the peer's favour;
// the comments say what was left out.
#pragma once

#include "simulator/policy.h"

#include <list>
#include <vector>

namespace vgpu::simulator {

/// What all peers have in common: who is there and who has work.
class PeerPolicy : public Policy {
public:
    void set(std::uint32_t vf, const VfPolicy& policy, std::int64_t at_ns) override;
    void remove(std::uint32_t vf, std::int64_t at_ns) override;
    void wake(std::uint32_t vf, std::int64_t at_ns) override;
    void sleep(std::uint32_t vf, std::int64_t at_ns) override;
    void started(std::int64_t at_ns) override { started_ns_ = at_ns; }
    [[nodiscard]] std::uint32_t weight(std::uint32_t vf) const override { return vfs_[vf].weight; }

protected:
    struct Vf {
        std::uint32_t weight = 1;
        bool is_in = false;
        bool has_work = false;
    };

    /// The next VF with work after `last`, in a circle; 0: none.
    [[nodiscard]] std::uint32_t next_in_circle(std::uint32_t last) const;
    virtual void entered(std::uint32_t /*vf*/) {}

    std::vector<Vf> vfs_;
    std::uint32_t current_ = 0;
    std::int64_t started_ns_ = 0;
};

/// AMD GIM: round robin with slices of 6 ms; what a slice was overrun by is taken off the VF's next
/// ones, to no less than half a slice, and a debt of more than a slice costs a turn. VFs without
/// work are always passed over (GIM does so at most 8 times in a row). It has no weights.
class GimRoundRobin : public PeerPolicy {
public:
    explicit GimRoundRobin(std::int64_t slice_ns = 6'000'000) : slice_ns_(slice_ns) {}
    [[nodiscard]] std::string_view name() const override { return "gim"; }
    Grant next(std::int64_t at_ns) override;
    void ended(std::int64_t at_ns) override;

protected:
    void entered(std::uint32_t vf) override;

private:
    std::int64_t slice_ns_;
    std::int64_t granted_ns_ = 0;
    std::vector<std::int64_t> debt_ns_;
};

/// Linux xe (GuC firmware) with the PF's fair defaults: round robin with 16 ms, VFs without work
/// passed over. No weights between VFs (priorities only for the PF), no debt.
class XeSlices : public PeerPolicy {
public:
    explicit XeSlices(std::int64_t quantum_ns = 16'000'000) : quantum_ns_(quantum_ns) {}
    [[nodiscard]] std::string_view name() const override { return "xe"; }
    Grant next(std::int64_t at_ns) override;
    void ended(std::int64_t) override {}

private:
    std::int64_t quantum_ns_;
};

/// Intel GVT-g: a tick of 1 ms; the VF that has waited longest and has credit is next. Credit for
/// 100 ms comes every 100 ms by weight; every tenth time what is left over or owed is forgotten.
/// With work but no credit the engine idles until the next credit. The 2 s of priority after start
/// are left out.
class GvtCredit : public PeerPolicy {
public:
    [[nodiscard]] std::string_view name() const override { return "gvt-g"; }
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

/// Start-time fair queueing with slices of 2 ms (as stride scheduling, the usual textbook choice).
class StartTimeFair : public PeerPolicy {
public:
    explicit StartTimeFair(std::int64_t slice_ns = 2'000'000) : slice_ns_(slice_ns) {}
    [[nodiscard]] std::string_view name() const override { return "sfq"; }
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
