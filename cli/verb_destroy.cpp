// SPDX-License-Identifier: MIT
//
// vgpuctl destroy TARGET: takes a VF's resources back; its VRAM is scrubbed first.
#include "cli/progress.h"
#include "cli/verbs.h"

namespace vgpu::cli {

namespace {

/// Vf.Destroy. Without --no-wait, exit status 0 means that the VF is back in the pool, scrubbed.
class DestroyVerb final : public Verb {
public:
    [[nodiscard]] std::string name() const override { return "destroy"; }
    [[nodiscard]] std::string summary() const override {
        return "take a VF's resources back, scrubbed";
    }
    void describe(CLI::App& command) override {
        command.add_option("TARGET", target_, "gpu0/vf3, a VF's name or UUID")->required();
        command.add_flag("--force", force_, "even if a client has it open or it is claimed");
        command.add_option("--owner", owner_, "in the name of the owner who has claimed it");
        command.add_flag("--no-wait", no_wait_, "do not wait until the VRAM is scrubbed");
    }

    ExitCode run(Invocation& invocation) override {
        const std::string path = resolve_vf(invocation.service, target_, name());
        Options options;
        if (no_wait_) options["no_wait"] = true;
        if (force_) options["force"] = true;
        if (!owner_.empty()) options["owner"] = owner_;
        {
            const Waiting waiting(invocation, "destroy " + target_);
            invocation.service.destroy_vf(path, options);
        }
        print_done(invocation, target_, no_wait_ ? "being scrubbed" : "destroyed");
        return ExitCode::Ok;
    }

private:
    std::string target_, owner_;
    bool force_ = false;
    bool no_wait_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_destroy_verb() {
    return std::make_unique<DestroyVerb>();
}

}  // namespace vgpu::cli
