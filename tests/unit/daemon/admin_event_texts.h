// SPDX-License-Identifier: MIT
//
// texts_of(): what a World has reported of one kind since it was last asked. Takes all events. Used
// by tests that expect events for administrators.
#pragma once

#include "tests/unit/daemon/world.h"

#include <string>
#include <vector>

namespace vgpu::daemon::testing {

inline std::vector<std::string> texts_of(World& world, EventKind kind) {
    std::vector<std::string> texts;
    for (const AdminEvent& admin_event : world.manager->take_admin_events())
        if (admin_event.kind == kind) texts.push_back(admin_event.text);
    return texts;
}

}  // namespace vgpu::daemon::testing
