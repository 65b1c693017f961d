// SPDX-License-Identifier: MIT
#include "daemon/simulator/model_gpu_state.h"

#include <bit>

namespace vgpu::simulator {

std::vector<std::uint64_t> ModelGpuState::digest() const {
    std::vector<std::uint64_t> words;
    const auto until = [this](std::uint64_t time) {
        return time <= now_ ? 0u
                            : static_cast<std::uint32_t>(std::bit_width((time - now_) / kUs)) + 1;
    };
    const auto flags = [&words](std::initializer_list<bool> bits) {
        std::uint64_t word = 0;
        for (const bool bit : bits) word = word << 1 | static_cast<std::uint64_t>(bit);
        words.push_back(word);
    };
    for (const auto& [time, event] : events_) words.push_back(until(time));
    words.insert(words.end(), {events_.size(), faults.size(), fail_after.value_or(UINT64_MAX),
                               intr_status_, intr_enable_, mbox1_, command_, status_, loaded_,
                               step_, steps_.size(), until(device_reset_ends_)});
    flags({irq_, op_busy_, op_refused_, is_running_, is_stalled_, idle_since_.has_value(), is_gone,
           lose_interrupts, verify_fails, stream_in.empty()});
    for (const Vf& vf : vfs_) {
        words.insert(words.end(), {vf.to_pf[0], vf.to_vf[0]});
        flags({vf.work_ns != 0, vf.work_ns == kEndless, vf.hangs, vf.is_attached, vf.flr_never_ends,
               vf.flr_pending, vf.to_pf_valid, vf.to_vf_valid, vf.to_pf_acked, vf.has_interrupts});
    }
    return words;
}

}  // namespace vgpu::simulator
