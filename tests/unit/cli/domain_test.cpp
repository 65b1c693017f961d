// SPDX-License-Identifier: MIT
//
// Domains of libvirt: what they say about VFs, and what attach-xml makes of them.
#include "cli/domain_edit.h"
#include "cli/domain_xml.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <libxml/parser.h>
#include <libxml/relaxng.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace vgpu::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

const std::string kUuid = "4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10";
const fs::path kSources = VGPU_SOURCE_DIR;

/// A domain as libvirt writes it, with `inside` among its elements.
std::string domain_with(const std::string& inside) {
    return "<domain type='qemu' id='3'>\n  <name>vm1</name>\n  <uuid>" + kUuid + "</uuid>\n" +
           inside +
           "  <os>\n    <type arch='x86_64' machine='pc-q35-7.2'>hvm</type>\n  </os>\n"
           "  <devices>\n    <emulator>/usr/bin/qemu-system-x86_64</emulator>\n  </devices>\n"
           "</domain>\n";
}

std::string metadata(const std::string& elements) {
    return "  <metadata>\n" + elements + "  </metadata>\n";
}

std::string vf_element(const std::string& attributes) {
    return "<vgpu:vf xmlns:vgpu='urn:vgpu:libvirt:1' " + attributes + "/>\n";
}

std::string condition_of(const std::string& xml) {
    try {
        static_cast<void>(read_domain(xml));
    } catch (const XmlError& error) {
        return error.what();
    }
    return "";
}

TEST(DomainXml, OneVfIsWantedByNameOrProfile) {
    const auto facts = read_domain(domain_with(metadata(vf_element("profile='small'"))));
    EXPECT_EQ(facts.name, "vm1");
    EXPECT_EQ(facts.uuid, kUuid);
    EXPECT_THAT(facts.vfs, ElementsAre(VfSelector{"profile", "small"}));
    EXPECT_THAT(read_domain(domain_with(metadata(vf_element("name='train'")))).vfs,
                ElementsAre(VfSelector{"name", "train"}));
}

TEST(DomainXml, SeveralVfsKeepTheirOrderAndAnyPrefixWillDo) {
    const auto facts = read_domain(domain_with(
        metadata("<x:vfs xmlns:x='urn:vgpu:libvirt:1'><x:vf name='b'/><x:vf profile='p'/>"
                 "<x:vf name='a'/></x:vfs>")));
    EXPECT_THAT(facts.vfs, ElementsAre(VfSelector{"name", "b"}, VfSelector{"profile", "p"},
                                       VfSelector{"name", "a"}));
}

TEST(DomainXml, ADomainWithoutOurNamespaceIsNotOurs) {
    const std::string other = domain_with(
        metadata("<o:os xmlns:o='http://libosinfo.org/xmlns/libvirt/domain/1.0' id='x'/>"));
    EXPECT_FALSE(mentions_vfs(other));
    EXPECT_THAT(read_domain(other).vfs, IsEmpty());
    EXPECT_THAT(read_domain(domain_with("")).vfs, IsEmpty());
    EXPECT_TRUE(mentions_vfs(domain_with(metadata(vf_element("name='a'")))));
}

TEST(DomainXml, AnElementOfOursOutsideOfMetadataIsNothing) {
    EXPECT_THAT(read_domain(domain_with(vf_element("name='a'"))).vfs, IsEmpty());
}

TEST(DomainXml, MistakesAreNamedWithTheirLine) {
    EXPECT_EQ(condition_of(domain_with(metadata(vf_element("")))),
              "line 5: <vgpu:vf> has the attributes []; it needs name='…' or profile='…'");
    EXPECT_THAT(condition_of(domain_with(metadata(vf_element("name='a' profile='b'")))),
                HasSubstr("[name, profile]"));
    EXPECT_THAT(condition_of(domain_with(metadata(vf_element("profil='b'")))),
                HasSubstr("[profil]"));
    EXPECT_THAT(condition_of(domain_with(metadata(vf_element("name=''")))), HasSubstr("0 bytes"));
    const std::string longest_profile(62, 'p');
    EXPECT_EQ(condition_of(domain_with(metadata(vf_element("profile='" + longest_profile + "'")))),
              "");
    EXPECT_THAT(
        condition_of(domain_with(metadata(vf_element("profile='p" + longest_profile + "'")))),
        HasSubstr("has 63 bytes; 1 to 62 are allowed"));
    EXPECT_THAT(
        condition_of(domain_with(metadata("<vgpu:gpu xmlns:vgpu='urn:vgpu:libvirt:1'/>\n"))),
        HasSubstr("there is no element <vgpu:gpu>"));
    EXPECT_THAT(condition_of(domain_with(
                    metadata("<v:vfs xmlns:v='urn:vgpu:libvirt:1'><vf name='a'/></v:vfs>\n"))),
                HasSubstr("<vf> in <vgpu:vfs>"));
    EXPECT_THAT(condition_of("<network/>"), HasSubstr("<network> is not a <domain>"));
    EXPECT_THAT(condition_of("<domain><name>x</domain>"), HasSubstr("line 1: "));
    EXPECT_EQ(condition_of(""), "line 1: Document is empty");
}

TEST(DomainXml, ASecondElementOfWhichADomainHasOneIsRefused) {
    for (const char* name : {"name", "uuid", "metadata", "devices", "memoryBacking", "os"}) {
        const std::string xml = fmt::format("<domain>\n<{0}/>\n<{0}/>\n</domain>", name);
        const std::string expected =
            fmt::format("line 3: a second <{}>; a <domain> has only one", name);
        EXPECT_EQ(condition_of(xml), expected);
        try {
            static_cast<void>(with_vfs(xml, {}, "/run/vgpu"));
            ADD_FAILURE() << name;
        } catch (const XmlError& error) {
            EXPECT_EQ(error.what(), expected);
        }
    }
}

TEST(DomainXml, NeitherEntitiesNorEndlessTextsAreTaken) {
    const std::string bomb =
        "<!DOCTYPE domain [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;'>]>"
        "<domain><name>&b;</name></domain>";
    EXPECT_THAT(condition_of(bomb), HasSubstr("document type"));
    EXPECT_THAT(condition_of(std::string(XmlDocument::kMaxBytes + 1, ' ')),
                HasSubstr("the limit is"));
    std::string deep;
    for (int i = 0; i < 100'000; ++i) deep += "<a>";
    EXPECT_NE(condition_of(deep), "");
}

TEST(DomainXml, TheUserOfQemuIsInTheDacLabel) {
    const auto facts = read_domain(
        domain_with("<seclabel type='dynamic' model='apparmor'><label>libvirt-x</label></seclabel>"
                    "<seclabel type='dynamic' model='dac' "
                    "relabel='yes'><label>+64055:+108</label></seclabel>"));
    EXPECT_EQ(facts.dac_label, "+64055:+108");
    EXPECT_EQ(read_domain(domain_with("")).dac_label, "");
}

TEST(DomainXml, LabelsAreNumbersOrNames) {
    EXPECT_EQ(ids_of_label("+64055:+108"), (std::pair{64055u, 108u}));
    EXPECT_EQ(ids_of_label("0:0"), (std::pair{0u, 0u}));
    EXPECT_EQ(ids_of_label("root:root"), (std::pair{0u, 0u}));
    for (const char* bad : {"", "1", "no-such-user:0", "0:no-such-group", "+1 :+2", "-1:0", ":"})
        EXPECT_FALSE(ids_of_label(bad)) << bad;
}

// --- the schema

class DomainSchema {
public:
    DomainSchema() {
        const std::string path = kSources / "schemas/vgpu-domain.rng";
        xmlRelaxNGParserCtxt* parser = xmlRelaxNGNewParserCtxt(path.c_str());
        schema_ = xmlRelaxNGParse(parser);
        xmlRelaxNGFreeParserCtxt(parser);
    }
    ~DomainSchema() { xmlRelaxNGFree(schema_); }
    DomainSchema(const DomainSchema&) = delete;
    DomainSchema& operator=(const DomainSchema&) = delete;

    [[nodiscard]] bool is_read() const { return schema_ != nullptr; }
    [[nodiscard]] bool accepts(const std::string& xml) const {
        xmlDoc* document = xmlReadMemory(xml.data(), static_cast<int>(xml.size()), "", nullptr, 0);
        xmlRelaxNGValidCtxt* validator = xmlRelaxNGNewValidCtxt(schema_);
        xmlRelaxNGSetValidStructuredErrors(
            validator, [](void*, xmlError*) {}, nullptr);
        const int result = xmlRelaxNGValidateDoc(validator, document);
        xmlRelaxNGFreeValidCtxt(validator);
        xmlFreeDoc(document);
        return result == 0;
    }

private:
    xmlRelaxNG* schema_ = nullptr;
};

std::string text_of_file(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// The elements of our namespace in the metadata of a domain.
std::string metadata_of(const std::string& domain) {
    const std::size_t from = domain.find("<vgpu:"), to = domain.find("</metadata>");
    return domain.substr(from, to - from);
}

TEST(DomainSchemas, ExamplesAreWhatTheyAreSaidToBeAndTheHookAgrees) {
    const DomainSchema schema;
    ASSERT_TRUE(schema.is_read());
    int checked = 0;
    for (const bool is_valid : {true, false})
        for (const auto& entry : fs::directory_iterator(kSources / "schemas/examples" /
                                                        (is_valid ? "valid" : "invalid"))) {
            if (entry.path().extension() != ".xml") continue;
            const std::string xml = text_of_file(entry.path());
            EXPECT_EQ(schema.accepts(xml), is_valid) << entry.path();
            if (is_valid) {
                EXPECT_EQ(condition_of(domain_with(metadata(xml))), "") << entry.path();
            }
            ++checked;
        }
    EXPECT_GE(checked, 9);
}

// --- editing

AttachedVf vf_of(const std::string& by, const std::string& value) {
    return {.selector = {by, value}, .host_device = {}};
}

std::string edited(const std::string& xml, const std::vector<AttachedVf>& vfs) {
    return with_vfs(xml, vfs, "/run/vgpu");
}

int count_of(const std::string& text, const std::string& what) {
    int count = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
        ++count;
    return count;
}

TEST(DomainEdit, ADomainGetsMemoryDevicesAndMetadata) {
    const std::string after = edited(domain_with(""), {vf_of("profile", "small")});
    EXPECT_THAT(read_domain(after).vfs, ElementsAre(VfSelector{"profile", "small"}));
    EXPECT_THAT(after, HasSubstr("<source type=\"memfd\"/>"));
    EXPECT_THAT(after, HasSubstr("<access mode=\"shared\"/>"));
    EXPECT_THAT(after, HasSubstr("xmlns:qemu=\"http://libvirt.org/schemas/domain/qemu/1.0\""));
    EXPECT_THAT(after, HasSubstr("<qemu:arg value=\"-device\"/>"));
    EXPECT_THAT(after, HasSubstr("/run/vgpu/vm/" + kUuid + "/0.sock"));
    EXPECT_THAT(after, HasSubstr("&quot;bus&quot;:&quot;pcie.0&quot;"));
    EXPECT_THAT(after, HasSubstr("socket,id=vgpu-agent,path=/run/vgpu/vm/" + kUuid +
                                 "/0.agent.sock,reconnect-ms=1000"));
    EXPECT_THAT(after, HasSubstr("&quot;name&quot;:&quot;org.vgpu.agent.0&quot;"));
    EXPECT_TRUE(DomainSchema().accepts(metadata_of(after)));
}

TEST(DomainEdit, EditingTwiceIsEditingOnce) {
    const std::vector<AttachedVf> vfs{vf_of("name", "a"), vf_of("profile", "p")};
    const std::string once = edited(domain_with(""), vfs);
    EXPECT_EQ(edited(once, vfs), once);
    EXPECT_EQ(count_of(once, "vfio-user-pci"), 2);
    EXPECT_EQ(count_of(once, "org.vgpu.agent.0"), 1) << "one agent in a guest";
    EXPECT_EQ(count_of(once, "<vgpu:vf "), 2);
    EXPECT_TRUE(DomainSchema().accepts(metadata_of(once)));
}

TEST(DomainEdit, FewerVfsLeaveNothingOfTheOthers) {
    const std::string two = edited(domain_with(""), {vf_of("name", "a"), vf_of("name", "b")});
    const std::string one = edited(two, {vf_of("profile", "p")});
    EXPECT_EQ(one, edited(domain_with(""), {vf_of("profile", "p")}));
    EXPECT_THAT(read_domain(one).vfs, ElementsAre(VfSelector{"profile", "p"}));
}

TEST(DomainEdit, WithoutVfsOnlySharedMemoryIsLeft) {
    const AttachedVf of_host{.selector = {"name", "h"}, .host_device = PciAddress{0, 3, 2, 1}};
    const std::string with =
        edited(domain_with(""), {vf_of("name", "a"), vf_of("profile", "p"), of_host});
    const std::string after = edited(with, {});
    EXPECT_FALSE(mentions_vfs(after)) << after;
    for (const char* gone : {"<metadata", "qemu:arg", "<hostdev", "org.vgpu"})
        EXPECT_EQ(count_of(after, gone), 0) << gone << after;
    EXPECT_THAT(after, HasSubstr("<source type=\"memfd\"/>"));
    const std::string others = metadata("<o:os xmlns:o='urn:other' id='x'/>");
    EXPECT_THAT(edited(edited(domain_with(others), {vf_of("name", "a")}), {}),
                HasSubstr("<o:os xmlns:o=\"urn:other\" id=\"x\"/>"));
}

TEST(DomainEdit, WhatIsNotOursStays) {
    const std::string before =
        domain_with(metadata("<o:os xmlns:o='urn:other' id='x'/>") +
                    "<memoryBacking><hugepages/><source type='file'/><locked/></memoryBacking>"
                    "<commandline xmlns='http://libvirt.org/schemas/domain/qemu/1.0'>"
                    "<arg value='-device'/><arg value='edu'/><arg value='-foo'/></commandline>");
    const std::string after = edited(before, {vf_of("name", "a")});
    for (const char* kept :
         {"<o:os xmlns:o=\"urn:other\" id=\"x\"/>", "<hugepages/>", "<source type=\"file\"/>",
          "<locked/>", "value=\"edu\"", "value=\"-foo\"", "/usr/bin/qemu-system-x86_64"})
        EXPECT_THAT(after, HasSubstr(kept));
    EXPECT_EQ(count_of(after, "vfio-user-pci"), 1);
}

TEST(DomainEdit, OtherChannelsAndDevicesOnOtherPathsStay) {
    for (const std::string path : {"/tmp/other", "/run/spdk/vm/disk.sock", "/run/spdk/vm/0.sock"}) {
        const std::string before =
            "<domain><name>x</name><devices><channel type='unix'><source mode='bind' path='/a'/>"
            "<target type='virtio' name='org.qemu.guest_agent.0'/></channel></devices>"
            "<q:commandline xmlns:q='http://libvirt.org/schemas/domain/qemu/1.0'>"
            "<q:arg value='-device'/><q:arg value='{\"driver\":\"vfio-user-pci\",\"socket\":"
            "{\"type\":\"unix\",\"path\":\"" +
            path + "\"}}'/></q:commandline></domain>";
        const std::string after = edited(before, {vf_of("name", "a")});
        EXPECT_THAT(after, HasSubstr("org.qemu.guest_agent.0"));
        EXPECT_EQ(count_of(after, "vfio-user-pci"), 2) << path;
        EXPECT_EQ(count_of(edited(after, {}), "vfio-user-pci"), 1) << path;
    }
}

TEST(DomainEdit, AMachineThatIsNotQ35HasAnotherRootBus) {
    const std::string after =
        edited("<domain><name>x</name><os><type machine='pc-i440fx-7.2'>hvm</type></os></domain>",
               {vf_of("name", "a")});
    EXPECT_THAT(after, HasSubstr("&quot;pci.0&quot;"));
}

TEST(DomainEdit, SlotsOfTheDomainsOwnDevicesAreLeftAlone) {
    const std::string before =
        "<domain><name>x</name><devices><interface><address type='pci' domain='0x0000' bus='0x00' "
        "slot='0x10' function='0x0'/></interface><disk><address type='pci' bus='0x01' "
        "slot='0x11'/></disk></devices></domain>";
    const std::string after = edited(before, {vf_of("name", "a"), vf_of("name", "b")});
    EXPECT_THAT(after, HasSubstr("&quot;addr&quot;:&quot;0x11&quot;"));
    EXPECT_THAT(after, HasSubstr("&quot;addr&quot;:&quot;0x12&quot;"));
    const std::vector<AttachedVf> many(10, vf_of("profile", "p"));
    EXPECT_THROW(static_cast<void>(edited(before, many)), XmlError);
    EXPECT_THAT(edited(before, {vf_of("name", "a")}),
                HasSubstr("&quot;addr&quot;:&quot;0x12&quot;"))
        << "the agent's";
}

TEST(DomainEdit, ADomainWithoutAUuidGetsOneSinceThePathHasIt) {
    const std::string after = edited("<domain><name>x</name><os/></domain>", {vf_of("name", "a")});
    const std::string uuid = read_domain(after).uuid;
    EXPECT_THAT(uuid, ::testing::MatchesRegex(
                          "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
    EXPECT_THAT(after, HasSubstr("/vm/" + uuid + "/0.sock"));
    EXPECT_THAT(after, HasSubstr("<name>x</name>\n  <uuid>"))
        << "with others between them `virsh define --validate` refuses it";
}

TEST(DomainEdit, PathsHaveTheUuidAsLibvirtAndVgpudWriteItHoweverItIsTyped) {
    for (const char* typed :
         {"4DEA22B3-1D52-4D8F-8A0E-8F1F0C4B7F10", "4dea22b31d524d8f8a0e8f1f0c4b7f10",
          "\n  4DEA22B31D524d8f-8a0e8f1f0c4b7f10\n  "}) {
        const std::string after =
            edited(fmt::format("<domain><name>x</name><uuid>{}</uuid></domain>", typed),
                   {vf_of("name", "a")});
        EXPECT_EQ(count_of(after, "/run/vgpu/vm/" + kUuid + "/0."), 3)
            << "socket, agent and image: " << after;
        EXPECT_EQ(count_of(after, "/run/vgpu/vm/"), 3);
        EXPECT_THAT(after, HasSubstr(fmt::format("<uuid>{}</uuid>", typed))) << "it stays";
    }
}

TEST(DomainEdit, WhatIsNoUuidIsRefusedByItsValue) {
    for (const std::string& typed :
         {std::string("vm1"), kUuid + "0", kUuid.substr(1), "g" + kUuid.substr(1)}) {
        const std::string xml =
            fmt::format("<domain><name>x</name>\n<uuid>{}</uuid></domain>", typed);
        try {
            static_cast<void>(edited(xml, {vf_of("name", "a")}));
            ADD_FAILURE() << typed;
        } catch (const XmlError& error) {
            EXPECT_EQ(error.what(), "line 2: '" + typed + "' is not a UUID");
        }
    }
}

TEST(DomainEdit, APrefixWithoutANamespaceIsRefusedByItsName) {
    const std::string xml =
        "<domain><name>x</name>\n<qemu:commandline><qemu:arg value='-snapshot'/>"
        "</qemu:commandline></domain>";
    try {
        static_cast<void>(edited(xml, {vf_of("name", "a")}));
        ADD_FAILURE();
    } catch (const XmlError& error) {
        EXPECT_THAT(error.what(), HasSubstr("line 2: Namespace prefix qemu"));
    }
}

TEST(DomainEdit, QemuIsKeptFromSavingADomainWithAVf) {
    const std::string other = "<qemu:arg value='-blockdev'/><qemu:arg value='driver=null-co'/>";
    const std::string before =
        "<domain xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'><name>x</name>"
        "<qemu:commandline>" +
        other + "</qemu:commandline></domain>";
    const std::string after = edited(before, {vf_of("name", "a"), vf_of("name", "b")});
    EXPECT_EQ(count_of(after, "vgpu-vf-is-never-saved"), 1);
    EXPECT_THAT(after, HasSubstr("/" + read_domain(after).uuid + "/0.never-saved.vdi"));
    EXPECT_EQ(edited(after, {vf_of("name", "a"), vf_of("name", "b")}), after);
    EXPECT_EQ(count_of(edited(after, {}), "never-saved"), 0);
    EXPECT_EQ(count_of(edited(after, {}), "driver=null-co"), 1) << "the administrator's";
}

TEST(DomainEdit, DevicesWithMembersOfAnotherTypeAreTheAdministrators) {
    for (const char* device : {R"({"driver": 1})", R"({"driver": "virtserialport", "chardev": {}})",
                               R"({"driver": "vfio-user-pci", "socket": {"path": 2}})",
                               R"({"node-name": [], "id": 3})"}) {
        const std::string before =
            "<domain xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'><name>x</name>"
            "<qemu:commandline><qemu:arg value='-device'/><qemu:arg value='" +
            std::string(device) + "'/></qemu:commandline></domain>";
        const std::string after = edited(before, {vf_of("name", "a")});
        EXPECT_EQ(count_of(edited(after, {}), "<qemu:arg"), 2) << device;
    }
}

TEST(DomainEdit, APrefixOfAnotherNamespaceIsNotTaken) {
    const std::string before =
        "<domain xmlns:qemu='urn:another' xmlns:qemu2='urn:third'><name>x</name>"
        "<qemu:commandline/></domain>";
    const std::string after = edited(before, {vf_of("name", "a")});
    EXPECT_THAT(after, HasSubstr("<qemu3:commandline>"));
    EXPECT_THAT(after, HasSubstr("xmlns:qemu3=\"http://libvirt.org/schemas/domain/qemu/1.0\""));
    EXPECT_EQ(edited(after, {vf_of("name", "a")}), after);
}

TEST(DomainEdit, AVfOfThisHostIsAHostDevice) {
    const AttachedVf vf{.selector = {"name", "a"}, .host_device = PciAddress{0, 0x3, 0x2, 1}};
    const std::string after = edited(domain_with(""), {vf});
    EXPECT_THAT(after, HasSubstr("<hostdev mode=\"subsystem\" type=\"pci\" managed=\"yes\">"));
    EXPECT_THAT(after, HasSubstr("<address domain=\"0x0000\" bus=\"0x03\" slot=\"0x02\" "
                                 "function=\"0x1\"/>"));
    EXPECT_EQ(count_of(after, "vfio-user-pci"), 0);
    EXPECT_EQ(count_of(after, "memfd"), 0);
    EXPECT_EQ(edited(after, {vf}), after);
    EXPECT_EQ(edited(after, {vf_of("name", "a")}), edited(domain_with(""), {vf_of("name", "a")}))
        << "and back";
}

TEST(DomainEdit, PciAddressesAreRead) {
    EXPECT_EQ(parse_pci_address("0000:03:1f.7"), (PciAddress{0, 3, 0x1f, 7}));
    for (const char* bad : {"", "03:00.0", "0000:03:00", "x:03:00.0", "0000:03:00.", "a.b:c:d"})
        EXPECT_FALSE(parse_pci_address(bad)) << bad;
}

}  // namespace
}  // namespace vgpu::cli
