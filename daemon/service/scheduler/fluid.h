// SPDX-License-Identifier: MIT
//
// Fluid: computes the lag of each VF behind a perfectly fair engine (GPS, generalised processor
// sharing), from measured service alone. Each ns of service that any VF receives also counts as
// 1 ns of ideal service, which is split by weight among the VFs with work (awake VFs).
// lag = ideal − received service, so the lags of the awake VFs sum to 0. A VF that runs out of work
// (falls asleep) forfeits a lag > 0. It keeps a lag < 0, but until it wakes, each ns of service
// raises this lag towards 0 by the VF's weight / Σ weights of the awake VFs. Priority classes are
// computed like separate engines. Virtual time is 128-bit fixed point, in units of 2^-32 ns per
// unit of weight. Called by GpuSchedule; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

namespace vgpu::daemon::scheduler {

inline constexpr std::size_t kFluidPriorityClasses = 3;

/// One priority class.
struct FluidClass {
    __int128 now = 0;               ///< virtual time: service of the class adds ns / awake_weight
    std::int64_t awake_weight = 0;  ///< Σ weight of the VFs with work

    bool operator==(const FluidClass&) const = default;
};

/// One VF. While it is awake, lag = (FluidClass::now − received) · weight.
struct FluidClient {
    std::int64_t weight = 0;
    std::size_t priority_class = 0;
    bool is_awake = true;
    __int128 received = 0;     ///< awake: virtual time up to which the VF has its ideal service
    std::int64_t debt_ns = 0;  ///< asleep: −lag at slept_at, ≥ 0
    __int128 slept_at = 0;     ///< asleep: virtual time at which the debt was debt_ns

    bool operator==(const FluidClient&) const = default;
};

/// The whole state of a Fluid, for recordings. Objects with equal images behave alike.
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

    /// Adds an awake VF with lag 0. Does nothing if the VF is present. `weight`: at least 1.
    void join(std::uint32_t vf, std::uint32_t weight, std::size_t priority_class = 0);
    /// Removes the VF. An awake VF's lag is spread over the other awake VFs of its priority class.
    void leave(std::uint32_t vf);
    /// Changes the VF's weight at once. The VF's lag in ns stays.
    void set_weight(std::uint32_t vf, std::uint32_t weight);

    /// The VF has work from now on. Its remaining debt becomes a negative lag, or is dropped if no
    /// other VF of the class is awake.
    void wake(std::uint32_t vf);
    /// The VF has no work from now on. Forfeits a lag > 0. A lag < 0 becomes a debt, which shrinks
    /// until the VF wakes.
    void sleep(std::uint32_t vf);

    /// Adds `ns` of service of the VF. Wakes a sleeping VF, because a VF that runs has work.
    void serve(std::uint32_t vf, std::int64_t ns);

    /// Sets all lags to 0. Call it after service that was not measured.
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
    /// −lag of a sleeping VF, ≥ 0.
    [[nodiscard]] std::int64_t debt_of(const FluidClient& client) const;
    /// Makes the VF awake with `lag`, and subtracts this lag from the other awake VFs of the class
    /// by weight.
    void enter(FluidClient& client, std::int64_t lag);
    /// Makes an awake VF sleep, and adds its lag to the other awake VFs of the class by weight.
    void exit(FluidClient& client);

    std::map<std::uint32_t, FluidClient> clients_;
    std::array<FluidClass, kPriorityClasses> priority_classes_{};
};

}  // namespace vgpu::daemon::scheduler
