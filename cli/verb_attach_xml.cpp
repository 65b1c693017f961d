// SPDX-License-Identifier: MIT
//
// vgpuctl attach-xml DOMAIN [--profile P | --vf V] …: adds VFs to a libvirt domain's XML, or
// removes all VFs from the XML (--none). Prints the XML, or defines the domain (--write). DOMAIN is
// a file, or the name or UUID of a domain, which requires libvirtd. vgpud need not run.
#include "cli/domain_edit.h"
#include "cli/libvirt_client.h"
#include "cli/verbs.h"
#include "cli/vf_function.h"
#include "text/whole_file.h"

#include <fmt/format.h>
#include <cstring>
#include <iostream>
#include <iterator>
#include <optional>

namespace vgpu::cli {

namespace {

constexpr const char* kStandardInput = "-";

/// True if `domain` means a file: "-", a name with '/', or a name that ends with ".xml". Names of
/// domains have no '/', so "./name" means the file "name".
bool is_file(const std::string& domain) {
    return domain == kStandardInput || domain.find('/') != std::string::npos ||
           domain.ends_with(".xml");
}

/// The content of a file. For an unreadable file this verb exits with 1, and not with 2 as other
/// verbs do.
std::string content_of_file(const std::string& file) {
    if (file == kStandardInput) return {std::istreambuf_iterator<char>(std::cin), {}};
    auto content = text::whole_file(file);
    if (!content)
        throw XmlError(fmt::format("cannot read {}: {}", file, std::strerror(content.error())));
    return *std::move(content);
}

/// Exits with 1 for bad XML, an unreadable file or an error of libvirt, and with 2 for --write with
/// a file. Asks vgpud which VFs are PCI functions of this host, but also works without vgpud.
/// --json: vgpuctl-attach-xml-1.
class AttachXmlVerb final : public Verb {
public:
    AttachXmlVerb()
        : Verb({Group::Libvirt, "attach-xml", "add VFs to a libvirt domain or remove them",
                "attach-xml vm1 --profile small --write"}) {}
    void describe(CLI::App& command) override {
        command
            .add_option(
                "DOMAIN", domain_,
                "name or UUID of a libvirt domain, a file with its XML, or - (standard input)")
            ->required();
        command.add_option("--vf", names_, "this VF; may be repeated")->allow_extra_args(false);
        command
            .add_option(
                "--profile", profiles_,
                "any free VF of this profile; may be repeated; these VFs follow those of --vf")
            ->allow_extra_args(false);
        command.add_flag("--none", is_removing_, "remove all VFs from the domain")
            ->excludes("--vf")
            ->excludes("--profile");
        command.add_flag("--write", is_writing_, "define the domain instead of printing it");
        command.add_option("--connect", uri_, "URI of the libvirt connection")
            ->type_name("URI")
            ->capture_default_str();
        command.add_option("--run-dir", run_dir_, "run_dir of vgpud")->capture_default_str();
        command.add_option("--sysfs", sysfs_, "directory to search for host devices")->group("");
        command.footer("Without --vf, --profile and --none, the domain's metadata names the VFs.");
    }

    ExitCode start(const VerbContext& context) override {
        if (is_writing_ && is_file(domain_))
            throw ServiceError("vgpuctl.WrongUsage",
                               "--write needs the name of a libvirt domain, not a file");
        try {
            std::optional<LibvirtClient> libvirt;
            if (!is_file(domain_)) libvirt.emplace(uri_);
            // define() deletes secrets that its XML lacks; printed XML has no secrets, as with
            // 'virsh dumpxml'
            using Secrets = LibvirtClient::Secrets;
            const auto secrets = is_writing_ ? Secrets::Yes : Secrets::No;
            const std::string before =
                libvirt ? libvirt->definition(domain_, secrets) : content_of_file(domain_);
            const std::string after = with_vfs(before, vfs_to_attach(before, context), run_dir_);
            if (is_writing_) libvirt->define(after);
            const std::string shown =
                is_writing_ ? libvirt->definition(domain_, Secrets::No) : after;
            context.print(
                "vgpuctl-attach-xml-1",
                {{"domain", domain_}, {"is_written", is_writing_}, {"xml", shown}},
                is_writing_ ? domain_ + ": defined; takes effect at its next start\n" : after);
            return ExitCode::Ok;
        } catch (const XmlError& error) {
            throw ServiceError("org.vgpu1.Error.System", domain_ + ": " + error.what());
        } catch (const LibvirtError& error) {
            throw ServiceError("org.vgpu1.Error.System", error.what());
        }
    }

private:
    /// The VFs that the command line names, else the VFs that the domain's metadata names. Throws
    /// XmlError if neither names a VF.
    [[nodiscard]] std::vector<VfSelector> selectors(const std::string& xml) const {
        std::vector<VfSelector> all;
        for (const std::string& one : names_) all.emplace_back("name", one);
        for (const std::string& one : profiles_) all.emplace_back("profile", one);
        if (all.empty()) all = read_domain(xml).vfs;
        if (all.empty())
            throw XmlError(
                "which VF? Name one with --vf or --profile; the domain's metadata names none");
        return all;
    }

    /// The GPUs and VFs that vgpud reports.
    struct Reported {
        std::vector<Properties> gpus, vfs;
    };

    /// The VFs to attach; empty with --none. Without vgpud, all VFs count as VFs of softgpu.
    [[nodiscard]] std::vector<AttachedVf> vfs_to_attach(const std::string& xml,
                                                        const VerbContext& context) const {
        // before selectors(), which refuses broken metadata; --none must also remove such metadata
        if (is_removing_) return {};
        std::vector<VfSelector> all = selectors(xml);
        const auto reported = reported_by_vgpud(context);
        std::vector<AttachedVf> vfs;
        for (VfSelector& selector : all) {
            const Properties* vf = reported ? vf_of(selector, reported->vfs) : nullptr;
            if (vf != nullptr) selector.second = text_of(*vf, "Name");
            if (!is_valid_selector(selector))
                throw XmlError(
                    fmt::format("'{}' is not a valid {} of a VF", selector.second, selector.first));
            AttachedVf attached_vf{.selector = std::move(selector), .host_device = {}};
            if (reported)
                attached_vf.host_device =
                    host_device(attached_vf.selector, vf, reported->gpus, context);
            attached_vf.is_bound = vf != nullptr && is_bound_to_vfio(*vf);
            vfs.push_back(std::move(attached_vf));
        }
        return vfs;
    }

    /// vgpud's GPUs and VFs. If vgpud does not answer, warns and returns none, because VFs of
    /// softgpu can be attached without vgpud.
    [[nodiscard]] static std::optional<Reported> reported_by_vgpud(const VerbContext& context) {
        try {
            const auto service = context.connect();
            return Reported{.gpus = service->list_gpus(), .vfs = service->list_vfs()};
        } catch (const ServiceError& error) {
            if (error.exit_code() != ExitCode::Unreachable) throw;
            context.err << "vgpuctl: vgpud does not answer; every VF is taken for a softgpu VF\n";
            return {};
        }
    }

    /// The VF whose name, target or UUID the selector gives; null for a profile or an unknown VF.
    [[nodiscard]] static const Properties* vf_of(const VfSelector& selector,
                                                 const std::vector<Properties>& vfs) {
        const auto& [by, value] = selector;
        if (by != "name") return nullptr;
        for (const Properties& vf : vfs)
            for (const char* property : {"Name", "Target", "Uuid"})
                if (text_of(vf, property) == value) return &vf;
        return nullptr;
    }

    /// True if vgpud binds the VF to vfio-pci. vgpud binds only VFs of vendors' drivers, and only
    /// these VFs have the property Address.
    [[nodiscard]] static bool is_bound_to_vfio(const Properties& vf) {
        return parse_pci_address(text_of(vf, "Address")).has_value() &&
               text_of(vf, "AssignmentMode") == "vfio-pci";
    }

    /// True if the VFs of a GPU are PCI functions of this host.
    [[nodiscard]] static bool has_functions(const Properties& gpu) {
        return text_of(gpu, "Platform") == "kernel" ||
               parse_pci_address(text_of(gpu, "Address")).has_value();
    }

    /// The PCI function of a VF; none for a VF of softgpu. `vf` is null for a profile and for a VF
    /// that does not exist yet; the result is then none, unless refuse_profile_of_host() throws
    /// XmlError.
    [[nodiscard]] std::optional<PciAddress> host_device(const VfSelector& selector,
                                                        const Properties* vf,
                                                        const std::vector<Properties>& gpus,
                                                        const VerbContext& context) const {
        if (vf == nullptr) {
            if (selector.first == "name")
                context.err << fmt::format("vgpuctl: there is no VF '{}' yet\n", selector.second);
            refuse_profile_of_host(selector, gpus);
            return {};
        }
        const auto function = parse_pci_address(function_of(*vf, gpus, sysfs_));
        if (!function && kernel_gpu_of(*vf, gpus) != nullptr)
            throw XmlError(fmt::format("{} has no PCI function on this host; is sriov_numvfs set?",
                                       text_of(*vf, "Target")));
        return function;
    }

    /// Throws XmlError for a profile if the VFs of all GPUs are PCI functions of this host. The
    /// domain's <hostdev> must name one function, so the hook could not choose a VF of the profile.
    static void refuse_profile_of_host(const VfSelector& selector,
                                       const std::vector<Properties>& gpus) {
        if (selector.first != "profile" || gpus.empty()) return;
        for (const Properties& gpu : gpus)
            if (!has_functions(gpu)) return;
        throw XmlError(
            fmt::format("profile '{}': the VFs of this host are PCI functions, and a "
                        "domain must name one function; name a VF with --vf",
                        selector.second));
    }

    std::string domain_, uri_ = "qemu:///system", run_dir_ = "/run/vgpu";
    std::string sysfs_ = kSysfsClass;
    std::vector<std::string> names_, profiles_;
    bool is_writing_ = false, is_removing_ = false;
};

}  // namespace

const MakeVerb make_attach_xml_verb = make_verb<AttachXmlVerb>;

}  // namespace vgpu::cli
