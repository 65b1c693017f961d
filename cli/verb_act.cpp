// SPDX-License-Identifier: MIT
//
// The verbs that make one change to a VF, each described by a ControlRow
// (docs/hardware-contract.md, Resets; docs/vf-lifecycle.md):
//   vgpuctl destroy TARGET   scrubs the VRAM and releases the resources
//   vgpuctl reset TARGET     clears the engine state; keeps VRAM and contract
//   vgpuctl pause TARGET     takes the VF off the engine; registers still answer the guest
//   vgpuctl stop TARGET      the same as pause; also blocks VRAM BAR, doorbells and register
//                            writes of the VF until a reset
#include "cli/job_wait.h"

#include <variant>

namespace vgpu::cli {

namespace {

struct ControlRow {
    About about;
    const char* done;   ///< past tense, for output
    const char* force;  ///< help of --force
    std::variant<VfAction, VfJob> method;
};

constexpr ControlRow kDestroy{
    {Group::Vfs, "destroy", "destroy a VF and scrub its VRAM", "destroy train"},
    "destroyed",
    "even if a client has it open or it is claimed",
    VfJob::Destroy};
constexpr ControlRow kReset{
    {Group::Vfs, "reset", "reset a VF while its neighbours keep computing", "reset gpu0/vf1"},
    "reset",
    "even if it is claimed",
    VfJob::Reset};
constexpr ControlRow kPause{
    {Group::Vfs, "pause", "take a VF off the engine; its registers still answer", "pause gpu0/vf1"},
    "paused",
    "even if a client has it open",
    VfAction::Pause};
constexpr ControlRow kStop{
    {Group::Vfs, "stop", "take a VF off the engine and shut its gates", "stop gpu0/vf1 --force"},
    "stopped",
    "even if a client has it open",
    VfAction::Stop};

/// Waits until the change is complete, including the scrub of a destroy. With --no-wait, waits only
/// until vgpud has accepted the destroy.
class ControlVerb final : public Verb {
public:
    explicit ControlVerb(const ControlRow& row)
        : Verb(row.about), row_(row), job_(std::get_if<VfJob>(&row.method)) {}

    void describe(CLI::App& command) override {
        add_vf(command, target_);
        command.add_flag("--force", force_, row_.force);
        if (job_ == nullptr) return;
        command.add_option("--owner", owner_, "on behalf of the VF's owner");
        if (*job_ == VfJob::Destroy)
            command.add_flag("--no-wait", no_wait_, "do not wait until the VRAM is scrubbed");
    }

    ExitCode run(Invocation& invocation) override {
        const std::string path = resolve_vf(invocation.service, target_, name());
        Options options;
        if (force_) options["force"] = true;
        if (!owner_.empty()) options["owner"] = owner_;
        if (job_ == nullptr)
            invocation.service.control(path, std::get<VfAction>(row_.method), options);
        else
            carry_out(invocation, path, *job_, options, no_wait_ ? Until::Accepted : Until::Over);
        print_done(invocation, target_, no_wait_ ? "being scrubbed" : row_.done);
        return ExitCode::Ok;
    }

private:
    const ControlRow& row_;
    const VfJob* const job_;  ///< null if row_.method is a VfAction
    std::string target_, owner_;
    bool force_ = false, no_wait_ = false;
};

}  // namespace

const MakeVerb make_destroy_verb = make_verb<ControlVerb, kDestroy>;
const MakeVerb make_reset_verb = make_verb<ControlVerb, kReset>;
const MakeVerb make_pause_verb = make_verb<ControlVerb, kPause>;
const MakeVerb make_stop_verb = make_verb<ControlVerb, kStop>;

}  // namespace vgpu::cli
