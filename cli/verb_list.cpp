// SPDX-License-Identifier: MIT
//
// vgpuctl list: prints a line for every GPU and every VF in service, or (--capacity) the numbers of
// VFs of each profile.
#include "cli/table.h"
#include "cli/verbs.h"

#include <array>

namespace vgpu::cli {

namespace {

/// FREE: VRAM that belongs to no VF. A VF's VRAM is not free, even if the guest does not use it.
constexpr std::array kGpuColumns{
    PropertyColumn{{"GPU"}, "Id", text_of},
    PropertyColumn{{"STATE"}, "State", text_of},
    PropertyColumn{{"FREE", Align::Right}, "VramFreeBytes", size_of},
    PropertyColumn{{"VRAM", Align::Right}, "VramBytes", size_of},
    PropertyColumn{{"VFS", Align::Right, false, 3}, "TotalVfs", text_of},
    PropertyColumn{{"CUS", Align::Right, false, 2}, "CuCount", text_of},
    PropertyColumn{{"SWITCHES", Align::Right, false, 1}, "Switches", text_of},
    PropertyColumn{{"DRIVER", Align::Left, false, 4}, "Driver", text_of},
    PropertyColumn{extra("ADDRESS"), "Address", text_of},
    PropertyColumn{extra("MESSAGE"), "StateMessage", text_of},
    PropertyColumn{extra("UAPI"), "Uapi", text_of},
};

/// The owner, such as "libvirt:vm1 (persistent)". The owner's name, if known, replaces its id.
std::string owner_text(const Properties& vf, const std::string&) {
    const std::string owner = text_of(vf, "Owner"), name = text_of(vf, "OwnerName");
    const std::string persistent = flag_of(vf, "OwnerPersistent") ? " (persistent)" : "";
    if (name == "-") return owner + persistent;
    const std::size_t kind = owner.find(':');
    return (kind == std::string::npos ? name : owner.substr(0, kind + 1) + name) + persistent;
}

/// SHARE: share of the engine in the last 10 s. ATTACHED: whether a client has the VF open.
constexpr std::array kVfColumns{
    PropertyColumn{{"VF"}, "Target", text_of},
    PropertyColumn{{"NAME", Align::Left, true, 6}, "Name", text_of},
    PropertyColumn{{"STATE"}, "State", text_of},
    PropertyColumn{{"VRAM", Align::Right, false, 4}, "VramBytes", size_of},
    PropertyColumn{{"WEIGHT", Align::Right, false, 2}, "Weight", text_of},
    PropertyColumn{{"SHARE", Align::Right, false, 1}, "ShareWindow", percent_of},
    PropertyColumn{{"ATTACHED", Align::Left, false, 3}, "Attached", text_of},
    PropertyColumn{{"OWNER", Align::Left, true, 5}, "Owner,OwnerName,OwnerPersistent", owner_text},
    PropertyColumn{extra("UUID"), "Uuid", text_of},
    PropertyColumn{extra("PROFILE"), "Profile", text_of},
    PropertyColumn{extra("DESCRIPTION"), "Description", text_of},
    PropertyColumn{extra("ADDRESS"), "Address", text_of},
    PropertyColumn{extra("SOCKET"), "Socket", text_of},
    PropertyColumn{extra("CLIENT"), "Client", text_of},
    PropertyColumn{extra("DRIVER"), "Driver", text_of},
    PropertyColumn{extra("CONDITION"), "Condition", text_of},
    PropertyColumn{extra("ORPHAN"), "Orphan", text_of},
    PropertyColumn{extra("OWNERID"), "Owner", text_of},
};

/// One row for each profile on each GPU. TOTAL and so on: numbers of VFs. STATE: the GPU's state.
constexpr std::array kCapacityColumns{
    PropertyColumn{{"GPU"}, "Gpu", text_of},
    PropertyColumn{{"STATE"}, "GpuState", text_of},
    PropertyColumn{{"PROFILE"}, "Profile", text_of},
    PropertyColumn{{"TOTAL", Align::Right}, "Total", text_of},
    PropertyColumn{{"FREE", Align::Right}, "Free", text_of},
    PropertyColumn{{"CLAIMED", Align::Right}, "Claimed", text_of},
    PropertyColumn{{"UNAVAILABLE", Align::Right}, "Unavailable", text_of},
};

/// Accepted age of the VFs' values with --json. vgpuctl first lists the GPUs, for which vgpud reads
/// them, and then the VFs. This age lets vgpud answer the second call from the same read.
constexpr std::uint32_t kOneReadMs = 100;
/// Accepted age of the values in the table of GPUs. vgpud reads all GPUs once a second, so it has
/// values of this age and need not read the GPUs for the call.
constexpr std::uint32_t kTableAgeMs = 1500;

/// Calls Manager.ListGpus and ListVfs, or Manager.Capacity. --targets is for completion scripts.
/// --json: vgpuctl-list-1 with all properties, vgpuctl-targets-1 or vgpuctl-capacity-1.
class ListVerb final : public Verb {
public:
    ListVerb() : Verb({Group::State, "list", "list GPUs and the VFs in service", "list"}) {}
    void describe(CLI::App& command) override {
        command.add_flag("--gpus", only_gpus_, "only the GPUs");
        command.add_flag("--vfs", only_vfs_, "only the VFs")->excludes("--gpus");
        command.add_flag("--targets", only_targets_, "only possible TARGETs, one a line");
        command.add_flag("--capacity", only_capacity_, "only the numbers of VFs of each profile")
            ->excludes("--gpus")
            ->excludes("--vfs")
            ->excludes("--targets");
        tables_.describe(command, {columns_of(kGpuColumns), columns_of(kVfColumns),
                                   columns_of(kCapacityColumns)});
    }

    ExitCode run(Invocation& invocation) override {
        if (only_capacity_) return print_capacity(invocation);
        if (only_targets_) return print_targets(invocation);
        const bool with_gpus = !only_vfs_ && tables_.all_chosen_in(columns_of(kGpuColumns));
        const bool with_vfs = !only_gpus_ && tables_.all_chosen_in(columns_of(kVfColumns));
        if (!with_gpus && !with_vfs) throw no_such_columns();
        // a table needs only its columns; vgpud takes long to send all properties of 256 VFs
        const bool needs_all_properties = invocation.is_json;
        std::vector<Properties> gpus, vfs;
        if (with_gpus)
            gpus = invocation.service.list_gpus_with(
                needs_all_properties ? "" : tables_.properties(kGpuColumns),
                needs_all_properties ? 0 : kTableAgeMs);
        if (with_vfs)
            vfs = invocation.service.list_vfs_with(
                needs_all_properties ? "" : tables_.properties(kVfColumns),
                needs_all_properties && with_gpus ? kOneReadMs : 0);
        invocation.print("vgpuctl-list-1", {{"gpus", json_of(gpus)}, {"vfs", json_of(vfs)}},
                         (with_gpus ? tables_.text(kGpuColumns, gpus) : "") +
                             (with_gpus && with_vfs ? "\n" : "") + (with_vfs ? vfs_text(vfs) : ""));
        return ExitCode::Ok;
    }

private:
    static ServiceError no_such_columns() {
        return {"vgpuctl.WrongUsage",
                "the table has no such columns; --gpus, --vfs and --capacity choose the table"};
    }

    ExitCode print_capacity(Invocation& invocation) const {
        if (!tables_.all_chosen_in(columns_of(kCapacityColumns))) throw no_such_columns();
        const auto rows = invocation.service.capacity();
        invocation.print("vgpuctl-capacity-1", {{"capacity", json_of(rows)}},
                         tables_.text(kCapacityColumns, rows));
        return ExitCode::Ok;
    }

    [[nodiscard]] std::string vfs_text(const std::vector<Properties>& vfs) const {
        return vfs.empty() && !tables_.is_plain()
                   ? "No VF is in service; 'vgpuctl create' makes one.\n"
                   : tables_.text(kVfColumns, vfs);
    }

    ExitCode print_targets(Invocation& invocation) const {
        std::vector<Properties> gpus, vfs;
        if (!only_vfs_) gpus = invocation.service.list_gpus_with("Target", kTableAgeMs);
        if (!only_gpus_) vfs = invocation.service.list_vfs_with("Target,Name", 0);
        Words targets;
        for (const Properties& gpu : gpus) targets.push_back(text_of(gpu, "Target"));
        for (const Properties& vf : vfs)
            targets.insert(targets.end(), {text_of(vf, "Target"), text_of(vf, "Name")});
        std::string lines;
        for (const std::string& target : targets) lines += target + "\n";
        invocation.print("vgpuctl-targets-1", {{"targets", targets}}, lines);
        return ExitCode::Ok;
    }

    bool only_gpus_ = false;
    bool only_vfs_ = false;
    bool only_targets_ = false;
    bool only_capacity_ = false;
    TableOptions tables_;
};

}  // namespace

const MakeVerb make_list_verb = make_verb<ListVerb>;

}  // namespace vgpu::cli
