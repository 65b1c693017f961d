// SPDX-License-Identifier: MIT
//
// Fluid: what each VF has received against what a perfectly fair engine (GPS) would have given it,
// from measured service alone. Every nanosecond of service received by one VF is an ideal service
// split by weight among the VFs that have work; lag = ideal - received, and the lags of the VFs
// with work always sum to zero. A VF that runs out of work forfeits what it was owed and still owes
// what it had too much, until fair service elsewhere has paid for it. Priority bands are engines of
// their own here: what a VF receives is shared by weight within its band.
//
// Virtual time is a 128-bit fixed-point number (2^-32 ns per unit of weight). One thread.
// Called by GpuSchedule with RUN, WAKE, IDLE events and life-cycle changes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

namespace vgpu::daemon::scheduler {

inline constexpr std::size_t kFluidBands = 3;

/// `now` is the band's virtual time; awake_weight the sum over its VFs with work, by which a ns of
/// service moves it.
struct FluidBand {
    __int128 now = 0;
    std::int64_t awake_weight = 0;

    bool operator==(const FluidBand&) const = default;
};

/// One VF; weight and band as it joined or was changed to.
struct FluidClient {
    std::int64_t weight = 0;
    std::size_t band = 0;
    bool is_awake = true;
    __int128 received = 0;     ///< virtual time up to which it has been served
    std::int64_t debt_ns = 0;  ///< asleep: what it still owes, >= 0
    __int128 slept_at = 0;     ///< asleep: virtual time at which debt_ns was right

    bool operator==(const FluidClient&) const = default;
};

/// All there is to know of it; equal ones go on alike.
struct FluidImage {
    std::map<std::uint32_t, FluidClient> clients{};  ///< by VF
    std::array<FluidBand, kFluidBands> bands{};

    bool operator==(const FluidImage&) const = default;
};

/// Generalized processor sharing (GPS) as the ideal. Bands are 0 (first) to kBands - 1. VFs that
/// did not join() are ignored: events of a VF that was just released may still come.
class Fluid {
public:
    static constexpr std::size_t kBands = kFluidBands;

    Fluid() = default;
    /// `image` is that of a Fluid: the weights of its bands are those of its clients.
    explicit Fluid(const FluidImage& image) : clients_(image.clients), bands_(image.bands) {}
    [[nodiscard]] FluidImage image() const { return {.clients = clients_, .bands = bands_}; }

    /// Enters the competition, awake, with no lag. Does nothing if it is there.
    void join(std::uint32_t vf, std::uint32_t weight, std::size_t band = 0);
    /// If it has work, what it was owed, or owed, is spread over the others of its band that have.
    void leave(std::uint32_t vf);
    /// At once, with the lag it has: the lag is kept in ns, not in virtual time.
    void set_weight(std::uint32_t vf, std::uint32_t weight);

    /// It has work (again) or none.
    void wake(std::uint32_t vf);
    /// Asleep it forfeits what it was owed. What it owed shrinks as fast as its share would have
    /// paid for it, and never becomes a credit.
    void sleep(std::uint32_t vf);

    /// `vf` received `ns` of service. A sleeping VF is woken: running proves work.
    void serve(std::uint32_t vf, std::int64_t ns);

    /// Forgets every lag (service was lost track of).
    void settle();

    [[nodiscard]] bool has(std::uint32_t vf) const { return clients_.contains(vf); }
    [[nodiscard]] bool is_awake(std::uint32_t vf) const;
    /// 0 if it is not there.
    [[nodiscard]] std::size_t band_of(std::uint32_t vf) const;
    /// ideal - received, in ns; > 0: it is owed. Asleep: <= 0, what it still owes. 0 if it is not
    /// there.
    [[nodiscard]] std::int64_t lag_ns(std::uint32_t vf) const;
    /// Part of what its band gets that `vf` is entitled to now, 0..1; 0 while it sleeps.
    [[nodiscard]] double ideal_share(std::uint32_t vf) const;

private:
    /// Exact but for the last division: rounded towards zero, to whole ns.
    [[nodiscard]] std::int64_t lag_of(const FluidClient& client) const;
    [[nodiscard]] std::int64_t debt_of(const FluidClient& client) const;
    void enter(FluidClient& client, std::int64_t lag);
    void exit(FluidClient& client);

    std::map<std::uint32_t, FluidClient> clients_;
    std::array<FluidBand, kBands> bands_{};
};

}  // namespace vgpu::daemon::scheduler
