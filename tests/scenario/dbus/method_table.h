// SPDX-License-Identifier: MIT
//
// Every method that the XML of schemas/dbus describes, called with arguments that are right, and
// which privilege each wants: one table for the authority of the tests and for the real polkitd.
#pragma once

#include <sdbus-c++/sdbus-c++.h>
#include <string>
#include <vector>

namespace vgpu::daemon::testing {

struct Argument {
    std::string name, type;
};

/// As the XML has it.
struct Method {
    std::string interface;  ///< "org.vgpu1.Vf"
    std::string name;
    std::vector<Argument> arguments;  ///< direction "in"

    [[nodiscard]] std::string full_name() const { return interface + "." + name; }
};

/// Of all interfaces of ours, in the order of the files.
[[nodiscard]] std::vector<Method> methods_of_the_xml();

/// `action` as polkit knows it; "": anybody may.
struct Right {
    const char* method;
    const char* action;
};

/// The object that calls of an interface go to: gpu0, its VF 1, job 1.
[[nodiscard]] std::string object_of(const std::string& interface);

/// Written by hand: what the XML cannot say and docs/dbus-api.md promises.
[[nodiscard]] const std::vector<Right>& rights();

/// What a call came to; no name: it was done.
struct Outcome {
    std::string error, text;
};

/// A job that changes nothing: number 1 of a vgpud that has had none.
void make_job(sdbus::IConnection& bus);

/// Calls `method` on the object of its interface; VF 1 is named "train".
[[nodiscard]] Outcome call(sdbus::IConnection& bus, const Method& method);

}  // namespace vgpu::daemon::testing
