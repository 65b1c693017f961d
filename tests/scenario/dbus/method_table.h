// SPDX-License-Identifier: MIT
//
// Table of the methods that the XML of schemas/dbus describes, with valid arguments and the
// privilege that each requires. Tests with FakeAuthority and with the real polkitd use it.
#pragma once

#include <sdbus-c++/sdbus-c++.h>
#include <string>
#include <vector>

namespace vgpu::daemon::testing {

struct Argument {
    std::string name, type;
};

/// A method of the XML.
struct Method {
    std::string interface;  ///< "org.vgpu1.Vf"
    std::string name;
    std::vector<Argument> arguments;  ///< direction "in"

    [[nodiscard]] std::string full_name() const { return interface + "." + name; }
};

/// The methods of all org.vgpu1 interfaces, in the order of the files.
[[nodiscard]] std::vector<Method> methods_of_the_xml();

/// The polkit action that a method requires; "": every user may call the method.
struct Right {
    const char* method;
    const char* action;
};

/// The object that calls of an interface go to: gpu0, its VF 1, job 1.
[[nodiscard]] std::string object_of(const std::string& interface);

/// The rights of all methods, written by hand as docs/dbus-api.md promises them.
[[nodiscard]] const std::vector<Right>& rights();

/// Result of a call; no error: it was done.
struct Outcome {
    std::string error, text;
};

/// A job that changes nothing: number 1 of a vgpud that has had none.
void make_job(sdbus::IConnection& bus);

/// Calls `method` on the object of its interface; VF 1 is named "train".
[[nodiscard]] Outcome call(sdbus::IConnection& bus, const Method& method);

}  // namespace vgpu::daemon::testing
