// SPDX-License-Identifier: MIT
//
// Fuzzes the reading and editing of a libvirt domain's XML, as the hook and `vgpuctl attach-xml` do
// it. The first byte of the input says which VFs are added to the domain that follows. For any
// input, errors have short texts, the VFs that were added are read back, adding them twice is the
// same as adding them once, and removing them leaves no VF.
#include "cli/domain_edit.h"

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace vgpu::cli;

constexpr std::size_t kFewWords = 20'000;
constexpr const char* kRunDirectory = "/run/vgpu";

void require(bool is_true) {
    if (!is_true) std::abort();
}

/// The result of `function`; none if it throws XmlError, which must have a short text.
template <typename Function> auto unless_refused(const Function& function) {
    std::optional<decltype(function())> result;
    try {
        result = function();
    } catch (const XmlError& error) {
        const std::string words = error.what();
        require(!words.empty() && words.size() < kFewWords);
    }
    return result;
}

std::vector<AttachedVf> vfs_of(std::uint8_t which) {
    std::vector<AttachedVf> vfs;
    for (std::uint8_t n = 0; n < which % 4; ++n) {
        AttachedVf vf{.selector = {n == 0 ? "name" : "profile", "small"}, .host_device = {}};
        if ((which >> (2 + n) & 1) != 0)
            vf.host_device = PciAddress{.domain = 0, .bus = 3, .slot = 0, .function = n};
        vf.is_bound = (which & 0x80) != 0;
        vfs.push_back(vf);
    }
    return vfs;
}

void check_reading(const std::string& xml) {
    const auto facts = unless_refused([&] { return read_domain(xml); });
    const auto identity = unless_refused([&] { return read_identity(xml); });
    if (!facts) return;
    require(identity && identity->name == facts->name && identity->uuid == facts->uuid);
    require(facts->vfs.empty() || mentions_vfs(xml) || xml.find('&') != std::string::npos);
    for (const std::string& function : facts->functions) require(!function.empty());
    for (const VfSelector& selector : facts->vfs) static_cast<void>(is_valid_selector(selector));
}

void check_editing(const std::string& xml, const std::vector<AttachedVf>& vfs) {
    const auto edit = [](const std::string& text, const std::vector<AttachedVf>& wanted) {
        return unless_refused([&] { return with_vfs(text, wanted, kRunDirectory); });
    };
    const auto with = edit(xml, vfs);
    if (!with) return;
    const auto facts = unless_refused([&] { return read_domain(*with); });
    require(facts && facts->vfs.size() == vfs.size());
    for (std::size_t i = 0; i < vfs.size(); ++i) require(facts->vfs[i] == vfs[i].selector);
    require(edit(*with, vfs) == with);
    const auto without = edit(*with, {});
    require(without && read_domain(*without).vfs.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    std::string xml;
    xml.assign(data + 1, data + size);
    check_reading(xml);
    check_editing(xml, vfs_of(data[0]));
    static_cast<void>(parse_pci_address(xml));
    return 0;
}
