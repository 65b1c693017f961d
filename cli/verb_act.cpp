// SPDX-License-Identifier: MIT
//
// The verbs that do one thing to a VF, one row each (docs/hardware-contract.md, Resets;
// docs/vf-lifecycle.md):
//   vgpuctl destroy TARGET   scrubs the VRAM and releases the resources
//   vgpuctl reset TARGET     clears the engine state; keeps VRAM and contract
//   vgpuctl pause TARGET     takes the VF off the engine; registers still answer the guest
//   vgpuctl stop TARGET      as pause, with gates shut
#include "cli/progress.h"
#include "cli/verbs.h"

namespace vgpu::cli {

namespace {

struct ControlRow {
    About about;
    const char* done;   ///< past tense, for output
    const char* force;  ///< help of --force
    bool takes_owner;
    bool takes_no_wait;
    void (*control)(Service& service, const std::string& path, const Options& options);
};

template <VfAction action>
void control(Service& service, const std::string& path, const Options& options) {
    service.control(path, action, options);
}

void destroy(Service& service, const std::string& path, const Options& options) {
    service.destroy_vf(path, options);
}

constexpr ControlRow kDestroy{
    {Group::Vfs, "destroy", "destroy a VF and scrub its VRAM", "destroy train"},
    "destroyed",
    "even if a client has it open or it is claimed",
    true,
    true,
    destroy};
constexpr ControlRow kReset{
    {Group::Vfs, "reset", "reset a VF while its neighbours keep computing", "reset gpu0/vf1"},
    "reset",
    "even if it is claimed",
    true,
    false,
    control<VfAction::Reset>};
constexpr ControlRow kPause{
    {Group::Vfs, "pause", "take a VF off the engine; its registers still answer", "pause gpu0/vf1"},
    "paused",
    "even if a client has it open",
    false,
    false,
    control<VfAction::Pause>};
constexpr ControlRow kStop{
    {Group::Vfs, "stop", "take a VF off the engine and shut its gates", "stop gpu0/vf1 --force"},
    "stopped",
    "even if a client has it open",
    false,
    false,
    control<VfAction::Stop>};

/// Waits for the end of the action. destroy also waits for the scrub, unless --no-wait is given.
class ControlVerb final : public Verb {
public:
    explicit ControlVerb(const ControlRow& row) : Verb(row.about), row_(row) {}

    void describe(CLI::App& command) override {
        add_vf(command, target_);
        command.add_flag("--force", force_, row_.force);
        if (row_.takes_owner) command.add_option("--owner", owner_, "on behalf of the VF's owner");
        if (row_.takes_no_wait)
            command.add_flag("--no-wait", no_wait_, "do not wait until the VRAM is scrubbed");
    }

    ExitCode run(Invocation& invocation) override {
        const std::string path = resolve_vf(invocation.service, target_, name());
        Options options;
        if (no_wait_) options["no_wait"] = true;
        if (force_) options["force"] = true;
        if (!owner_.empty()) options["owner"] = owner_;
        {
            const Waiting waiting(invocation, name() + " " + target_);
            row_.control(invocation.service, path, options);
        }
        print_done(invocation, target_, no_wait_ ? "being scrubbed" : row_.done);
        return ExitCode::Ok;
    }

private:
    const ControlRow& row_;
    std::string target_, owner_;
    bool force_ = false, no_wait_ = false;
};

}  // namespace

const MakeVerb make_destroy_verb = make_verb<ControlVerb, kDestroy>;
const MakeVerb make_reset_verb = make_verb<ControlVerb, kReset>;
const MakeVerb make_pause_verb = make_verb<ControlVerb, kPause>;
const MakeVerb make_stop_verb = make_verb<ControlVerb, kStop>;

}  // namespace vgpu::cli
