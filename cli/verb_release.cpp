// SPDX-License-Identifier: MIT
//
// vgpuctl release TARGET --owner NAME --generation N: ends a claim; the VF keeps its resources. A
// release that comes late, when the VF is somebody else's already, does nothing and says so.
#include "cli/number_options.h"
#include "cli/verbs.h"

namespace vgpu::cli {

namespace {

/// Vf.Release. --generation is required so that a late release cannot end the next owner's claim.
class ReleaseVerb final : public Verb {
public:
    [[nodiscard]] std::string name() const override { return "release"; }
    [[nodiscard]] std::string summary() const override { return "end an owner's claim to a VF"; }
    void describe(CLI::App& command) override {
        command.add_option("TARGET", target_, "gpu0/vf3, a VF's name or UUID")->required();
        command.add_option("--owner", owner_, "whose claim it is")->required();
        command.add_option("--generation", generation_, "what 'claim' printed; see 'show'")
            ->required()
            ->transform(whole_within(0, UINT64_MAX).description(""));
        command.add_flag("--scrub", is_scrubbing_, "empty the VF before anybody can claim it");
    }

    ExitCode run(Invocation& invocation) override {
        const std::string path = resolve_vf(invocation.service, target_, name());
        Options options;
        if (is_scrubbing_) options["scrub"] = true;
        invocation.service.release_vf(path, owner_, generation_, options);
        print_done(invocation, target_, "released");
        return ExitCode::Ok;
    }

private:
    std::string target_, owner_;
    std::uint64_t generation_ = 0;
    bool is_scrubbing_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_release_verb() {
    return std::make_unique<ReleaseVerb>();
}

}  // namespace vgpu::cli
