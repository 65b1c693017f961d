// SPDX-License-Identifier: MIT
#include "cli/domain_edit.h"

#include "text/json_document.h"
#include "text/number.h"
#include "text/uuid.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

namespace vgpu::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kQemuNamespace = "http://libvirt.org/schemas/domain/qemu/1.0";
constexpr const char* kAgentPort = "org.vgpu.agent.0";
constexpr const char* kAgentSerial = "vgpu-serial";
constexpr const char* kAgentChardev = "vgpu-agent";
/// Slots of the root bus for the devices of attach-xml. libvirt assigns low slots first, so it
/// rarely reaches these slots. Higher slots are for the chip set.
constexpr std::uint32_t kFirstSlot = 0x10, kLastSlot = 0x18;

std::optional<std::uint32_t> hex_in(std::string_view text) {
    return text::number_in<std::uint32_t>(text, 16);
}

xmlNode* child_or_new(xmlNode* parent, const std::string& name) {
    xmlNode* child = child_of(parent, name);
    return child != nullptr ? child : add_child(parent, name);
}

/// The UUID in `node`, in the form that libvirt stores and vgpud uses in paths: lower case with
/// dashes. libvirt also accepts a UUID in upper case or without dashes. Throws XmlError for other
/// text.
std::string canonical_uuid(const xmlNode* node) {
    const std::string typed = content_of(node);
    std::string uuid;
    for (const char letter : typed)
        if (letter != '-')
            uuid += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    if (uuid.size() != 32 || uuid.find_first_not_of("0123456789abcdef") != std::string::npos)
        throw XmlError(fmt::format("line {}: '{}' is not a UUID", xmlGetLineNo(node), typed));
    for (const std::size_t dash : {8u, 13u, 18u, 23u}) uuid.insert(dash, 1, '-');
    return uuid;
}

/// The domain's UUID. If the domain has none, adds a new UUID, because paths contain the UUID, and
/// libvirt would add one too late. In libvirt's schema, <uuid> follows <name>.
std::string ensure_uuid(xmlNode* domain) {
    xmlNode* uuid = child_of(domain, "uuid");
    if (uuid == nullptr) {
        uuid = add_child(domain, "uuid");
        if (xmlNode* name = child_of(domain, "name")) xmlAddNextSibling(name, uuid);
    }
    if (content_of(uuid).empty()) set_content(uuid, text::uuid_text(text::make_uuid()));
    return canonical_uuid(uuid);
}

// --- metadata

/// Replaces the VFs in the metadata. libvirt keeps one element per namespace, so several VFs are in
/// one <vgpu:vfs>.
void write_metadata(xmlNode* domain, const std::vector<AttachedVf>& vfs) {
    xmlNode* metadata = child_or_new(domain, "metadata");
    for (xmlNode* node : children_of(metadata))
        if (namespace_of(node) == kDomainNamespace) remove(node);
    if (vfs.empty()) {
        if (children_of(metadata).empty()) remove(metadata);
        return;
    }
    const bool is_one = vfs.size() == 1;
    xmlNode* parent = metadata;
    if (!is_one) {
        parent = add_child(metadata, "vfs");
        xmlSetNs(parent, namespace_at(parent, kDomainNamespace, "vgpu"));
    }
    for (const AttachedVf& vf : vfs) {
        xmlNode* node = add_child(parent, "vf");
        xmlSetNs(node, namespace_at(node, kDomainNamespace, "vgpu"));
        set_attribute(node, vf.selector.first, vf.selector.second);
    }
}

// --- memory

/// Makes guest memory a shared file, because softgpu, which is another process, accesses it.
void share_memory(xmlNode* domain) {
    xmlNode* backing = child_or_new(domain, "memoryBacking");
    xmlNode* source = child_or_new(backing, "source");
    // keep the administrator's choice of a file
    if (attribute_of(source, "type") != "file") set_attribute(source, "type", "memfd");
    set_attribute(child_or_new(backing, "access"), "mode", "shared");
}

// --- devices that libvirt has no elements for

/// True if `path` has the form of vm_path(), RUN_DIR/vm/UUID/NUMBER.sock. The vfio-user sockets of
/// other programs have other paths.
bool is_vf_socket(const std::string& path) {
    const std::filesystem::path file(path), directory = file.parent_path();
    const std::string number = file.stem().string();
    return file.extension() == ".sock" && !number.empty() &&
           std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; }) &&
           text::parse_uuid(directory.filename().string()) &&
           directory.parent_path().filename() == "vm";
}

/// The member `key` of an object; empty if the member is absent or is not a text.
std::string text_in(const Json& json, const char* key) {
    const auto at = json.find(key);
    return at != json.end() && at->is_string() ? at->get<std::string>() : "";
}

/// True if attach-xml wrote the device `value`. Recognises a VF by the path of its socket, and
/// other devices by the names that attach-xml gives them.
bool is_vgpu_device(const std::string& value) {
    const Json json = text::read_json<Json>(value).value_or(Json());
    if (!json.is_object()) return false;
    if (text_in(json, "node-name") == kMigrationBlocker) return true;
    const std::string driver = text_in(json, "driver");
    if (driver == "virtio-serial-pci") return text_in(json, "id") == kAgentSerial;
    if (driver == "virtserialport") return text_in(json, "chardev") == kAgentChardev;
    const auto socket = json.find("socket");
    return driver == "vfio-user-pci" && socket != json.end() && socket->is_object() &&
           is_vf_socket(text_in(*socket, "path"));
}

/// True if attach-xml wrote the option. Other options are the administrator's and keep their order.
bool is_vgpu_option(const std::string& option, const std::string& value) {
    if (option == "-chardev") return value.starts_with(fmt::format("socket,id={},", kAgentChardev));
    return (option == "-device" || option == "-blockdev") && is_vgpu_device(value);
}

/// Removes the options that attach-xml wrote. An option and its value are two successive <arg>
/// elements. Checks every pair of successive arguments, because other options may have no value.
void remove_vgpu_options(xmlNode* commandline) {
    xmlNode* option = nullptr;
    for (xmlNode* argument : children_of(commandline, "arg")) {
        const std::string value = attribute_of(argument, "value");
        if (option != nullptr && is_vgpu_option(attribute_of(option, "value"), value)) {
            remove(option);
            remove(argument);
            option = nullptr;
        } else {
            option = argument;
        }
    }
}

/// True if the machine is a q35. libvirt writes "pc-q35-9.2" for "q35".
bool is_q35(const xmlNode* domain) {
    return attribute_of(child_of(child_of(domain, "os"), "type"), "machine").find("q35") !=
           std::string::npos;
}

/// Slots of the root bus that the XML assigns to devices. Ignores an <address> without a bus.
std::set<std::uint32_t> used_slots(const xmlNode* domain) {
    std::set<std::uint32_t> slots;
    for (const xmlNode* device : children_of(child_of(domain, "devices")))
        for (const xmlNode* address : children_of(device, "address")) {
            const auto number = [address](const char* name) {
                const std::string typed = attribute_of(address, name);
                // find() + 1 is 0 without an 'x', because npos + 1 is 0
                return hex_in(std::string_view(typed).substr(typed.find('x') + 1));
            };
            const auto bus = number("bus"), slot = number("slot");
            if (attribute_of(address, "type") == "pci" && bus == 0u && slot) slots.insert(*slot);
        }
    return slots;
}

/// Adds the lowest free slot to `used` and returns it. Throws XmlError if no slot is free.
std::uint32_t allocate_slot(std::set<std::uint32_t>& used, const xmlNode* domain) {
    for (std::uint32_t slot = kFirstSlot; slot <= kLastSlot; ++slot)
        if (used.insert(slot).second) return slot;
    throw XmlError(fmt::format("line {}: no slot from {:#x} to {:#x} of the root bus is free",
                               xmlGetLineNo(domain), kFirstSlot, kLastSlot));
}

/// The element <qemu:commandline>. The constructor removes options that attach-xml wrote earlier,
/// and the destructor removes the element if it is empty. PCI devices get slots from kFirstSlot on,
/// because libvirt does not know these devices and could assign their slots to its own devices.
class QemuCommandLine {
public:
    explicit QemuCommandLine(xmlNode* domain)
        : domain_(domain), qemu_(namespace_at(domain, kQemuNamespace, "qemu")) {
        for (xmlNode* node : children_of(domain, "commandline")) {
            if (namespace_of(node) != kQemuNamespace) continue;
            remove_vgpu_options(node);
            node_ = node;
        }
        slots_ = used_slots(domain);
    }
    ~QemuCommandLine() {
        if (node_ != nullptr && children_of(node_).empty()) remove(node_);
    }
    QemuCommandLine(const QemuCommandLine&) = delete;
    QemuCommandLine& operator=(const QemuCommandLine&) = delete;

    void add(const std::string& option, const std::string& value) {
        if (node_ == nullptr) node_ = add_child(domain_, "commandline", qemu_);
        set_attribute(add_child(node_, "arg", qemu_), "value", option);
        set_attribute(add_child(node_, "arg", qemu_), "value", value);
    }
    void add_device(const Json& device) { add("-device", device.dump()); }
    void add_pci_device(Json device) {
        device["bus"] = is_q35(domain_) ? "pcie.0" : "pci.0";
        device["addr"] = fmt::format("{:#x}", allocate_slot(slots_, domain_));
        add_device(device);
    }

private:
    xmlNode* domain_;
    xmlNs* qemu_;
    xmlNode* node_ = nullptr;
    std::set<std::uint32_t> slots_;
};

/// Adds the VFs of softgpu. The number in the id and path of a VF is its position among all VFs of
/// the domain, in the order of the metadata, from 0.
void write_vfs(QemuCommandLine& line, const std::vector<AttachedVf>& vfs,
               const std::string& run_dir, const std::string& uuid) {
    for (std::size_t n = 0; n < vfs.size(); ++n)
        if (!vfs[n].host_device)
            line.add_pci_device(
                {{"driver", "vfio-user-pci"},
                 {"id", fmt::format("vgpu{}", n)},
                 {"socket", {{"type", "unix"}, {"path", vm_path(run_dir, uuid, n)}}}});
}

/// Adds one port, because a guest has one agent. The port leads to the agent socket of the
/// domain's first VF, which must be a VF of softgpu. The port is not a <channel>, because for a
/// reconnecting channel, libvirt 9 uses an option that QEMU 10 removed.
void write_agent(QemuCommandLine& line, const std::string& run_dir, const std::string& uuid) {
    line.add("-chardev", fmt::format("socket,id={},path={},reconnect-ms=1000", kAgentChardev,
                                     vm_path(run_dir, uuid, 0, "agent.sock")));
    line.add_pci_device({{"driver", "virtio-serial-pci"}, {"id", kAgentSerial}});
    line.add_device({{"driver", "virtserialport"},
                     {"bus", fmt::format("{}.0", kAgentSerial)},
                     {"chardev", kAgentChardev},
                     {"name", kAgentPort}});
}

/// Makes QEMU refuse to save or migrate the domain, because the state of the VF would be lost. QEMU
/// refuses both while a vdi image is open (block/vdi.c of QEMU). vgpud makes the image, and no
/// guest device reads it.
void write_migration_blocker(QemuCommandLine& line, const std::string& run_dir,
                             const std::string& uuid) {
    line.add(
        "-blockdev",
        Json{{"driver", "vdi"},
             {"node-name", kMigrationBlocker},
             {"read-only", true},
             {"file",
              {{"driver", "file"}, {"filename", vm_path(run_dir, uuid, 0, "never-saved.vdi")}}}}
            .dump());
}

// --- host devices

/// Replaces the host devices that attach-xml wrote earlier. With managed='yes', libvirt binds the
/// function to vfio-pci and later unbinds it. With 'no', vgpud does both instead.
void write_host_devices(xmlNode* devices, const std::vector<AttachedVf>& vfs) {
    for (xmlNode* node : children_of(devices, "hostdev"))
        if (attribute_of(child_of(node, "alias"), "name").starts_with(kHostDeviceAlias))
            remove(node);
    for (std::size_t n = 0; n < vfs.size(); ++n) {
        if (!vfs[n].host_device) continue;
        const PciAddress& at = *vfs[n].host_device;
        xmlNode* hostdev = add_child(devices, "hostdev");
        set_attribute(hostdev, "mode", "subsystem");
        set_attribute(hostdev, "type", "pci");
        set_attribute(hostdev, "managed", vfs[n].is_bound ? "no" : "yes");
        xmlNode* address = add_child(add_child(hostdev, "source"), "address");
        set_attribute(address, "domain", fmt::format("{:#06x}", at.domain));
        set_attribute(address, "bus", fmt::format("{:#04x}", at.bus));
        set_attribute(address, "slot", fmt::format("{:#04x}", at.slot));
        set_attribute(address, "function", fmt::format("{:#x}", at.function));
        set_attribute(add_child(hostdev, "alias"), "name",
                      fmt::format("{}{}", kHostDeviceAlias, n));
    }
}

}  // namespace

std::optional<PciAddress> parse_pci_address(const std::string& text) {
    const std::size_t first = text.find(':'), second = text.find(':', first + 1),
                      dot = text.find('.');
    const bool has_parts = first != std::string::npos && second != std::string::npos &&
                           dot != std::string::npos && dot > second;
    if (!has_parts) return {};
    const std::string_view all = text;
    const auto domain = hex_in(all.substr(0, first));
    const auto bus = hex_in(all.substr(first + 1, second - first - 1));
    const auto slot = hex_in(all.substr(second + 1, dot - second - 1));
    const auto function = hex_in(all.substr(dot + 1));
    if (!domain || !bus || !slot || !function) return {};
    return PciAddress{.domain = *domain, .bus = *bus, .slot = *slot, .function = *function};
}

std::string vm_path(const std::string& run_dir, const std::string& uuid, std::size_t n,
                    const std::string& what) {
    return fmt::format("{}/vm/{}/{}.{}", run_dir, uuid, n, what);
}

std::string with_vfs(const std::string& xml, const std::vector<AttachedVf>& vfs,
                     const std::string& run_dir) {
    const XmlDocument document(xml);
    xmlNode* domain = domain_of(document);
    const std::string uuid = ensure_uuid(domain);
    const bool has_vfio_user =
        std::any_of(vfs.begin(), vfs.end(), [](const AttachedVf& vf) { return !vf.host_device; });
    xmlNode* devices = child_or_new(domain, "devices");
    write_metadata(domain, vfs);
    if (has_vfio_user) share_memory(domain);
    write_host_devices(devices, vfs);
    {  // the destructor of `line` edits the XML, so it must run before text()
        QemuCommandLine line(domain);
        write_vfs(line, vfs, run_dir, uuid);
        if (has_vfio_user) write_migration_blocker(line, run_dir, uuid);
        if (has_vfio_user && !vfs.front().host_device) write_agent(line, run_dir, uuid);
    }
    return document.text();
}

}  // namespace vgpu::cli
