// SPDX-License-Identifier: MIT
//
// vgpuctl hook and attach-xml in this process: what they ask of vgpud, what they say, and when they
// fail.
#include "cli/domain_edit.h"
#include "cli/hard_limit.h"
#include "tests/unit/cli/cli_fixture.h"
#include "tests/unit/cli/temp_tree.h"

#include <gmock/gmock.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace vgpu::cli {
namespace {

using testing::Cli;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string kUuid = "4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10";
const std::string kDomain =
    "<domain><name>vm1</name><uuid>" + kUuid +
    "</uuid><metadata><vgpu:vfs xmlns:vgpu='urn:vgpu:libvirt:1'><vgpu:vf profile='small'/>"
    "<vgpu:vf name='train'/></vgpu:vfs></metadata>"
    "<seclabel model='dac'><label>+64055:+108</label></seclabel></domain>";
const std::string kOther = "<domain><name>vm2</name><uuid>" + kUuid + "</uuid></domain>";

class WithInput : public Cli {
protected:
    int run_with(const std::string& input, const std::vector<std::string>& words) {
        std::istringstream stream(input);
        std::streambuf* before = std::cin.rdbuf(stream.rdbuf());
        const int status = run(words);
        std::cin.rdbuf(before);
        return status;
    }
};

class Hook : public WithInput {
protected:
    int hook(const std::string& operation, const std::string& xml = kDomain) {
        return run_with(xml, {"hook", "--", "vm1", operation, "begin", "-"});
    }
};

TEST_F(Hook, EachOperationAsksForOneThing) {
    const std::string owner = "libvirt:" + kUuid;
    for (const char* operation : {"prepare", "start", "started", "stopped", "release", "reconnect",
                                  "attach", "what-comes-later"})
        EXPECT_EQ(hook(operation), 0) << operation << ": " << err.str();
    EXPECT_THAT(
        service.asked,
        ElementsAre("assign " + owner + " profile:small name:train owner_name=vm1 wait_ms=5000",
                    "grant " + owner + " 64055:108", "unassign " + owner,
                    "adopt " + owner + " owner_name=vm1"));
    EXPECT_LE(service.call_limit, std::chrono::seconds(10));
    EXPECT_GT(service.call_limit, std::chrono::seconds(0));
    EXPECT_EQ(out.str(), "") << "libvirt would take it for a domain";
}

TEST_F(Hook, ADomainWithoutVfsIsNoneOfOurBusiness) {
    for (const char* operation : {"prepare", "start", "release", "restore", "migrate"}) {
        used_bus.clear();
        EXPECT_EQ(hook(operation, kOther), 0);
        EXPECT_EQ(used_bus, "") << "nobody was asked";
    }
    EXPECT_EQ(hook("prepare", "no XML at all"), 0);
    EXPECT_THAT(service.asked, IsEmpty());
}

/// A running domain with `vf`, whose metadata virsh has replaced by `elements` since it started.
std::string with_other_metadata(const AttachedVf& vf, const std::string& elements) {
    const std::string xml = with_vfs(kOther, {vf}, "/elsewhere");
    const std::string begin = "<metadata>";
    const std::size_t from = xml.find(begin) + begin.size();
    return xml.substr(0, from) + elements + xml.substr(xml.find("</metadata>"));
}

TEST_F(Hook, WhatADomainWasGivenIsTakenBackWhateverItsMetadataSayByThen) {
    const std::string owner = "libvirt:" + kUuid;
    const AttachedVf of_softgpu{.selector = {"name", "a"}, .host_device = {}};
    const AttachedVf of_host{.selector = {"name", "a"}, .host_device = PciAddress{0, 3, 2, 1}};
    for (const AttachedVf& vf : {of_softgpu, of_host})
        for (const char* metadata : {"", "<v:vfs xmlns:v='urn:vgpu:libvirt:1'/>",
                                     "<v:vf xmlns:v='urn:vgpu:libvirt:1' nmae='x'/>"}) {
            service.asked.clear();
            const std::string xml = with_other_metadata(vf, metadata);
            EXPECT_EQ(hook("reconnect", xml), 0) << xml;
            EXPECT_EQ(hook("release", xml), 0) << xml;
            EXPECT_EQ(err.str(), "") << xml;
            EXPECT_THAT(service.asked,
                        ElementsAre("adopt " + owner + " owner_name=vm2", "unassign " + owner))
                << xml;
        }
}

/// A domain with the function 0000:03:00.2 of this host, and `metadata`.
std::string with_function(const std::string& metadata) {
    return "<domain><name>vm1</name><uuid>" + kUuid + "</uuid><metadata>" + metadata +
           "</metadata><devices><hostdev mode='subsystem' type='pci' managed='no'><source>"
           "<address domain='0x0000' bus='0x03' slot='0x00' function='0x2'/></source></hostdev>"
           "</devices></domain>";
}

TEST_F(Hook, ADomainWithTheFunctionOfAnothersVfIsRefused) {
    const std::string wish = "<v:vf xmlns:v='urn:vgpu:libvirt:1' name='b'/>";
    const std::string owner = "libvirt:" + kUuid;
    for (const std::string& metadata : {std::string(), wish}) {
        service.vfs[1]["Address"] = std::string("0000:03:00.2");
        service.vfs[1]["Owner"] = std::string("libvirt:another");
        service.asked.clear();
        EXPECT_EQ(hook("prepare", with_function(metadata)), 1);
        EXPECT_THAT(err.str(), HasSubstr("its <hostdev> 0000:03:00.2 is gpu0/vf2 ("));
        EXPECT_THAT(err.str(), HasSubstr("belongs to 'libvirt:another'"));
        if (metadata.empty())
            EXPECT_THAT(service.asked, IsEmpty()) << "nothing was claimed";
        else
            EXPECT_EQ(service.asked.back(), "unassign " + owner) << "nothing stays claimed";
        err.str("");
        service.vfs[1]["Owner"] = owner;
        EXPECT_EQ(hook("prepare", with_function(metadata)), 0) << "its own";
        service.vfs[1]["Owner"] = std::string("libvirt:another");
        service.vfs[1]["Address"] = std::string("0000:03:00.3");
        EXPECT_EQ(hook("prepare", with_function(metadata)), 0) << "another function";
        EXPECT_EQ(hook("release", with_function("")), 0);
    }
}

TEST_F(Hook, ADomainWithAnAliasButNoMetadataIsCheckedToo) {
    const AttachedVf vf{.selector = {"name", "a"}, .host_device = PciAddress{0, 3, 0, 2}};
    service.vfs[1]["Address"] = std::string("0000:03:00.2");
    service.vfs[1]["Owner"] = std::string("libvirt:another");
    EXPECT_EQ(hook("prepare", with_other_metadata(vf, "")), 1);
    EXPECT_THAT(err.str(), HasSubstr("belongs to 'libvirt:another'"));
    EXPECT_THAT(service.asked, IsEmpty());
}

TEST_F(Hook, ADomainWhoseRequestIsNowAnotherVfThanItsFunctionIsRefused) {
    service.vfs[1]["Address"] = std::string("0000:03:00.2");
    service.vfs[1]["Owner"] = std::string();
    EXPECT_EQ(hook("prepare", with_function("")), 0) << "without a request it is no claim";
    EXPECT_EQ(hook("prepare", with_function("<v:vf xmlns:v='urn:vgpu:libvirt:1' name='a'/>")), 1);
    EXPECT_THAT(err.str(), HasSubstr("its metadata does not request; rename the VF"));
    EXPECT_EQ(service.asked.back(), "unassign libvirt:" + kUuid);
}

TEST_F(Hook, AVfOfTheKernelModuleIsFoundByItsLink) {
    testing::TempTree sysfs;
    sysfs.make_directory("vgpu-pf0/device");
    std::filesystem::create_symlink("../0000:03:00.2", sysfs.file("vgpu-pf0/device/virtfn1"));
    service.gpus.front()["Platform"] = std::string("kernel");
    service.gpus.front()["Uapi"] = std::string("/dev/vgpu-pf0");
    service.vfs[1]["Owner"] = std::string("libvirt:another");
    EXPECT_EQ(run_with(with_function(""),
                       {"hook", "--sysfs", sysfs.path(), "--", "vm1", "prepare", "begin", "-"}),
              1);
    EXPECT_THAT(err.str(), HasSubstr("its <hostdev> 0000:03:00.2 is gpu0/vf2 ("));
}

TEST_F(Hook, ADomainWithAFunctionOfOthersStartsWithoutVgpud) {
    service.list_error_name = "org.freedesktop.DBus.Error.ServiceUnknown";
    EXPECT_EQ(hook("prepare", with_function("")), 0);
    EXPECT_EQ(err.str(), "");
}

TEST_F(Hook, ADomainWithAPathOfVgpudsIsOurs) {
    const std::string xml = "<domain><uuid>" + kUuid +
                            "</uuid><q:commandline xmlns:q='urn:q'><q:arg value='/run/vgpu/vm/" +
                            kUuid + "/0.sock'/></q:commandline></domain>";
    EXPECT_EQ(hook("release", xml), 0);
    EXPECT_THAT(service.asked, ElementsAre("unassign libvirt:" + kUuid));
}

TEST_F(Hook, WithoutWishesNothingIsAssigned) {
    const AttachedVf vf{.selector = {"name", "a"}, .host_device = {}};
    for (const char* operation : {"prepare", "start", "restore", "migrate"})
        EXPECT_EQ(hook(operation, with_other_metadata(vf, "")), 0) << err.str();
    EXPECT_THAT(service.asked, IsEmpty());
}

TEST_F(Hook, ARefusalIsOneLineThatNamesTheDomain) {
    service.error_name = "org.vgpu1.Error.NoMatchingVf";
    EXPECT_EQ(hook("prepare"), 1);
    EXPECT_EQ(err.str(), "vgpu: domain 'vm1': no VF can be assigned: VGPU-0: as the test wants.\n");
    EXPECT_EQ(hook("start"), 1);
}

TEST_F(Hook, WhatLibvirtDoesNotAskAboutNeverFails) {
    service.error_name = "org.vgpu1.Error.System";
    for (const char* operation : {"release", "reconnect", "stopped"})
        EXPECT_EQ(hook(operation), 0) << operation;
    EXPECT_EQ(hook("release", "<broken urn:vgpu:libvirt:1"), 0);
    EXPECT_THAT(err.str(), HasSubstr("its VF was not released: its XML: line 1"));
}

TEST_F(Hook, WithoutVgpudItSaysHowToStartIt) {
    service.error_name = "org.freedesktop.DBus.Error.ServiceUnknown";
    EXPECT_EQ(hook("prepare"), 1);
    EXPECT_THAT(err.str(), HasSubstr("start it ('systemctl start vgpud')"));
    EXPECT_EQ(hook("release"), 0);
}

TEST_F(Hook, MistakesInTheDomainAreNamed) {
    EXPECT_EQ(hook("prepare", "<domain><uuid>" + kUuid +
                                  "</uuid><metadata><v:vf xmlns:v='urn:vgpu:libvirt:1'/>"
                                  "</metadata></domain>"),
              1);
    EXPECT_THAT(err.str(), HasSubstr("it needs name='…' or profile='…'"));
    EXPECT_EQ(hook("prepare",
                   "<domain><metadata><v:vf xmlns:v='urn:vgpu:libvirt:1' name='a'/>"
                   "</metadata></domain>"),
              1);
    EXPECT_THAT(err.str(), HasSubstr("the domain has no <uuid>"));
    EXPECT_THAT(service.asked, IsEmpty());
}

TEST_F(Hook, AUserThatDoesNotExistIsNamedAndNoUserIsNoMistake) {
    const auto labelled = [](const std::string& label) {
        std::string xml = kDomain;
        return xml.replace(xml.find("+64055:+108"), 11, label);
    };
    EXPECT_EQ(hook("start", labelled("no-such-user:0")), 1);
    EXPECT_THAT(err.str(), HasSubstr("'no-such-user:0' is not a user"));
    EXPECT_EQ(hook("start", labelled("")), 0);
    EXPECT_THAT(service.asked, IsEmpty());
}

TEST_F(Hook, SavedAndMigratedDomainsAreRefusedWithTheReason) {
    for (const char* operation : {"restore", "migrate"}) {
        EXPECT_EQ(hook(operation), 1);
        EXPECT_THAT(err.str(),
                    HasSubstr("a saved or migrated domain does not contain the VF's state"));
        EXPECT_THAT(err.str(), HasSubstr("'virsh managedsave-remove vm1'"));
        EXPECT_THAT(err.str(), Not(HasSubstr("attach-xml"))) << "the saved domain stays as it is";
    }
    EXPECT_THAT(service.asked, IsEmpty());
}

TEST(HardLimitDeathTest, EndsWhatWaitsForeverWithItsWords) {
    EXPECT_EXIT(
        {
            const HardLimit limit(std::chrono::seconds(1), "vgpu: too slow", 7);
            for (;;) ::pause();
        },
        ::testing::ExitedWithCode(7), "vgpu: too slow");
}

TEST(HardLimit, IsOverWithItsScope) {
    { const HardLimit limit(std::chrono::seconds(100), "never said", 7); }
    EXPECT_EQ(::alarm(0), 0u) << "no alarm is pending";
}

// --- attach-xml

class AttachXml : public WithInput {};

TEST_F(AttachXml, PrintsTheDomainThatComesOnStandardInput) {
    EXPECT_EQ(run_with(kOther, {"attach-xml", "-", "--profile", "small", "--vf", "train"}), 0)
        << err.str();
    EXPECT_THAT(out.str(), HasSubstr("<vgpu:vf name=\"train\"/>"));
    EXPECT_THAT(out.str(), HasSubstr("<vgpu:vf profile=\"small\"/>"));
    EXPECT_THAT(out.str(), HasSubstr("/run/vgpu/vm/" + kUuid + "/1.sock"));
}

TEST_F(AttachXml, WithoutAVfItTakesThoseOfTheMetadata) {
    EXPECT_EQ(run_with(kDomain, {"attach-xml", "-", "--run-dir", "/tmp/r"}), 0) << err.str();
    EXPECT_THAT(out.str(), HasSubstr("/tmp/r/vm/" + kUuid + "/1.sock"));
    EXPECT_EQ(run_with(kOther, {"attach-xml", "-"}), 1);
    EXPECT_THAT(err.str(), HasSubstr("which VF? Name one with --vf or --profile"));
}

TEST_F(AttachXml, NoneTakesThemOutAlsoWhereTheMetadataIsBroken) {
    std::string broken = kDomain;
    broken.replace(broken.find("profile"), 7, "profil_");
    for (const std::string& xml : {kDomain, broken}) {
        EXPECT_EQ(run_with(xml, {"attach-xml", "-", "--none"}), 0) << err.str();
        EXPECT_THAT(out.str(), HasSubstr("<name>vm1</name>"));
        EXPECT_THAT(out.str(), Not(HasSubstr("urn:vgpu")));
    }
    for (const char* other : {"--vf", "--profile"})
        EXPECT_EQ(run_with(kDomain, {"attach-xml", "-", "--none", other, "small"}), 2);
}

TEST_F(AttachXml, AVfThatIsNotThereYetIsOnlyMentioned) {
    EXPECT_EQ(run_with(kOther, {"attach-xml", "-", "--vf", "later"}), 0);
    EXPECT_THAT(err.str(), HasSubstr("there is no VF 'later' yet"));
    EXPECT_EQ(run_with(kOther, {"attach-xml", "-", "--vf", "train"}), 0);
    EXPECT_EQ(err.str(), "");
}

TEST_F(AttachXml, TheDomainNamesTheVfWhicheverWayItWasGiven) {
    for (const char* vf : {"train", "gpu0/vf1", "00112233-4455-6677-8899-aabbccddee01"}) {
        EXPECT_EQ(run_with(kOther, {"attach-xml", "-", "--vf", vf}), 0) << err.str();
        EXPECT_THAT(out.str(), HasSubstr(R"(urn:vgpu:libvirt:1" name="train"/>)")) << vf;
    }
}

TEST_F(AttachXml, WhatCanBeNoNameIsRefused) {
    const std::string long_name(64, 'a');
    for (const std::string& vf : {std::string("a/b"), std::string("gpu0/vf9"), std::string("1a"),
                                  kUuid, "a" + kUuid.substr(1), long_name}) {
        EXPECT_EQ(run_with(kOther, {"attach-xml", "-", "--vf", vf}), 1) << vf;
        EXPECT_EQ(err.str(), "vgpuctl: -: '" + vf + "' is not a valid name of a VF\n");
        EXPECT_EQ(out.str(), "");
    }
    EXPECT_EQ(run_with(kOther, {"attach-xml", "-", "--profile", "a b"}), 1);
    EXPECT_EQ(err.str(), "vgpuctl: -: 'a b' is not a valid profile of a VF\n");
    EXPECT_EQ(run_with(kOther, {"attach-xml", "-", "--profile", "64MiB"}), 0) << err.str();
    service.list_error_name = "org.freedesktop.DBus.Error.ServiceUnknown";
    EXPECT_EQ(run_with(kOther, {"attach-xml", "-", "--vf", "gpu0/vf1"}), 1)
        << "nobody knows its name";
    EXPECT_EQ(run_with(kOther, {"attach-xml", "-", "--vf", ""}), 2);
    EXPECT_EQ(out.str(), "");
}

TEST_F(AttachXml, WithoutAVgpudThatTheBusCanStartEveryVfIsOneOfSoftgpu) {
    service.list_error_name = "org.freedesktop.systemd1.NoSuchUnit";
    EXPECT_EQ(run_with(kOther, {"attach-xml", "-", "--vf", "train"}), 0);
    EXPECT_THAT(out.str(), HasSubstr("/run/vgpu/vm/" + kUuid + "/0.sock"));
    EXPECT_THAT(err.str(), HasSubstr("vgpud does not answer; every VF is taken for a softgpu VF"));
}

TEST_F(AttachXml, AVfOfAVendorsDriverIsAHostDeviceThatIsBoundByVgpudOrByLibvirt) {
    service.vfs.front()["Address"] = std::string("0000:03:02.1");
    for (const std::string mode : {"vfio-pci", "none"}) {
        service.vfs.front()["AssignmentMode"] = mode;
        EXPECT_EQ(run_with(kOther, {"attach-xml", "-", "--vf", "train"}), 0) << err.str();
        EXPECT_THAT(out.str(), HasSubstr(mode == "none" ? "managed=\"yes\"" : "managed=\"no\""));
        EXPECT_THAT(out.str(), HasSubstr("<address domain=\"0x0000\" bus=\"0x03\" slot=\"0x02\" "
                                         "function=\"0x1\"/>"));
        EXPECT_THAT(out.str(), Not(HasSubstr("vfio-user")));
    }
}

TEST_F(AttachXml, AVfOfTheKernelModuleBecomesAHostDevice) {
    testing::TempTree sysfs;
    sysfs.make_directory("vgpu-pf0/device");
    std::filesystem::create_symlink("../0000:03:02.1", sysfs.file("vgpu-pf0/device/virtfn0"));
    service.gpus.front()["Platform"] = std::string("kernel");
    service.gpus.front()["Uapi"] = std::string("/dev/vgpu-pf0");
    const std::string root = sysfs.path();
    EXPECT_EQ(run_with(kOther, {"attach-xml", "-", "--vf", "train", "--sysfs", root}), 0)
        << err.str();
    EXPECT_THAT(out.str(), HasSubstr("bus=\"0x03\" slot=\"0x02\" function=\"0x1\""));
    service.gpus.pop_back();
    EXPECT_EQ(run_with(kOther, {"attach-xml", "-", "--profile", "small", "--sysfs", root}), 1);
    EXPECT_THAT(err.str(), HasSubstr("name a VF with --vf"));
}

TEST_F(AttachXml, MistakesAreNamed) {
    EXPECT_EQ(run({"attach-xml", "/no/such/file", "--vf", "a"}), 1);
    EXPECT_THAT(err.str(), HasSubstr("cannot read /no/such/file: No such file"));
    const testing::TempTree tree;
    EXPECT_EQ(run({"attach-xml", tree.path(), "--vf", "a"}), 1);
    EXPECT_THAT(err.str(), HasSubstr("cannot read " + tree.path() + ": Is a directory"));
    EXPECT_EQ(run({"attach-xml", "x.xml", "--vf", "a", "--write"}), 2);
    EXPECT_THAT(err.str(), HasSubstr("--write needs the name of a libvirt domain"));
    EXPECT_EQ(run_with("<network/>", {"attach-xml", "-", "--vf", "a"}), 1);
    EXPECT_THAT(err.str(), HasSubstr("<network> is not a <domain>"));
}

TEST_F(AttachXml, TheDomainOfALibvirtIsReadAndDefined) {
    EXPECT_EQ(run({"attach-xml", "test", "--vf", "train", "--connect", "test:///default"}), 0)
        << err.str();
    EXPECT_THAT(out.str(), HasSubstr("<name>test</name>"));
    EXPECT_THAT(out.str(), HasSubstr("/0.sock"));
    EXPECT_EQ(run({"attach-xml", "nobody", "--vf", "train", "--connect", "test:///default"}), 1);
    EXPECT_THAT(err.str(), HasSubstr("there is no domain 'nobody'"));
    EXPECT_EQ(run({"attach-xml", "x", "--vf", "train", "--connect", "nothing:///"}), 1);
    EXPECT_THAT(err.str(), HasSubstr("no connection to nothing:///"));
}

TEST_F(AttachXml, APrintedDomainHasNoPasswords) {
    const testing::TempTree tree;
    const std::string path = tree.path() + "/node.xml";
    std::ofstream(path) << "<node><domain type='test'><name>secretive</name><memory>8192</memory>"
                           "<os><type>hvm</type></os><devices>"
                           "<graphics type='vnc' port='5900' passwd='opensesame'/>"
                           "</devices></domain></node>";
    const std::string uri = "test://" + path;
    EXPECT_EQ(run({"attach-xml", "secretive", "--vf", "train", "--connect", uri}), 0) << err.str();
    EXPECT_THAT(out.str(), HasSubstr("<graphics type=\"vnc\""));
    EXPECT_THAT(out.str(), Not(HasSubstr("opensesame")));
}

}  // namespace
}  // namespace vgpu::cli
