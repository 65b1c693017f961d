// SPDX-License-Identifier: MIT
//
// Fluid: the lag of each VF behind a perfectly fair engine (GPS, generalised processor sharing),
// from measured service alone. All service that any VF receives counts as ideal service of all VFs
// with work, split by weight. lag = ideal − received, and Σ lag = 0 over the VFs with work. A VF
// that runs out of work forfeits a lag > 0. While the VF has no work, a lag < 0 shrinks to 0 at the
// rate of the VF's share. Each priority class is computed like a separate engine. Virtual time is
// 128-bit fixed point (2^-32 ns per unit of weight). Called by GpuSchedule; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

namespace vgpu::daemon::scheduler {

inline constexpr std::size_t kFluidPriorityClasses = 3;

/// One priority class. A ns of service moves `now` by 1 / awake_weight.
struct FluidClass {
    __int128 now = 0;               ///< virtual time
    std::int64_t awake_weight = 0;  ///< Σ weight of the VFs with work

    bool operator==(const FluidClass&) const = default;
};

/// One VF.
struct FluidClient {
    std::int64_t weight = 0;
    std::size_t priority_class = 0;
    bool is_awake = true;
    __int128 received = 0;     ///< virtual time up to which the VF has been served
    std::int64_t debt_ns = 0;  ///< asleep: −lag at slept_at, ≥ 0
    __int128 slept_at = 0;     ///< asleep: virtual time at which the debt was debt_ns

    bool operator==(const FluidClient&) const = default;
};

/// The whole state of a Fluid. Objects with equal images behave alike.
struct FluidImage {
    std::map<std::uint32_t, FluidClient> clients{};  ///< by VF
    std::array<FluidClass, kFluidPriorityClasses> priority_classes{};
};

/// Priority classes are 0 (first) to kPriorityClasses - 1. Fluid ignores unknown VFs, because
/// events of released VFs may arrive.
class Fluid {
public:
    static constexpr std::size_t kPriorityClasses = kFluidPriorityClasses;

    Fluid() = default;
    /// In `image`, each awake_weight must be the sum of the weights of the awake clients of its
    /// class.
    explicit Fluid(const FluidImage& image)
        : clients_(image.clients), priority_classes_(image.priority_classes) {}
    [[nodiscard]] FluidImage image() const {
        return {.clients = clients_, .priority_classes = priority_classes_};
    }
    bool operator==(const Fluid&) const = default;

    /// Adds the VF awake, with lag 0. Does nothing if the VF is present.
    void join(std::uint32_t vf, std::uint32_t weight, std::size_t priority_class = 0);
    /// Removes the VF. An awake VF's lag is spread over the other awake VFs of its priority class.
    void leave(std::uint32_t vf);
    /// Takes effect at once; the lag in ns stays.
    void set_weight(std::uint32_t vf, std::uint32_t weight);

    void wake(std::uint32_t vf);
    /// Forfeits a lag > 0. While the VF sleeps, a lag < 0 shrinks to 0 at the rate of the VF's
    /// share.
    void sleep(std::uint32_t vf);

    /// Adds service. Wakes a sleeping VF, because a VF that runs has work.
    void serve(std::uint32_t vf, std::int64_t ns);

    /// Sets all lags to 0, because service could not be followed.
    void reset_lags();

    [[nodiscard]] bool has(std::uint32_t vf) const { return clients_.contains(vf); }
    [[nodiscard]] bool is_awake(std::uint32_t vf) const;
    /// 0 if the VF is not present.
    [[nodiscard]] std::size_t priority_class_of(std::uint32_t vf) const;
    /// ideal − received, in ns; ≤ 0 while the VF sleeps; 0 if the VF is not present.
    [[nodiscard]] std::int64_t lag_ns(std::uint32_t vf) const;
    /// Part of the service of its priority class that `vf` is entitled to now, 0..1; 0 while the VF
    /// sleeps.
    [[nodiscard]] double ideal_share(std::uint32_t vf) const;

private:
    /// ideal − received in ns. Only the final division is inexact; it rounds towards zero.
    [[nodiscard]] std::int64_t lag_of(const FluidClient& client) const;
    [[nodiscard]] std::int64_t debt_of(const FluidClient& client) const;
    void enter(FluidClient& client, std::int64_t lag);
    void exit(FluidClient& client);

    std::map<std::uint32_t, FluidClient> clients_;
    std::array<FluidClass, kPriorityClasses> priority_classes_{};
};

}  // namespace vgpu::daemon::scheduler
