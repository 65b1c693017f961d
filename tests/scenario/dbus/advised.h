// SPDX-License-Identifier: MIT
//
// Advised: does what a text of vgpud or vgpuctl recommends, in the state in which it recommends it.
// Commands stand between single quotes; placeholders are filled in, and each command must succeed.
#pragma once

#include "tests/scenario/dbus/bus_fixture.h"

#include <string>
#include <vector>

namespace vgpu::daemon::testing {

/// The texts between single quotes in `text` that begin with a program's name.
[[nodiscard]] std::vector<std::string> commands_in(const std::string& text);

/// The VF of the tests is 'train', the first of gpu0.
class Advised : public BusFixture {
protected:
    using BusFixture::BusFixture;

    /// Runs each recommended command; returns their number.
    int do_as_told(const std::string& text);

    /// Restarts vgpud with a device that has no VFs and refuses the defined VF's resources.
    void restart_with_a_device_that_refuses();

private:
    void restart_daemon();
    void type(const std::string& command);
    [[nodiscard]] std::string filled(std::string command) const;
    [[nodiscard]] std::string wanted_file() const;
};

}  // namespace vgpu::daemon::testing
