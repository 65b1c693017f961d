// SPDX-License-Identifier: MIT
#include "tests/support/stolen_time.h"

#include <fmt/format.h>
#include <unistd.h>
#include <fstream>

namespace vgpu::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Line "cpu": user nice system idle iowait irq softirq steal, in clock ticks.
milliseconds stolen_since_boot() {
    std::ifstream stat("/proc/stat");
    std::string name;
    std::uint64_t ticks = 0;
    stat >> name;
    constexpr int kSteal = 8;
    for (int field = 0; field < kSteal; ++field) stat >> ticks;
    if (!stat) return milliseconds(0);
    return milliseconds(ticks * 1000 / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK)));
}

}  // namespace

StolenTime::StolenTime() : since_(steady_clock::now()), before_(stolen_since_boot()) {}

double StolenTime::part() const {
    const std::chrono::duration<double> stolen = stolen_since_boot() - before_;
    const std::chrono::duration<double> passed = steady_clock::now() - since_;
    return passed.count() > 0 ? stolen / passed : 0;
}

std::string StolenTime::describe() const {
    return fmt::format(
        "the hypervisor kept {:.0f} ms of every second from this machine: shares in "
        "real time cannot be judged",
        part() * 1000);
}

}  // namespace vgpu::test
