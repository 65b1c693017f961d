// SPDX-License-Identifier: MIT
//
// vgpuctl --json: every verb prints one document with a schema id, whatever it finds: results,
// nothing, an error of vgpud, no bus, wrong usage.
#include "cli/verbs.h"
#include "tests/unit/cli/cli_fixture.h"
#include "tests/unit/cli/temp_tree.h"

#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace vgpu::cli {
namespace {

/// Of 10 ms: each test simulates it.
constexpr const char* kShort = R"({"duration_ms": 10, "policies": ["vgpu"], "vfs": [
    {"name": "large", "weight": 300, "quantum_ms": 2}, {"name": "small", "quantum_ms": 2}]})";

class JsonOutput : public testing::Cli {
protected:
    JsonOutput() {
        service.tell(0, "attached", "the PF core answers");
        service.plan_text = R"({"schema": "vgpu-plan-1", "label": "day", "is_empty": false,
            "disruption": "destroys", "steps": [], "gpus": []})";
        service.recorded_trace = "x";
    }
    ~JsonOutput() override { std::cin.rdbuf(typed_before_); }
    /// Of every verb at least one line that ends with 0 or 1.
    [[nodiscard]] std::vector<std::vector<std::string>> lines() {
        static_cast<void>(run({"simulate", scenario, "--trace", recording}));
        return {{"list"},
                {"list", "--targets"},
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
                {"simulate", scenario},
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
    const std::string scenario = tree.write("scenario.json", kShort);
    const std::string config = tree.write("config.json", "{}");
    const std::string domain =
        tree.write("domain.xml", "<domain><name>vm1</name><devices></devices></domain>");
    const std::string recording = tree.file("gpu0.trace");
};

/// What `words` print with --json.
struct Printed {
    int status = 0;
    std::vector<nlohmann::json> documents;  ///< one that is none is null

    [[nodiscard]] std::string schema() const {
        return documents.size() == 1 && documents.front().is_object()
                   ? documents.front().value("schema", "")
                   : "";
    }
};

class JsonOfEveryVerb : public JsonOutput {
protected:
    /// Each document ends with a line that is "}" or, of an error or an event, begins with "{".
    Printed printed(std::vector<std::string> words) {
        words.emplace_back("--json");
        Printed all{.status = run(words), .documents = {}};
        std::istringstream lines(out.str());
        std::string text;
        for (std::string line; std::getline(lines, line);) {
            text += line;
            if (!line.starts_with('}') && !line.starts_with(R"({")")) continue;
            all.documents.push_back(nlohmann::json::parse(text, nullptr, false));
            text.clear();
        }
        EXPECT_EQ(text, "") << words.front() << ": no whole document";
        return all;
    }
    void expect_error(const std::vector<std::string>& words, const std::string& name, int status) {
        const Printed all = printed(words);
        EXPECT_EQ(all.status, status) << words.front() << ": " << err.str();
        ASSERT_EQ(all.schema(), "vgpuctl-error-1") << words.front() << ": " << out.str();
        const nlohmann::json& error = all.documents.front();
        EXPECT_EQ(error.at("exit_code"), status) << words.front();
        EXPECT_EQ(error.at("name"), name) << words.front();
        EXPECT_TRUE(err.str().starts_with("vgpuctl: " + error.at("error").get<std::string>()))
            << err.str();
    }
    static bool never_connects(const std::vector<std::string>& words) {
        return words.front() == "simulate" || (words.front() == "trace" && words.at(1) != "record");
    }
    static bool works_without_vgpud(const std::vector<std::string>& words) {
        static const std::set<std::string> kVerbs{"doctor", "report", "attach-xml", "hook"};
        return kVerbs.contains(words.front()) || never_connects(words);
    }
};

TEST_F(JsonOfEveryVerb, IsOneDocumentWithItsSchemaId) {
    std::set<std::string> missing;
    for (const auto& verb : all_verbs()) missing.insert(verb->name());
    for (const auto& words : lines()) {
        missing.erase(words.front());
        const Printed all = printed(words);
        EXPECT_LE(all.status, 1) << words.front() << ": " << err.str();
        EXPECT_TRUE(all.schema().starts_with("vgpuctl-") && all.schema() != "vgpuctl-error-1")
            << words.front() << ": '" << out.str() << "' " << err.str();
    }
    EXPECT_EQ(missing, std::set<std::string>{});
}

TEST_F(JsonOfEveryVerb, IsADocumentWhereThereIsNothing) {
    service.gpus.clear();
    service.vfs.clear();
    service.jobs.clear();
    service.events.clear();
    EXPECT_EQ(printed({"list"}).documents.at(0).dump(),
              R"({"gpus":[],"schema":"vgpuctl-list-1","vfs":[]})");
    EXPECT_EQ(printed({"top", "--once"}).documents.at(0).at("vfs").dump(), "[]");
    EXPECT_EQ(printed({"jobs"}).documents.at(0).at("jobs").dump(), "[]");
    for (const auto& words : lines()) {
        if (works_without_vgpud(words)) continue;
        const Printed all = printed(words);
        // a stream of documents, one for each event
        const std::size_t wanted = words.front() == "events" ? 0 : 1;
        EXPECT_EQ(all.documents.size(), wanted) << words.front() << ": " << out.str();
        EXPECT_EQ(all.schema() == "vgpuctl-error-1", all.status > 1) << words.front();
    }
}

TEST_F(JsonOfEveryVerb, IsTheErrorOfVgpud) {
    every_call_fails_with = "org.vgpu1.Error.NotAuthorized";
    for (const auto& words : lines())
        if (!works_without_vgpud(words)) expect_error(words, every_call_fails_with, 4);
    expect_error({"attach-xml", domain, "--vf", "train"}, every_call_fails_with, 4);
}

TEST_F(JsonOfEveryVerb, IsAnErrorWithoutABus) {
    is_bus_away = true;
    for (const auto& words : lines()) {
        if (never_connects(words)) continue;
        if (works_without_vgpud(words)) {
            const Printed all = printed(words);
            EXPECT_LE(all.status, 1) << words.front();
            EXPECT_NE(all.schema(), "vgpuctl-error-1") << words.front();
        } else {
            expect_error(words, "org.freedesktop.DBus.Error.FileNotFound", 5);
        }
    }
}

TEST_F(JsonOfEveryVerb, IsAnErrorOfWrongUsage) {
    for (const auto& verb : all_verbs()) {
        const Printed all = printed({verb->name(), "--no-such-option"});
        EXPECT_EQ(all.status, 2) << verb->name();
        EXPECT_EQ(all.schema(), "vgpuctl-error-1") << verb->name() << out.str();
    }
    expect_error({"lsit"}, "vgpuctl.WrongUsage", 2);
    expect_error({"show", "caf\xe9"}, "vgpuctl.WrongUsage", 2);
    expect_error({"show", ""}, "vgpuctl.WrongUsage", 2);
    expect_error({}, "vgpuctl.WrongUsage", 2);
    expect_error({"attach-xml", "--write", domain, "--vf", "train"}, "vgpuctl.WrongUsage", 2);
    expect_error({"attach-xml", config, "--vf", "train"}, "org.vgpu1.Error.System", 1);
    expect_error({"show", "gpu9"}, "org.vgpu1.Error.NoSuchVf", 3);
    expect_golden("error.json");
}

TEST_F(JsonOfEveryVerb, OfAFailedApplyHasItsErrorInItsDocument) {
    service.job_end = {{"State", std::string("failed")},
                       {"Error", std::string("VGPU-302: no")},
                       {"ErrorName", std::string("org.vgpu1.Error.NoVram")}};
    const Printed all = printed({"apply", config, "--yes"});
    EXPECT_EQ(all.status, 6);
    EXPECT_EQ(all.schema(), "vgpuctl-apply-1") << out.str();
    EXPECT_EQ(all.documents.at(0).at("error"), "VGPU-302: no");
}

TEST_F(JsonOfEveryVerb, OfAFailedHookIsTheErrorThatLibvirtPrints) {
    nothing_.str(
        "<domain><name>vm1</name><uuid>4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10</uuid><metadata>"
        "<vgpu:vf xmlns:vgpu='urn:vgpu:libvirt:1' name='train'/></metadata></domain>");
    service.error_name = "org.vgpu1.Error.NoVram";
    const Printed all = printed({"hook", "vm1", "prepare"});
    EXPECT_EQ(all.status, 1);
    EXPECT_EQ(all.schema(), "vgpuctl-error-1") << out.str();
}

}  // namespace
}  // namespace vgpu::cli
