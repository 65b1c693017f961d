// SPDX-License-Identifier: MIT
#include "daemon/dbus/context.h"

#include <algorithm>

namespace vgpu::daemon::dbus {

sdbus::Error to_dbus(const Error& error) {
    return make_error(dbus_name_of(error.id), text_of(error));
}

void PendingConditions::add(IsTrue is_true, Nanoseconds deadline, std::string what, Reply reply) {
    waiting_.push_back({std::move(is_true), deadline, std::move(what), std::move(reply)});
}

void PendingConditions::step(Nanoseconds now) {
    std::vector<Waiting> still;
    // taken out first, because a reply may add to the list
    for (Waiting& one : std::exchange(waiting_, {})) {
        if (one.is_true())
            one.reply({});
        else if (now >= one.deadline)
            one.reply(fail(ErrorId::TimedOut, one.what));
        else
            still.push_back(std::move(one));
    }
    waiting_.insert(waiting_.end(), std::make_move_iterator(still.begin()),
                    std::make_move_iterator(still.end()));
}

void DeferredWork::step() {
    if (work_.empty()) return;
    // taken out first, because the work may add to the list
    const std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    work();
}

}  // namespace vgpu::daemon::dbus
