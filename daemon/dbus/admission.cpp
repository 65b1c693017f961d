// SPDX-License-Identifier: MIT
#include "daemon/dbus/admission.h"

#include <fmt/format.h>

namespace vgpu::daemon::dbus {

Result<Admission::Ticket> Admission::admit(const std::string& sender) {
    const auto known = counts_->by_sender.find(sender);
    if (known != counts_->by_sender.end() && known->second >= kMostPerSender)
        return fail(ErrorId::TooManyRequests,
                    fmt::format("{} requests of this caller are under way", known->second));
    if (counts_->total >= kMost)
        return fail(ErrorId::TooManyRequests,
                    fmt::format("{} requests of all callers are under way", counts_->total));
    ++counts_->by_sender[sender];
    ++counts_->total;
    // The ticket is a shared pointer to nothing of its own: its deleter is what counts down,
    // whoever lets go of it last.
    const auto leave = [counts = counts_, sender](const void*) {
        --counts->total;
        if (--counts->by_sender[sender] == 0) counts->by_sender.erase(sender);
    };
    return Ticket(counts_.get(), leave);
}

}  // namespace vgpu::daemon::dbus
