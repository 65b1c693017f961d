// SPDX-License-Identifier: MIT
//
// TokenBucket: the cap of one VF. Tokens (ns of service) arrive at `rate_ppm` millionths of the
// time, up to `burst_ns`; service takes them. If no run exceeds the tokens at its start, service in
// any window W ≤ rate · W + burst; an overrun exceeds that once and is paid back. Exact: counted in
// millionths of a nanosecond.
#pragma once

#include <algorithm>
#include <cstdint>

namespace vgpu::daemon::scheduler {

/// contract.cpp makes burst_ns at least a slice, so that lack of room never cuts a slice.
struct Cap {
    std::uint32_t rate_ppm = 1'000'000;  ///< of the time; 1'000'000: no cap
    std::int64_t burst_ns = 0;

    [[nodiscard]] bool is_on() const { return rate_ppm < kAll; }
    bool operator==(const Cap&) const = default;

    static constexpr std::uint32_t kAll = 1'000'000;
};

/// Times in ns of any one clock that does not go back.
class TokenBucket {
public:
    /// A new bucket is full; a change keeps its tokens, up to the new capacity.
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

    /// In whole ns, rounded down; negative after an overrun.
    [[nodiscard]] std::int64_t tokens_ns(std::int64_t at_ns) {
        fill(at_ns);
        return tokens_ < 0 ? -((-tokens_ + kParts - 1) / kParts) : tokens_ / kParts;
    }

    void take(std::int64_t ns, std::int64_t at_ns) {
        fill(at_ns);
        tokens_ -= ns * kParts;
    }

    /// When the bucket has `ns` of tokens, or is full.
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
        // a long time fills the bucket; the product could overflow
        tokens_ += elapsed > room / cap_.rate_ppm ? std::max(room, std::int64_t{0})
                                                  : elapsed * cap_.rate_ppm;
    }

    Cap cap_;
    std::int64_t tokens_ = 0;  ///< millionths of a ns
    std::int64_t filled_ns_ = 0;
};

}  // namespace vgpu::daemon::scheduler
