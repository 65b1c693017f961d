// SPDX-License-Identifier: MIT
#include "daemon/service/config/config.h"
#include "daemon/service/config/configuration.h"
#include "daemon/service/words.h"

#include <gmock/gmock.h>
#include <array>

namespace vgpu::daemon {
namespace {

using ::testing::HasSubstr;

TEST(Config, CommentsDefaultsAndBothKindsOfGpu) {
    const auto config = parse_config(R"({
        // two GPUs
        "run_dir": "/tmp/r", "state_dir": "/tmp/s",
        "programs": {"softgpu": "/x/softgpu"},
        "gpus": [
            {"id": "gpu0", "softgpu": {"vfs": 4, "true_copy": true, "args": ["--control"]}},
            {"id": "gpu1", "max_gap_ms": 100, "attach": {"uapi": "/tmp/u.sock"}}
        ]})",
                                     "test");
    ASSERT_TRUE(config) << config.error().cause;
    EXPECT_EQ(config->softgpu_program, "/x/softgpu");
    EXPECT_EQ(config->pf_program, "vgpu-pf");
    EXPECT_EQ(config->gpus[0].softgpu->vfs, 4u);
    EXPECT_EQ(config->gpus[0].softgpu->vram_mb, 2048u);
    EXPECT_TRUE(config->gpus[0].softgpu->is_true_copy);
    EXPECT_EQ(config->gpus[1].attach->uapi_socket, "/tmp/u.sock");
    EXPECT_EQ(config->gpus[1].max_gap_ms, 100u);
}

TEST(Config, APfOfAVendorsDriverIsOnlyObservedUnlessTheConfigurationSaysMore) {
    const auto config = parse_config(R"({"gpus": [
        {"id": "a", "pci": {"address": "0000:03:00.0"}},
        {"id": "b", "pci": {"address": "0001:c1:00.1", "ids": "8086:e212", "manage": "full",
                            "contracts": "approximate", "vfs": 4, "vram_mb": 16000,
                            "pf_quantum_ms": 5}}]})",
                                     "test");
    ASSERT_TRUE(config) << config.error().cause;
    const PciConfig &a = *config->gpus[0].pci, &b = *config->gpus[1].pci;
    EXPECT_TRUE(a.is_observing);
    EXPECT_FALSE(a.accepts_approximations);
    EXPECT_FALSE(a.model);
    EXPECT_EQ(a.pf_quantum_ms, 1u);
    EXPECT_EQ(b.address, "0001:c1:00.1");
    EXPECT_FALSE(b.is_observing);
    EXPECT_TRUE(b.accepts_approximations);
    EXPECT_EQ(b.model, (std::pair<std::uint16_t, std::uint16_t>{0x8086, 0xe212}));
    EXPECT_EQ(b.vfs, 4u);
    EXPECT_EQ(b.vram_mb, 16'000u);
    EXPECT_EQ(b.pf_quantum_ms, 5u);
}

/// Only addresses as sysfs writes them: another spelling would name no directory.
TEST(Config, TakesExactlyTheAddressesThatSysfsHas) {
    const auto is_taken = [](const std::string& address) {
        return parse_config(R"({"gpus": [{"id": "a", "pci": {"address": ")" + address + R"("}}]})",
                            "c")
            .has_value();
    };
    const std::string good = "0af9:b3:1f.7";
    EXPECT_TRUE(is_taken(good));
    for (std::size_t at = 0; at < good.size(); ++at) {
        for (const std::string wrong : {"g", "A", " ", "", "/", "8:", "-"}) {
            std::string bad = good;
            bad.replace(at, 1, wrong);
            EXPECT_FALSE(is_taken(bad)) << bad;
        }
    }
    EXPECT_FALSE(is_taken(good + "0"));
}

TEST(Config, AutoIsEveryPfDeviceOrElseOneSoftwareGpu) {
    const std::string text = R"({"gpus": "auto"})";
    const auto none = parse_config(text, "test");
    ASSERT_TRUE(none) << none.error().cause;
    ASSERT_EQ(none->gpus.size(), 1u);
    EXPECT_TRUE(none->gpus[0].softgpu);
    const auto two = parse_config(text, "test", {"/dev/vgpu-pf0", "/dev/vgpu-pf12"});
    ASSERT_TRUE(two) << two.error().cause;
    ASSERT_EQ(two->gpus.size(), 2u);
    EXPECT_EQ(two->gpus[1].id, "gpu12");
    EXPECT_EQ(two->gpus[1].attach->uapi_socket, "/dev/vgpu-pf12");
    EXPECT_FALSE(two->gpus[1].softgpu);
}

/// The 107 bytes of a socket's path, and what of them is for names below run_dir.
TEST(Config, ARunDirIsRefusedWhoseSocketsNobodyCouldOpen) {
    const auto config_in = [](const std::string& gpu, std::size_t bytes) {
        return parse_config(R"({"run_dir": "/)" + std::string(bytes - 1, 'r') +
                                R"(", "gpus": [{"id": ")" + gpu + R"(", "softgpu": {}}]})",
                            "c.json");
    };
    EXPECT_TRUE(config_in("gpu0", 53));
    const auto too_long = config_in("gpu0", 54);
    ASSERT_FALSE(too_long);
    EXPECT_THAT(too_long.error().cause, HasSubstr("/run_dir is 1 bytes too long: the socket /rrr"));
    EXPECT_THAT(too_long.error().cause,
                HasSubstr("/15.agent.sock would have 108 bytes; the limit is 107"));
    EXPECT_TRUE(config_in("a" + std::string(62, 'x'), 27));
    EXPECT_FALSE(config_in("a" + std::string(62, 'x'), 28));
    const auto attached =
        parse_config(R"({"gpus": [{"id": "a", "attach": {"uapi": "/u", "vf_socket_dir": "/)" +
                         std::string(91, 'd') + R"("}}]})",
                     "c.json");
    ASSERT_FALSE(attached);
    EXPECT_THAT(attached.error().cause,
                HasSubstr("/gpus/0/attach/vf_socket_dir is 1 bytes too long"));
}

struct BadConfig {
    const char* text;
    const char* cause;
};

class ConfigMistake : public ::testing::TestWithParam<BadConfig> {};

TEST_P(ConfigMistake, IsNamedWithItsPath) {
    const auto config = parse_config(GetParam().text, "c.json");
    ASSERT_FALSE(config);
    EXPECT_EQ(config.error().id, ErrorId::ConfigInvalid);
    EXPECT_THAT(config.error().cause, HasSubstr(GetParam().cause));
}

INSTANTIATE_TEST_SUITE_P(
    Config, ConfigMistake,
    ::testing::Values(
        BadConfig{"{", "c.json: "}, BadConfig{"[]", "is not an object"},
        BadConfig{"{}", "/gpus must be a list of at least one GPU"},
        BadConfig{R"({"gpus": []})", "at least one GPU"},
        BadConfig{R"({"gpu": []})", "/gpu is unknown; did you mean 'gpus'?"},
        BadConfig{R"({"gpus": [{"id": "a"}]})",
                  "/gpus/0 must have exactly one of 'softgpu', 'attach' and 'pci'"},
        BadConfig{R"({"gpus": [{"id": "a b", "softgpu": {}}]})", "/gpus/0/id"},
        BadConfig{R"({"gpus": [{"id": "a", "softgpu": {"vfs": 17}}]})",
                  "/gpus/0/softgpu/vfs must be a whole number within 1..16, not 17"},
        BadConfig{R"({"gpus": [{"id": "a", "softgpu": {"vfs": "4"}}]})", "/softgpu/vfs must be"},
        BadConfig{R"({"gpus": [{"id": "a", "softgpu": {"threads": 65}}]})",
                  "/gpus/0/softgpu/threads must be a whole number within 1..64, not 65"},
        BadConfig{R"({"gpus": [{"id": "a", "softgpu": {"vram_mb": 100}}]})",
                  "/gpus/0/softgpu/vram_mb is not a multiple of 16"},
        BadConfig{R"({"gpus": [{"id": "a", "softgpu": {"aperture_mb": 300}}]})",
                  "/gpus/0/softgpu/aperture_mb is not a power of two"},
        BadConfig{R"({"gpus": [{"id": "a", "softgpu": {"doorbell_mode": "x"}}]})",
                  "neither 'trap' nor 'poll'"},
        BadConfig{R"({"gpus": [{"id": "a", "softgpu": {"isa_tier": "jit"}}]})",
                  "/gpus/0/softgpu/isa_tier is neither 'interpreter' nor 'translator'"},
        BadConfig{R"({"gpus": [{"id": "a", "attach": {}}]})", "/gpus/0/attach/uapi is missing"},
        BadConfig{R"({"gpus": [{"id": "a", "pci": {}}]})", "/gpus/0/pci/address is missing"},
        BadConfig{R"({"gpus": [{"id": "a", "pci": {"address": "03:00.0"}}]})",
                  "/pci/address '03:00.0' is not a PCI address in lower case with its domain"},
        BadConfig{R"({"gpus": [{"id": "a", "pci": {"address": "0000:03:00.0", "manage": "yes"}}]})",
                  "/gpus/0/pci/manage is neither 'observe' nor 'full'"},
        BadConfig{R"({"gpus": [{"id": "a", "pci": {"address": "0000:03:00.0",
                  "contracts": "keep"}}]})",
                  "/gpus/0/pci/contracts is neither 'refuse' nor 'approximate'"},
        BadConfig{R"({"gpus": [{"id": "a", "pci": {"address": "0000:03:00.0", "ids": "e212"}}]})",
                  "/gpus/0/pci/ids 'e212' is not VENDOR:DEVICE in lower case"},
        BadConfig{R"({"gpus": [{"id": "a", "pci": {"address": "0000:03:00.0", "vfs": 65}}]})",
                  "/gpus/0/pci/vfs must be a whole number within 0..64, not 65"},
        BadConfig{
            R"({"gpus": [{"id": "a", "max_gap_ms": 50, "pci": {"address": "0000:03:00.0"}}]})",
            "/gpus/0/max_gap_ms is not offered for a GPU with 'pci'; leave it out, and set it in "
            "the profiles of its VFs"},
        BadConfig{R"({"gpus": [{"id": "a", "quantum_us": 1500,
                  "pci": {"address": "0000:03:00.0"}}]})",
                  "/gpus/0/quantum_us 1500 is not a whole number of milliseconds"},
        BadConfig{R"({"gpus": [{"id": "a", "pci": {"address": "0000:03:00.0"}},
                               {"id": "b", "pci": {"address": "0000:03:00.0"}}]})",
                  "/gpus/1/pci/address '0000:03:00.0' is used twice"},
        BadConfig{R"({"gpus": [{"id": "a", "softgpu": {}}, {"id": "a", "softgpu": {}}]})",
                  "'a' is used twice"}));

TEST(Documents, OfConfigurationsAreRefusedBeforeTheyAreDeep) {
    const std::string deep = R"({"gpus": )" + std::string(60'000, '[') + "}";
    const auto config = parse_config(deep, "vgpud.json");
    ASSERT_FALSE(config);
    EXPECT_EQ(config.error().cause,
              "vgpud.json: line 1, column 73: lists and objects are nested more than 64 deep");
    const auto configuration = parse_configuration(deep);
    ASSERT_FALSE(configuration);
    EXPECT_EQ(configuration.error().id, ErrorId::BadConfiguration);
}

TEST(Documents, AnUnknownKeyIsAnsweredWithThoseThereAre) {
    const auto config =
        parse_config(R"({"gpus": [{"id": "a", "attach": {"UapiSocket": "x"}}]})", "f");
    ASSERT_FALSE(config);
    EXPECT_EQ(config.error().cause,
              "f:/gpus/0/attach/UapiSocket is unknown; known: uapi, vf_socket_dir");
}

TEST(Words, UuidsGoThereAndBack) {
    const Uuid made = make_uuid();
    EXPECT_EQ(parse_uuid(uuid_text(made)), made);
    EXPECT_FALSE(parse_uuid("00112233-4455-6677-8899-aabbccddeef"));
    EXPECT_FALSE(parse_uuid("00112233-4455-6677-8899-aabbccddeeffx"));
    EXPECT_FALSE(parse_uuid("0011223344556677-8899-aabbccddeeff-00"));
    EXPECT_FALSE(parse_uuid(""));
}

TEST(Words, NamesThatCouldBeMistakenAreNoNames) {
    EXPECT_TRUE(is_valid_name("train-a.1"));
    EXPECT_FALSE(is_valid_name(""));
    EXPECT_FALSE(is_valid_name("gpu0/vf1"));
    EXPECT_FALSE(is_valid_name("1abc"));
    EXPECT_FALSE(is_valid_name("a\n"));
    EXPECT_FALSE(is_valid_name(std::string(64, 'a')));
    EXPECT_FALSE(is_valid_name("aa112233-4455-6677-8899-aabbccddeeff"));
}

}  // namespace
}  // namespace vgpu::daemon
