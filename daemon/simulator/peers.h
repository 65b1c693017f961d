// SPDX-License-Identifier: MIT
//
// Policies with the algorithms and default quanta of other systems ("peers"), taken from the
// sources or documents of these systems. If a source leaves a detail open, the policy decides in
// favour of the peer. Comments name what a policy leaves out. No peer has gang slots. Each policy
// here refuses scenarios with hangs, because it is not known how long a reset takes in the peer,
// and how much service the reset costs the VF.
#pragma once

#include "daemon/simulator/policy.h"

#include <list>
#include <vector>

namespace vgpu::simulator {

/// The part that all peers share: weights, and which VFs have work.
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

    /// The next VF with work after `last`, in round-robin order; 0 if no VF has work.
    [[nodiscard]] std::uint32_t next_in_circle(std::uint32_t last) const;
    /// set() calls it when a VF was added.
    virtual void entered(std::uint32_t /*vf*/) {}

    std::vector<Vf> vfs_;          ///< by VF number; 0 unused
    std::uint32_t current_ = 0;    ///< VF of the last grant
    std::int64_t started_ns_ = 0;  ///< start of the last slice

private:
    std::string_view name_;
    std::string_view hang_refusal_;
};

/// AMD GIM: round robin with slices of 6 ms, no weights. An overrun adds to the debt of the VF. If
/// the debt exceeds a slice, the VF loses its next slice, and the debt shrinks by one slice.
/// Otherwise the debt shortens the next slice, by at most a half, and shrinks by as much. The
/// policy always skips VFs without work; GIM skips a VF at most 8 times in a row. GIM resets a VF
/// (FLR) if a switch takes more than 500 ms.
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
    std::int64_t granted_ns_ = 0;        ///< length of the last grant
    std::vector<std::int64_t> debt_ns_;  ///< by VF number
};

/// Linux xe (GuC firmware) with the PF's default quanta: round robin with slices of 16 ms, no
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

/// Intel GVT-g: slices of 1 ms. Among the VFs with work and credit, the VF that was served least
/// recently is next. Every 100 ms, and when a VF joins, the VFs get credits: 100 ms in total, split
/// by weight. Every tenth time, and when a VF joins, the new credits replace the old credits, also
/// negative ones. If no VF with work has credit, the engine idles. Left out: the priority of a VF
/// in its first 2 s.
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
    static constexpr std::int64_t kTickNs = 1'000'000;      ///< slice
    static constexpr std::int64_t kPeriodNs = 100'000'000;  ///< period of the refills of credits
    static constexpr int kStages = 10;  ///< every kStages-th refill replaces the credits

    void refill();

    std::list<std::uint32_t> least_recent_;  ///< VFs, least recently served first
    std::vector<std::int64_t> credit_ns_;    ///< by VF number
    std::int64_t refill_ns_ = 0;             ///< time of the next refill; 0 before advance()
    int stage_ = 0;  ///< number of refills since the last join, modulo kStages; 0: replace
};

/// Start-time fair queueing, with slices of 2 ms. The VF with work and the smallest start tag is
/// next. After a slice, the VF's start tag grows by service / weight. When a VF gets work, its
/// start tag becomes at least that of the last slice.
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
    double now_ = 0;            ///< virtual time: start tag of the last slice
    std::vector<double> tags_;  ///< start tags, by VF number
};

}  // namespace vgpu::simulator
