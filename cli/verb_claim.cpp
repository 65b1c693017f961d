// SPDX-License-Identifier: MIT
//
// vgpuctl claim TARGET --owner NAME: gives a VF to an owner and prints the claim's generation, for
// 'release'.
#include "cli/number_options.h"
#include "cli/verbs.h"

#include <fmt/format.h>
#include <optional>

namespace vgpu::cli {

namespace {

/// Calls Vf.Claim. With --generation, vgpud claims the VF only if the current claim has this
/// generation. --json: vgpuctl-claim-1.
class ClaimVerb final : public Verb {
public:
    ClaimVerb()
        : Verb({Group::Vfs, "claim", "give a VF to an owner",
                "claim gpu0/vf1 --owner slurm:7 --lease 3600"}) {}
    void describe(CLI::App& command) override {
        add_vf(command, target_);
        command.add_option("--owner", owner_, "libvirt:UUID, pid:N, slurm:JOB, or any other word")
            ->required();
        add_whole(command, "--lease", lease_s_,
                  "time after which others may claim the VF (default: never)")
            ->type_name("SECONDS");
        add_whole(command, "--generation", generation_,
                  "only if this claim is in force (0: only if no claim is)");
        command.add_flag("--persistent", is_persistent_,
                         "the claim outlives the stops of its domain");
    }

    ExitCode run(Invocation& invocation) override {
        const std::string path = resolve_vf(invocation.service, target_, name());
        Options options;
        if (lease_s_) options["lease_s"] = *lease_s_;
        if (generation_) options["generation"] = *generation_;
        if (is_persistent_) options["persistent"] = true;
        const std::uint64_t generation = invocation.service.claim_vf(path, owner_, options);
        invocation.print("vgpuctl-claim-1",
                         {{"target", target_}, {"owner", owner_}, {"generation", generation}},
                         fmt::format("{}: belongs to {}, generation {}{}\n", target_, owner_,
                                     generation, is_persistent_ ? ", persistent" : ""));
        return ExitCode::Ok;
    }

private:
    std::string target_, owner_;
    /// None if the user did not give the option. vgpuctl then sends no value, because 0 has a
    /// meaning (lease_s: no end; generation: no claim).
    std::optional<Value> lease_s_, generation_;
    bool is_persistent_ = false;
};

}  // namespace

const MakeVerb make_claim_verb = make_verb<ClaimVerb>;

}  // namespace vgpu::cli
