// SPDX-License-Identifier: MIT
//
// vgpuctl hook GUEST OP SUBOP EXTRA: called by libvirt's hook script (daemon/libvirt/50-vgpu), with
// the domain's XML as input. virsh shows the hook's errors. The hook must not call libvirt, which
// waits for the hook.
#include "cli/domain_xml.h"
#include "cli/hard_limit.h"
#include "cli/remedies.h"
#include "cli/verbs.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <iostream>
#include <iterator>

namespace vgpu::cli {

namespace {

using std::chrono_literals::operator""s;

/// Time limit of the hook, because libvirt holds the domain's lock meanwhile.
constexpr std::chrono::seconds kHardLimit = 10s;
/// Limit of each call to vgpud. Leaves time to report that a call was late.
constexpr std::chrono::milliseconds kCallLimit = 8s;
/// Limit of waits for VFs being scrubbed. Less than kCallLimit, because vgpud claims VFs
/// afterwards.
constexpr std::uint64_t kScrubWaitMs = 5'000;
constexpr std::string_view kNobody = "-";  ///< text_of() for a VF without an owner

/// The owner is the domain's UUID, so that a domain that is renamed keeps its VFs.
struct Call {
    Service& service;
    const DomainFacts& domain;
    std::string owner;
};

/// Refuses a domain whose <hostdev> is a VF of another owner. libvirt would give it the function.
void refuse_functions_of_others(const Call& call) {
    const auto& functions = call.domain.functions;
    if (functions.empty()) return;
    for (const Properties& vf : call.service.list_vfs_with("Address,Name,Owner", 0)) {
        const std::string address = text_of(vf, "Address"), owner = text_of(vf, "Owner");
        if (owner == kNobody || owner == call.owner ||
            std::ranges::find(functions, address) == functions.end())
            continue;
        throw ServiceError("org.vgpu1.Error.Claimed",
                           fmt::format("its <hostdev> {} is {} ('{}'), which belongs to '{}'; "
                                       "remove the <hostdev>, or end that claim first",
                                       address, text_of(vf, "Target"), text_of(vf, "Name"), owner));
    }
}

/// Assigns all VFs of the domain or none; waits for scrubs.
void assign(const Call& call) {
    refuse_functions_of_others(call);
    call.service.assign_vfs(call.owner, call.domain.vfs,
                            {{"owner_name", call.domain.name}, {"wait_ms", kScrubWaitMs}});
}

/// Gives QEMU access. Without a label, QEMU runs as vgpud's user, or the administrator gave it
/// access.
void grant(const Call& call) {
    if (call.domain.dac_label.empty()) return;
    const auto ids = ids_of_label(call.domain.dac_label);
    if (!ids)
        throw ServiceError("org.vgpu1.Error.System",
                           fmt::format("the label '{}' is not a user and group of this host",
                                       call.domain.dac_label));
    call.service.grant_vfs(call.owner, ids->first, ids->second);
}

/// Releases the VFs. Does not wait for the scrubs.
void unassign(const Call& call) {
    call.service.unassign_vfs(call.owner);
}

/// Restores lost claims, after a restart of libvirtd.
void adopt(const Call& call) {
    call.service.adopt_vfs(call.owner, {{"owner_name", call.domain.name}});
}

[[noreturn]] void refuse_state(const Call& call) {
    throw ServiceError(
        "org.vgpu1.Error.WrongState",
        fmt::format("a saved or migrated domain does not contain the VF's state. Start the domain "
                    "again, after 'virsh managedsave-remove {}' if it was saved",
                    shell_word(call.domain.name)));
}

/// Refuse: libvirt must not start the domain. Continue: the failure is printed, and libvirt
/// continues.
enum class OnFailure { Refuse, Continue };

/// The domains to which a row applies, among those that mention VFs (mentions_vfs). WithRequests:
/// those with VFs in their metadata. All: vgpud finds the claims of the domain by its UUID, because
/// the metadata may have changed since the domain started ('virsh metadata --live').
enum class AppliesTo { WithRequests, All };

/// One operation of libvirt. Of those in kRows, libvirt stops only if "prepare", "start", "restore"
/// or "migrate" fails (libvirt.org/hooks.html).
struct HookRow {
    std::string_view operation;
    void (*run)(const Call&);
    AppliesTo applies_to;
    OnFailure on_failure;
    std::string_view words;  ///< the part of the message that names the failure
};

/// The operations that require an action.
constexpr std::array kRows{
    HookRow{"prepare", assign, AppliesTo::WithRequests, OnFailure::Refuse, "no VF can be assigned"},
    HookRow{"start", grant, AppliesTo::WithRequests, OnFailure::Refuse,
            "QEMU gets no access to its VF"},
    HookRow{"release", unassign, AppliesTo::All, OnFailure::Continue, "its VF was not released"},
    HookRow{"reconnect", adopt, AppliesTo::All, OnFailure::Continue, "its VF was not checked"},
    HookRow{"restore", refuse_state, AppliesTo::WithRequests, OnFailure::Refuse,
            "it cannot be restored"},
    HookRow{"migrate", refuse_state, AppliesTo::WithRequests, OnFailure::Refuse,
            "it cannot be migrated here"},
};

/// Reads all input first, because libvirt is writing it. Exits with 0 at once for a domain without
/// VFs and, in "prepare", without PCI functions of this host.
class HookVerb final : public Verb {
public:
    HookVerb()
        : Verb({Group::Hidden, "hook", "do what libvirt's hook script requests",
                "hook vm1 prepare begin -"}) {}
    void describe(CLI::App& command) override {
        command.add_option("GUEST", guest_, "the domain's name")->required();
        command.add_option("OP", operation_, "prepare, start, release, reconnect …")->required();
        command.add_option("SUBOP", sub_operation_, "begin or end");
        command.add_option("EXTRA", extra_, "- or a reason");
        command.footer("The domain's XML comes on standard input; see docs/libvirt.md.");
    }

    ExitCode start(const VerbContext& setting) override {
        const std::string xml(std::istreambuf_iterator<char>(std::cin), {});
        const ExitCode ended = dispatch(xml, setting);
        if (complaint_.empty())
            setting.print("vgpuctl-done-1", {{"target", guest_}, {"done", operation_}}, "");
        else if (setting.is_json)
            setting.out << error_document({"org.vgpu1.Error.System", complaint_});
        return ended;
    }

private:
    ExitCode dispatch(const std::string& xml, const VerbContext& setting) {
        if (!mentions_vfs(xml))
            return operation_ == "prepare" && mentions_functions(xml)
                       ? check_functions(xml, setting)
                       : ExitCode::Ok;
        for (const HookRow& row : kRows)
            if (row.operation == operation_) return carry_out(row, xml, setting);
        return ExitCode::Ok;
    }

    /// For a domain that has a <hostdev>, but no VF from attach-xml: refuses it if the <hostdev> is
    /// a VF with another owner. The domain must also start without vgpud.
    ExitCode check_functions(const std::string& xml, const VerbContext& setting) {
        const HardLimit limit(kHardLimit, "", static_cast<int>(ExitCode::Ok));
        try {
            const DomainFacts domain = read_domain(xml);
            const auto service = setting.connect();
            service->limit_calls(kCallLimit);
            refuse_functions_of_others(
                {.service = *service, .domain = domain, .owner = "libvirt:" + domain.uuid});
            return ExitCode::Ok;
        } catch (const XmlError&) {
            return ExitCode::Ok;
        } catch (const ServiceError& error) {
            if (error.exit_code() == ExitCode::Unreachable) return ExitCode::Ok;
            complaint_ = line(kRows.front(), error.what());
        }
        setting.err << complaint_ << "\n";
        return ExitCode::Failed;
    }

    ExitCode carry_out(const HookRow& row, const std::string& xml, const VerbContext& setting) {
        const bool must = row.on_failure == OnFailure::Refuse;
        const ExitCode failed = must ? ExitCode::Failed : ExitCode::Ok;
        // before the first call that may block; connecting may block, too
        const HardLimit limit(kHardLimit,
                              line(row, fmt::format("no answer within {} s", kHardLimit.count())),
                              static_cast<int>(failed));
        try {
            const bool by_requests = row.applies_to == AppliesTo::WithRequests;
            const DomainFacts domain = by_requests ? read_domain(xml) : read_identity(xml);
            if (by_requests && domain.vfs.empty()) return ExitCode::Ok;
            if (domain.uuid.empty()) throw XmlError("the domain has no <uuid>");
            const auto service = setting.connect();
            service->limit_calls(kCallLimit);
            row.run({.service = *service, .domain = domain, .owner = "libvirt:" + domain.uuid});
            return ExitCode::Ok;
        } catch (const ServiceError& error) {
            complaint_ = line(row, reported(error));
        } catch (const XmlError& error) {
            complaint_ = line(row, fmt::format("its XML: {}", error.what()));
        }
        setting.err << complaint_ << "\n";
        return failed;
    }

    static std::string reported(const ServiceError& error) {
        if (error.exit_code() == ExitCode::Unreachable)
            return fmt::format(
                "vgpud does not answer on the bus ({}); start it ('systemctl start vgpud') and "
                "read its log",
                error.what());
        return error.what();
    }

    /// The line of an error: "vgpu: domain 'vm1': no VF can be assigned: …".
    [[nodiscard]] std::string line(const HookRow& row, const std::string& why) const {
        return fmt::format("vgpu: domain '{}': {}: {}", guest_, row.words, why);
    }

    std::string guest_, operation_, sub_operation_, extra_;
    std::string complaint_;  ///< empty if there was no failure
};

}  // namespace

const MakeVerb make_hook_verb = make_verb<HookVerb>;

}  // namespace vgpu::cli
