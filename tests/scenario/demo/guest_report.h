// SPDX-License-Identifier: MIT
//
// GuestReport: a page that the demo and a guest process share. The guest writes its results, the
// demo writes orders.
#pragma once

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "tests/support/unique_fd.h"

namespace vgpu::demo {

enum class GuestState : std::uint32_t { Booting, Computing, Attacking, Endless, Done, Failed };
enum class GuestOrder : std::uint32_t { Compute, Attack, Endless, Finish };

struct GuestReport {
    std::atomic<GuestState> state{GuestState::Booting};
    std::atomic<GuestOrder> order{GuestOrder::Compute};
    std::atomic<std::uint64_t> rounds{0};         ///< all programs once, results right
    std::atomic<std::uint64_t> runs{0};           ///< programs run
    std::atomic<std::uint64_t> wrong{0};          ///< results that differed
    std::atomic<std::uint64_t> endless_count{0};  ///< counter of the endless kernel
    std::atomic<std::uint32_t> attacks_stopped{0};
    std::atomic<std::uint32_t> attacks_through{0};
    std::array<char, 1024> text{};  ///< what happened, NUL-terminated, before state changes
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(sizeof(GuestReport) <= 4096);

/// The page, inherited by the guest process as an open file.
class SharedReport {
public:
    /// A new page, or the one behind `fd`.
    SharedReport();
    explicit SharedReport(int fd);

    [[nodiscard]] int fd() const { return fd_.get(); }
    GuestReport* operator->() const { return report_; }
    void say(const std::string& text) const;

private:
    void map();
    test::UniqueFd fd_;
    test::Mapping memory_;
    GuestReport* report_ = nullptr;
};

}  // namespace vgpu::demo
