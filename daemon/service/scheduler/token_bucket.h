// SPDX-License-Identifier: MIT
//
// TokenBucket: the cap of one VF. Tokens (ns of service) come at `rate_ppm` millionths of the time
// and are kept up to `burst_ns`; service takes them. As long as no run is longer than the tokens
// there are when it starts, the service in any window W is at most rate * W + burst; a run that is
// overrun exceeds that by the overrun, once, and is paid back. Exact: counted in millionths of a
// nanosecond. Called by Scheduler.
#pragma once

#include <algorithm>
#include <cstdint>

namespace vgpu::daemon::scheduler {

/// rate_ppm 1 is one ns of service per ms. burst_ns is at least a slice (contract.cpp sees to it),
/// so that slices are not cut for want of room.
struct Cap {
    std::uint32_t rate_ppm = 1'000'000;  ///< of the time; 1000000: no cap
    std::int64_t burst_ns = 0;

    [[nodiscard]] bool is_on() const { return rate_ppm < kAll; }
    bool operator==(const Cap&) const = default;

    static constexpr std::uint32_t kAll = 1'000'000;
};

/// Times in ns of any one clock that does not go back.
class TokenBucket {
public:
    /// A bucket that is set for the first time is full; a change keeps what is in it.
    void set(const Cap& cap, std::int64_t at_ns) {
        if (cap == cap_) return;
        const bool was_on = cap_.is_on();
        if (was_on) fill(at_ns);
        cap_ = cap;
        tokens_ = was_on ? std::min(tokens_, capacity()) : capacity();
        filled_ns_ = at_ns;
    }

    [[nodiscard]] bool is_on() const { return cap_.is_on(); }
    [[nodiscard]] const Cap& cap() const { return cap_; }

    /// Tokens in it at `at_ns`, in whole ns, rounded down; negative after an overrun.
    [[nodiscard]] std::int64_t tokens_ns(std::int64_t at_ns) {
        fill(at_ns);
        return tokens_ < 0 ? -((-tokens_ + kParts - 1) / kParts) : tokens_ / kParts;
    }

    /// `ns` of service that ended at `at_ns`.
    void take(std::int64_t ns, std::int64_t at_ns) {
        fill(at_ns);
        tokens_ -= ns * kParts;
    }

    /// When there will be `ns` of tokens, at most a full bucket.
    [[nodiscard]] std::int64_t ready_ns(std::int64_t ns, std::int64_t at_ns) {
        fill(at_ns);
        const std::int64_t missing = std::min(ns * kParts, capacity()) - tokens_;
        if (missing <= 0) return at_ns;
        return at_ns + (missing + cap_.rate_ppm - 1) / cap_.rate_ppm;
    }

private:
    static constexpr std::int64_t kParts = Cap::kAll;

    [[nodiscard]] std::int64_t capacity() const { return cap_.burst_ns * kParts; }

    void fill(std::int64_t at_ns) {
        const std::int64_t room = capacity() - tokens_;
        const std::int64_t elapsed = at_ns - filled_ns_;
        filled_ns_ = at_ns;
        // full long before the product could overflow
        tokens_ += elapsed > room / cap_.rate_ppm ? std::max(room, std::int64_t{0})
                                                  : elapsed * cap_.rate_ppm;
    }

    Cap cap_;
    std::int64_t tokens_ = 0;  ///< millionths of a ns
    std::int64_t filled_ns_ = 0;
};

}  // namespace vgpu::daemon::scheduler
