// SPDX-License-Identifier: MIT
#include "tests/scenario/demo/figures_table.h"

#include <fmt/format.h>

namespace vgpu::demo {
namespace {

double us(std::uint64_t ns) {
    return static_cast<double>(ns) / 1e3;
}

}  // namespace

void print_table(const Figures& figures) {
    fmt::print("\n  {:<5} {:>6} {:>9} {:>9} {:>9} {:>8} {:>8} {:>10} {:>10} {:>8}\n", "VF",
               "weight", "due", "received", "error", "lag max", "quanta", "by instr.", "by progr.",
               "rounds");
    std::uint64_t weights = 0;
    for (const auto& one : figures.vfs) weights += one.weight;
    for (const auto& one : figures.vfs) {
        fmt::print("  VF{:<3} {:>6} {:>8.2f}% {:>8.2f}% {:>8.2f}% {:>8.2f} {:>8} {:>9.2f}% ",
                   one.vf, one.weight,
                   100.0 * static_cast<double>(one.weight) / static_cast<double>(weights),
                   100 * one.share, 100 * one.share_error, one.lag_quanta, one.quanta,
                   100 * one.instructions_share);
        if (figures.counts_progress)
            fmt::print("{:>9.2f}% {:>8}\n", 100 * one.progress_share, one.rounds);
        else
            fmt::print("{:>10} {:>8}\n", "-", "-");
    }
    fmt::print("\n  {} world switches in {:.1f} s; p50 {:.1f} us, p99 {:.1f} us\n\n",
               figures.switches, figures.seconds, us(figures.switch_p50_ns),
               us(figures.switch_p99_ns));
}

}  // namespace vgpu::demo
