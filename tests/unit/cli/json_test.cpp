// SPDX-License-Identifier: MIT
//
// vgpuctl --json: every verb prints one document with a schema id, whatever it finds.
#include "cli/verbs.h"
#include "tests/unit/cli/cli_fixture.h"
#include "tests/unit/cli/temp_tree.h"

#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

namespace vgpu::cli {
namespace {

constexpr const char* kMixed = VGPU_SOURCE_DIR "/schemas/examples/valid/vgpu-scenario-mixed.json";

class JsonOutput : public testing::Cli {
protected:
    JsonOutput() {
        service.tell(0, "attached", "the PF core answers");
        service.plan_text = R"({"schema": "vgpu-plan-1", "label": "day", "is_empty": false,
            "disruption": "destroys", "steps": []})";
        static_cast<void>(run({"simulate", kMixed, "--trace", recording}));
        service.trace_kept = "x";
    }
    ~JsonOutput() override { std::cin.rdbuf(typed_before_); }
    /// Of every verb at least one line that ends with 0 or 1.
    [[nodiscard]] std::vector<std::vector<std::string>> lines() const {
        return {{"list"},
                {"list", "--targets"},
                {"show", "gpu0"},
                {"show", "gpu0/vf1"},
                {"top", "--once"},
                {"plan", config},
                {"apply", config},
                {"apply", config, "--yes"},
                {"apply", config, "--yes", "--no-wait"},
                {"assert", config},
                {"export"},
                {"jobs"},
                {"create"},
                {"set", "gpu0", "--quantum-us", "5000"},
                {"destroy", "gpu0/vf1"},
                {"claim", "gpu0/vf1", "--owner", "a"},
                {"release", "gpu0/vf1", "--owner", "a", "--generation", "1"},
                {"release", "--orphans"},
                {"attach-xml", domain, "--vf", "train"},
                {"hook", "vm1", "release"},
                {"reset", "gpu0/vf1"},
                {"pause", "gpu0/vf1"},
                {"resume", "gpu0/vf1"},
                {"stop", "gpu0/vf1"},
                {"self-test", "gpu0/vf1"},
                {"quiesce", "gpu0/vf1"},
                {"thaw", "gpu0/vf1"},
                {"simulate", kMixed},
                {"trace", "show", recording},
                {"trace", "replay", recording},
                {"trace", "export", recording, "--format", "svg"},
                {"trace", "export", recording, "--output", tree.file("out.json")},
                {"trace", "record", tree.file("new.trace"), "--gpu", "gpu0"},
                {"events"},
                {"metrics"},
                {"doctor", "--root", tree.file("none"), "--qemu", "/bin/false"},
                {"report", "-o", tree.file("report.tar.gz")},
                {"version"}};
    }

    /// For 'hook', which reads a domain.
    std::istringstream nothing_;
    std::streambuf* typed_before_ = std::cin.rdbuf(nothing_.rdbuf());
    const testing::TempTree tree;
    const std::string config = tree.write("config.json", "{}");
    const std::string domain =
        tree.write("domain.xml", "<domain><name>vm1</name><devices></devices></domain>");
    const std::string recording = tree.file("gpu0.trace");
};

TEST_F(JsonOutput, EveryVerbPrintsOneDocumentWithItsSchemaId) {
    std::set<std::string> missing;
    for (const auto& verb : all_verbs()) missing.insert(verb->name());
    for (std::vector<std::string> words : lines()) {
        missing.erase(words.front());
        words.emplace_back("--json");
        const int status = run(words);
        EXPECT_LE(status, 1) << words.front() << ": " << err.str();
        const auto document = nlohmann::json::parse(out.str(), nullptr, false);
        EXPECT_TRUE(document.is_object() && document.contains("schema"))
            << words.front() << " " << words.at(1) << ": '" << out.str() << "' " << err.str();
    }
    EXPECT_EQ(missing, std::set<std::string>{});
}

}  // namespace
}  // namespace vgpu::cli
