// SPDX-License-Identifier: MIT
//
// vgpuctl release TARGET --owner NAME --generation N: ends the claim with this generation. A late
// release does not end a newer claim, because the newer claim has another generation.
// vgpuctl release --orphans: ends all claims that look forgotten, and scrubs their VFs.
// In both cases, the VFs keep their resources.
#include "cli/number_options.h"
#include "cli/verbs.h"

#include <optional>
#include <string>
#include <vector>

namespace vgpu::cli {

namespace {

/// Calls Vf.Release. With --orphans, exits with the code of the last failure. --json:
/// vgpuctl-done-1; with --orphans: vgpuctl-released-1.
class ReleaseVerb final : public Verb {
public:
    ReleaseVerb()
        : Verb({Group::Vfs, "release", "end an owner's claim to a VF",
                "release gpu0/vf1 --owner slurm:7 --generation 1"}) {}
    void describe(CLI::App& command) override {
        auto* target = add_vf(command, target_)->required(false);
        command.add_option("--owner", owner_, "the claim's owner");
        command
            .add_option("--generation", generation_,
                        "the claim's generation, from 'claim' or 'show'")
            ->transform(whole_within(0, UINT64_MAX).description(""));
        command.add_flag("--scrub", is_scrubbing_, "scrub the VF before the next claim");
        command
            .add_flag("--orphans", ends_orphans_,
                      "end all claims that look forgotten ('list', 'show') and scrub their VFs")
            ->excludes(target)
            ->excludes("--owner")
            ->excludes("--generation");
    }

    ExitCode run(Invocation& invocation) override {
        if (ends_orphans_) return release_orphans(invocation);
        if (target_.empty() || owner_.empty() || !generation_)
            throw ServiceError("org.vgpu1.Error.UnknownOption",
                               "a release needs TARGET, --owner and --generation ('vgpuctl show "
                               "TARGET' has them), or --orphans");
        const std::string path = resolve_vf(invocation.service, target_, name());
        Options options;
        if (is_scrubbing_) options["scrub"] = true;
        invocation.service.release_vf(path, owner_, *generation_, options);
        print_done(invocation, target_, "released");
        return ExitCode::Ok;
    }

private:
    /// Releases each orphan with the generation that vgpud just reported. If the VF was claimed
    /// again meanwhile, vgpud refuses the release.
    static ExitCode release_orphans(Invocation& invocation) {
        ExitCode exit_code = ExitCode::Ok;
        std::vector<std::string> released;
        for (const Properties& vf : invocation.service.list_vfs()) {
            if (text_of(vf, "Orphan") == "-") continue;
            const std::string target = text_of(vf, "Target");
            try {
                invocation.service.release_vf(text_of(vf, "Path"), text_of(vf, "Owner"),
                                              number_of(vf, "OwnerGeneration"), {{"scrub", true}});
                released.push_back(target);
            } catch (const ServiceError& error) {
                invocation.err << "vgpuctl: " << target << ": " << error.what() << "\n";
                exit_code = error.exit_code();
            }
        }
        print_released(invocation, released, exit_code);
        return exit_code;
    }

    static void print_released(Invocation& invocation, const std::vector<std::string>& released,
                               ExitCode exit_code) {
        std::string lines;
        for (const std::string& target : released) lines += target + ": released\n";
        if (released.empty() && exit_code == ExitCode::Ok) lines = "no claim looks forgotten\n";
        invocation.print("vgpuctl-released-1", {{"targets", released}}, lines);
    }

    std::string target_, owner_;
    std::optional<std::uint64_t> generation_;
    bool is_scrubbing_ = false;
    bool ends_orphans_ = false;
};

}  // namespace

const MakeVerb make_release_verb = make_verb<ReleaseVerb>;

}  // namespace vgpu::cli
