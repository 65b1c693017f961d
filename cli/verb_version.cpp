// SPDX-License-Identifier: MIT
//
// vgpuctl version: prints the versions of vgpuctl and of the vgpud that answers.
#include "cli/verbs.h"

namespace vgpu::cli {

namespace {

/// Asks vgpud, so it ends with 5 if there is none. --json: vgpuctl-version-1.
class VersionVerb final : public Verb {
public:
    [[nodiscard]] std::string name() const override { return "version"; }
    [[nodiscard]] std::string summary() const override { return "versions of vgpuctl and vgpud"; }
    void describe(CLI::App&) override {}

    ExitCode run(Invocation& invocation) override {
        const Properties manager = invocation.service.manager();
        if (invocation.output == Output::Json) {
            invocation.out << document_text(
                "vgpuctl-version-1", {{"vgpuctl", VGPU_VERSION}, {"vgpud", json_of(manager)}});
            return ExitCode::Ok;
        }
        invocation.out << "vgpuctl " << VGPU_VERSION << "\nvgpud " << text_of(manager, "Version")
                       << ", API " << text_of(manager, "ApiVersion") << "\n";
        if (flag_of(manager, "ReadOnly"))
            invocation.out << "vgpud is read-only: " << text_of(manager, "StateMessage") << "\n";
        return ExitCode::Ok;
    }
};

}  // namespace

std::unique_ptr<Verb> make_version_verb() {
    return std::make_unique<VersionVerb>();
}

}  // namespace vgpu::cli
