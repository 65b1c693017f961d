// SPDX-License-Identifier: MIT
//
// vgpuctl doctor: finds faults of this host, with reasons and fixes. Works without vgpud.
#include "cli/diagnosis.h"
#include "cli/host_collector.h"
#include "cli/verbs.h"

namespace vgpu::cli {

namespace {

/// Exits with 1 if there is a problem, and with 0 for warnings and notes. --json: vgpuctl-doctor-1.
class DoctorVerb final : public Verb {
public:
    DoctorVerb()
        : Verb({Group::Diagnose, "doctor", "find what is wrong with this host", "doctor"}) {}
    void describe(CLI::App& command) override {
        command.add_option("--run-dir", host_sources_.run_dir, "run_dir of vgpud")
            ->capture_default_str();
        command.add_option("--qemu", host_sources_.qemu, "the QEMU to check")
            ->capture_default_str();
        command
            .add_option("--root", host_sources_.root,
                        "read a copy of /proc, /sys … below this directory")
            ->group("");
        command.add_option("--pci-dump", pci_dump_, "read an lspci -xxxx dump")->group("");
    }

    ExitCode start(const VerbContext& context) override {
        if (!pci_dump_.empty()) host_sources_.pci_dump = pci_dump_;
        const auto findings = diagnose(HostCollector(host_sources_).collect(context.connect));
        context.print("vgpuctl-doctor-1", findings_json(findings),
                      findings_text(findings, context.uses_colour));
        return worst_of(findings) == Level::Problem ? ExitCode::Failed : ExitCode::Ok;
    }

private:
    HostSources host_sources_;
    std::string pci_dump_;
};

}  // namespace

const MakeVerb make_doctor_verb = make_verb<DoctorVerb>;

}  // namespace vgpu::cli
