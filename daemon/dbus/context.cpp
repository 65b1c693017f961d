// SPDX-License-Identifier: MIT
#include "daemon/dbus/context.h"

namespace vgpu::daemon::dbus {

sdbus::Error to_dbus(const Error& error) {
    return make_error(dbus_name_of(error.id), text_of(error));
}

void DeferredWork::step() {
    if (work_.empty()) return;
    // removed from the queue first, because the work may call add()
    const std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    work();
}

}  // namespace vgpu::daemon::dbus
