// SPDX-License-Identifier: MIT
//
// vgpuctl list: every GPU and every VF in service, one line each.
#include "cli/verbs.h"

#include <fmt/format.h>

namespace vgpu::cli {

namespace {

/// FREE is VRAM that no VF has, not what guests leave unused.
std::string gpu_table(const std::vector<Properties>& gpus) {
    std::vector<std::vector<std::string>> rows;
    for (const Properties& gpu : gpus)
        rows.push_back({text_of(gpu, "Id"), text_of(gpu, "State"), size_of(gpu, "VramFreeBytes"),
                        size_of(gpu, "VramBytes"), text_of(gpu, "TotalVfs"),
                        text_of(gpu, "CuCount"), text_of(gpu, "Switches")});
    return table_text({{"GPU"},
                       {"STATE"},
                       {"FREE", Align::Right},
                       {"VRAM", Align::Right},
                       {"VFS", Align::Right, false, 3},
                       {"CUS", Align::Right, false, 2},
                       {"SWITCHES", Align::Right, false, 1}},
                      rows);
}

/// "libvirt:vm1" if the owner's name is known.
std::string owner_text(const Properties& vf) {
    const std::string owner = text_of(vf, "Owner"), name = text_of(vf, "OwnerName");
    const std::string kept = flag_of(vf, "OwnerKept") ? " (kept)" : "";
    if (name == "-") return owner + kept;
    const std::size_t kind = owner.find(':');
    return (kind == std::string::npos ? name : owner.substr(0, kind + 1) + name) + kept;
}

/// SHARE covers the last 10 s; ATTACHED: a VM has the VF open.
std::string vf_table(const std::vector<Properties>& vfs) {
    std::vector<std::vector<std::string>> rows;
    for (const Properties& vf : vfs)
        rows.push_back({text_of(vf, "Target"), text_of(vf, "Name"), text_of(vf, "State"),
                        size_of(vf, "VramBytes"), text_of(vf, "Weight"),
                        percent_text(real_of(vf, "ShareWindow")),
                        flag_of(vf, "Attached") ? "yes" : "no", owner_text(vf)});
    return table_text({{"VF"},
                       {"NAME", Align::Left, true, 6},
                       {"STATE"},
                       {"VRAM", Align::Right, false, 4},
                       {"WEIGHT", Align::Right, false, 2},
                       {"SHARE", Align::Right, false, 1},
                       {"ATTACHED", Align::Left, false, 3},
                       {"OWNER", Align::Left, true, 5}},
                      rows);
}

/// Only the columns of the tables and targets: all properties of 256 VFs take a while.
constexpr const char* kGpuColumns = "Id,State,VramFreeBytes,VramBytes,TotalVfs,CuCount,Switches";
constexpr std::uint32_t kOneLookMs = 100;
/// Age of SWITCHES and FREE that a table accepts. No event reports SWITCHES, nor FREE if another
/// program hands out VRAM; vgpud reads both once a second, so a table need not disturb the GPU.
constexpr std::uint32_t kTableAgeMs = 1500;
constexpr const char* kVfColumns =
    "Name,State,VramBytes,Weight,ShareWindow,Attached,Owner,OwnerName,OwnerKept";

/// Manager.ListGpus and ListVfColumns. --targets is for completion: only names, no titles.
/// --json: vgpuctl-list-1, with all properties; with --targets vgpuctl-targets-1.
class ListVerb final : public Verb {
public:
    [[nodiscard]] std::string name() const override { return "list"; }
    [[nodiscard]] std::string summary() const override { return "GPUs and the VFs in service"; }
    void describe(CLI::App& command) override {
        command.add_flag("--gpus", only_gpus_, "only the GPUs");
        command.add_flag("--vfs", only_vfs_, "only the VFs")->excludes("--gpus");
        command.add_flag("--targets", only_targets_, "only what a TARGET may be, one a line");
    }

    ExitCode run(Invocation& invocation) override {
        const bool with_gpus = !only_vfs_, with_vfs = !only_gpus_;
        const bool wants_all = invocation.output == Output::Json && !only_targets_;
        std::vector<Properties> gpus, vfs;
        if (with_gpus)
            gpus = invocation.service.list_gpus_with(wants_all ? "" : kGpuColumns,
                                                     wants_all ? 0 : kTableAgeMs);
        // for JSON the first list has just read the GPUs
        if (with_vfs)
            vfs = invocation.service.list_vfs_with(wants_all ? "" : kVfColumns,
                                                   wants_all && with_gpus ? kOneLookMs : 0);
        if (only_targets_) {
            print_targets(invocation, gpus, vfs);
            return ExitCode::Ok;
        }
        if (invocation.output == Output::Json) {
            invocation.out << document_text("vgpuctl-list-1",
                                            {{"gpus", json_of(gpus)}, {"vfs", json_of(vfs)}});
            return ExitCode::Ok;
        }
        if (with_gpus) invocation.out << gpu_table(gpus);
        if (with_gpus && with_vfs) invocation.out << "\n";
        if (with_vfs && vfs.empty())
            invocation.out << "No VF is in service; 'vgpuctl create' makes one.\n";
        else if (with_vfs)
            invocation.out << vf_table(vfs);
        return ExitCode::Ok;
    }

private:
    static void print_targets(Invocation& invocation, const std::vector<Properties>& gpus,
                              const std::vector<Properties>& vfs) {
        Words targets;
        for (const Properties& gpu : gpus) targets.push_back(text_of(gpu, "Target"));
        for (const Properties& vf : vfs)
            targets.insert(targets.end(), {text_of(vf, "Target"), text_of(vf, "Name")});
        if (invocation.output == Output::Json) {
            invocation.out << document_text("vgpuctl-targets-1", {{"targets", targets}});
            return;
        }
        for (const std::string& target : targets) invocation.out << target << "\n";
    }

    bool only_gpus_ = false;
    bool only_vfs_ = false;
    bool only_targets_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_list_verb() {
    return std::make_unique<ListVerb>();
}

}  // namespace vgpu::cli
