// SPDX-License-Identifier: MIT
//
// vgpuctl version: prints the versions of vgpuctl and vgpud.
#include "cli/verbs.h"

#include <fmt/format.h>

namespace vgpu::cli {

namespace {

/// Exits with 5 if vgpud cannot be reached. --json: vgpuctl-version-1.
class VersionVerb final : public Verb {
public:
    VersionVerb()
        : Verb({Group::State, "version", "print the versions of vgpuctl and vgpud", "version"}) {}

    ExitCode run(Invocation& invocation) override {
        const Properties manager = invocation.service.manager();
        std::string text = fmt::format("vgpuctl {}\nvgpud {}, API {}\n", VGPU_VERSION,
                                       text_of(manager, "Version"), text_of(manager, "ApiVersion"));
        if (flag_of(manager, "ReadOnly"))
            text += "vgpud is read-only: " + text_of(manager, "StateMessage") + "\n";
        invocation.print("vgpuctl-version-1",
                         {{"vgpuctl", VGPU_VERSION}, {"vgpud", json_of(manager)}}, text);
        return ExitCode::Ok;
    }
};

}  // namespace

const MakeVerb make_version_verb = make_verb<VersionVerb>;

}  // namespace vgpu::cli
