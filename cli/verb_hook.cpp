// SPDX-License-Identifier: MIT
//
// vgpuctl hook GUEST OP SUBOP EXTRA: called by libvirt's hook script (daemon/libvirt/50-vgpu), with
// the domain's XML as input. virsh shows the hook's errors. The hook must not call libvirt, which
// waits for the hook.
#include "cli/domain_xml.h"
#include "cli/hard_limit.h"
#include "cli/remedies.h"
#include "cli/verbs.h"
#include "cli/vf_function.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <iostream>
#include <iterator>

namespace vgpu::cli {

namespace {

using std::chrono_literals::operator""s;

/// Time limit of the hook. libvirt holds the domain's lock while the hook runs.
constexpr std::chrono::seconds kHardLimit = 10s;
/// Time limit of each call of vgpud. Less than kHardLimit, to leave time to report a late call.
constexpr std::chrono::milliseconds kCallLimit = 8s;
/// How long vgpud may wait for VFs that are being scrubbed. Less than kCallLimit, because vgpud
/// claims the VFs after this wait.
constexpr std::uint64_t kScrubWaitMs = 5'000;
constexpr std::string_view kNobody = "-";  ///< what text_of() returns for a VF without an owner
/// Accepted age of facts that do not change while a GPU is in service.
constexpr std::uint32_t kGpuAgeMs = 60'000;

/// The arguments of HookRow::run. `owner`: "libvirt:" and the domain's UUID, so that a renamed
/// domain keeps its VFs.
struct Call {
    Service& service;
    const DomainFacts& domain;
    std::string owner;
    const std::string& sysfs;  ///< kSysfsClass, or another directory in tests
};

/// Throws Claimed if a <hostdev> of the domain is a VF of another owner, because libvirt would give
/// this VF to the domain. If the domain requests VFs, also throws if a <hostdev> is a VF without an
/// owner: after a VF was renamed, the <hostdev> and the request may name different VFs.
void check_hostdevs(const Call& call) {
    const auto& functions = call.domain.functions;
    if (functions.empty()) return;
    const auto gpus = call.service.list_gpus_with("Id,Platform,Uapi", kGpuAgeMs);
    for (const Properties& vf : call.service.list_vfs_with("Target,Index,Address,Name,Owner", 0)) {
        const std::string address = function_of(vf, gpus, call.sysfs), owner = text_of(vf, "Owner");
        if (std::ranges::find(functions, address) == functions.end() || owner == call.owner ||
            (owner == kNobody && call.domain.vfs.empty()))
            continue;
        const std::string why =
            owner == kNobody
                ? "which its metadata does not request; rename the VF, or let attach-xml write the "
                  "domain again"
                : fmt::format(
                      "which belongs to '{}'; remove the <hostdev>, or end that claim first",
                      owner);
        throw ServiceError("org.vgpu1.Error.Claimed",
                           fmt::format("its <hostdev> {} is {} ('{}'), {}", address,
                                       text_of(vf, "Target"), text_of(vf, "Name"), why));
    }
}

/// Assigns all VFs that the domain requests, or none. Waits for VFs that are being scrubbed. Claims
/// before it checks the <hostdev> elements, because only vgpud knows which claims are over.
void assign(const Call& call) {
    call.service.assign_vfs(call.owner, call.domain.vfs,
                            {{"owner_name", call.domain.name}, {"wait_ms", kScrubWaitMs}});
    try {
        check_hostdevs(call);
    } catch (const ServiceError&) {
        call.service.unassign_vfs(call.owner);
        throw;
    }
}

/// Gives the user of the domain's QEMU access to the VFs. Does nothing without a label, because
/// QEMU then runs as vgpud's user, or the administrator gave QEMU access.
void grant(const Call& call) {
    if (call.domain.dac_label.empty()) return;
    const auto ids = ids_of_label(call.domain.dac_label);
    if (!ids)
        throw ServiceError("org.vgpu1.Error.System",
                           fmt::format("the label '{}' is not a user and group of this host",
                                       call.domain.dac_label));
    call.service.grant_vfs(call.owner, ids->first, ids->second);
}

/// Unassigns the domain's VFs. Does not wait for the scrubs.
void unassign(const Call& call) {
    call.service.unassign_vfs(call.owner);
}

/// Restores lost claims of a running domain, after a restart of libvirtd.
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

/// What the hook does after it has printed a failure.
enum class OnFailure {
    Refuse,    ///< the hook fails, so that libvirt does not start the domain
    Continue,  ///< the hook succeeds
};

/// The domains to which a row applies.
enum class AppliesTo {
    WithRequests,  ///< domains with VFs in their metadata
    /// Every domain for which mentions_vfs() is true. vgpud finds the claims by the domain's UUID,
    /// because the metadata may have changed since the domain's start ('virsh metadata --live').
    MentionsVfs,
};

/// What the hook does for an operation of libvirt. If the hook fails for an operation with
/// OnFailure::Refuse, libvirt aborts the operation (libvirt.org/hooks.html).
struct HookRow {
    std::string_view operation;
    void (*run)(const Call&);
    AppliesTo applies_to;
    OnFailure on_failure;
    std::string_view words;  ///< what failed, for the error line
};

/// The operations that require an action. The first row is "prepare", as check_functions() expects.
constexpr std::array kRows{
    HookRow{"prepare", assign, AppliesTo::WithRequests, OnFailure::Refuse, "no VF can be assigned"},
    HookRow{"start", grant, AppliesTo::WithRequests, OnFailure::Refuse,
            "QEMU gets no access to its VF"},
    HookRow{"release", unassign, AppliesTo::MentionsVfs, OnFailure::Continue,
            "its VF was not released"},
    HookRow{"reconnect", adopt, AppliesTo::MentionsVfs, OnFailure::Continue,
            "its VF was not checked"},
    HookRow{"restore", refuse_state, AppliesTo::WithRequests, OnFailure::Refuse,
            "it cannot be restored"},
    HookRow{"migrate", refuse_state, AppliesTo::WithRequests, OnFailure::Refuse,
            "it cannot be migrated here"},
};

/// First reads all input, even if it is not needed, so that libvirt can finish writing it. For a
/// domain without VFs, exits with 0 at once, except for "prepare" of a domain with PCI functions of
/// this host: check_functions() then decides.
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
        command.add_option("--sysfs", sysfs_, "directory to search for host devices")->group("");
        command.footer("The domain's XML comes on standard input; see docs/libvirt.md.");
    }

    ExitCode start(const VerbContext& context) override {
        const std::string xml(std::istreambuf_iterator<char>(std::cin), {});
        const ExitCode ended = dispatch(xml, context);
        if (error_line_.empty())
            context.print("vgpuctl-done-1", {{"target", guest_}, {"done", operation_}}, "");
        else if (context.is_json)
            context.out << error_document({"org.vgpu1.Error.System", error_line_});
        return ended;
    }

private:
    ExitCode dispatch(const std::string& xml, const VerbContext& context) {
        if (!mentions_vfs(xml)) return check_functions(xml, context);
        for (const HookRow& row : kRows)
            if (row.operation == operation_) return carry_out(row, xml, context);
        return ExitCode::Ok;
    }

    /// For "prepare" of a domain that requests no VFs: fails if a <hostdev> of the domain is a VF
    /// of another owner. Succeeds if vgpud does not answer, because such a domain must also start
    /// without vgpud.
    ExitCode check_functions(const std::string& xml, const VerbContext& context) {
        if (operation_ != kRows.front().operation || !mentions_functions(xml)) return ExitCode::Ok;
        const HardLimit limit(kHardLimit, "", static_cast<int>(ExitCode::Ok));
        try {
            const DomainFacts domain = read_domain(xml);
            const auto service = context.connect();
            service->limit_calls(kCallLimit);
            check_hostdevs(call_of(*service, domain));
            return ExitCode::Ok;
        } catch (const XmlError&) {
            return ExitCode::Ok;
        } catch (const ServiceError& error) {
            if (error.exit_code() == ExitCode::Unreachable) return ExitCode::Ok;
            error_line_ = line(kRows.front(), error.what());
        }
        context.err << error_line_ << "\n";
        return ExitCode::Failed;
    }

    ExitCode carry_out(const HookRow& row, const std::string& xml, const VerbContext& context) {
        const bool refuses = row.on_failure == OnFailure::Refuse;
        const ExitCode failed = refuses ? ExitCode::Failed : ExitCode::Ok;
        try {
            const bool requires_request = row.applies_to == AppliesTo::WithRequests;
            const DomainFacts domain = requires_request ? read_domain(xml) : read_identity(xml);
            if (requires_request && domain.vfs.empty()) return check_functions(xml, context);
            // set before connect(), the first call that may block
            const HardLimit limit(
                kHardLimit, line(row, fmt::format("no answer within {} s", kHardLimit.count())),
                static_cast<int>(failed));
            if (domain.uuid.empty()) throw XmlError("the domain has no <uuid>");
            const auto service = context.connect();
            service->limit_calls(kCallLimit);
            row.run(call_of(*service, domain));
            return ExitCode::Ok;
        } catch (const ServiceError& error) {
            error_line_ = line(row, reason_of(error));
        } catch (const XmlError& error) {
            error_line_ = line(row, fmt::format("its XML: {}", error.what()));
        }
        context.err << error_line_ << "\n";
        return failed;
    }

    [[nodiscard]] Call call_of(Service& service, const DomainFacts& domain) const {
        return {.service = service,
                .domain = domain,
                .owner = "libvirt:" + domain.uuid,
                .sysfs = sysfs_};
    }

    static std::string reason_of(const ServiceError& error) {
        if (error.exit_code() == ExitCode::Unreachable)
            return fmt::format(
                "vgpud does not answer on the bus ({}); start it ('systemctl start vgpud') and "
                "read its log",
                error.what());
        return error.what();
    }

    /// The line that reports a failure: "vgpu: domain 'vm1': no VF can be assigned: …".
    [[nodiscard]] std::string line(const HookRow& row, const std::string& why) const {
        return fmt::format("vgpu: domain '{}': {}: {}", guest_, row.words, why);
    }

    std::string guest_, operation_, sub_operation_, extra_, sysfs_ = kSysfsClass;
    std::string error_line_;  ///< empty if there was no failure
};

}  // namespace

const MakeVerb make_hook_verb = make_verb<HookVerb>;

}  // namespace vgpu::cli
