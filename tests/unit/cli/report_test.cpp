// SPDX-License-Identifier: MIT
#include "cli/bug_report.h"
#include "tests/unit/cli/cli_fixture.h"
#include "tests/unit/cli/temp_tree.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <nlohmann/json.hpp>

namespace vgpu::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TempTree;

/// Where people's directories are.
const std::string kHomes = "/home/";

const std::string kConfiguration = R"({
  // the password is hunter2
  "state_dir": ")" + kHomes + R"(alice/state",
  "api_token": "s3cret-a",
  "gpus": [{"id": "gpu0", "softgpu": {"args": ["--auth-key=s3cret-b", "--name", "bob", "--token",
    "s3cret-c", "plain"]}}]
})";

class Report : public ::testing::Test {
protected:
    Report() {
        sources.connect = [this]() -> std::unique_ptr<Service> {
            if (!has_bus)
                throw ServiceError("org.freedesktop.DBus.Error.FileNotFound",
                                   kHomes + "alice/bus: no bus");
            return std::make_unique<testing::Lent>(service);
        };
        sources.facts.vgpuctl_version = "0.1.0";
        sources.facts.kernel_release = "6.12.57";
        sources.identity = {.host = "falcon", .users = {"alice", "root"}};
        sources.configuration = tree.write("vgpud.json", kConfiguration);
        sources.kernel_log = tree.write("kmsg",
                                        "6,1,100,-;vgpu_pf 0000:03:00.0: on falcon\n"
                                        "6,2,101,-;eth0: link of bob is up\n");
        service.tell(1, "hang", "on falcon");
        const auto chunk =
            nlohmann::json::to_cbor({{"vgpu_trace", 4}, {"names", {{"1", "alice"}}}});
        service.recorded_trace.assign(chunk.begin(), chunk.end());
    }
    /// The piece's content; fails the test if there is none.
    static std::string piece(const std::vector<ArchiveEntry>& entries, const std::string& name) {
        for (const auto& [entry, content] : entries)
            if (entry == name) return content;
        ADD_FAILURE() << "no piece " << name;
        return "";
    }
    static std::vector<std::string> names(const std::vector<ArchiveEntry>& entries) {
        std::vector<std::string> all;
        for (const auto& [name, content] : entries) all.push_back(name);
        return all;
    }

    TempTree tree;
    testing::FakeService service;
    ReportSources sources;
    bool has_bus = true;
};

TEST_F(Report, HasEveryPieceAndNamesTheMissingOnes) {
    const auto entries = BugReport(sources).entries();
    EXPECT_THAT(names(entries),
                ElementsAre("README.txt", "versions.json", "doctor.json", "configuration.json",
                            "kernel-messages.txt", "list.json", "events.json", "metrics.txt",
                            "run-table/gpu0.json", "trace/gpu0.trace", "dump/gpu0.txt",
                            "trace/gpu1.trace", "dump/gpu1.txt", "MISSING.txt"));
    EXPECT_EQ(piece(entries, "MISSING.txt"),
              "run-table/gpu1.json: VGPU-601: gpu1: as the test wants.\n");
    const auto table = nlohmann::json::parse(piece(entries, "run-table/gpu0.json"));
    EXPECT_EQ(table.at("generation"), 42);
    EXPECT_EQ(table.at("entries").at(1).at("quantum_us"), 3000);
    EXPECT_EQ(piece(entries, "dump/gpu0.txt"), "the dump of /org/vgpu1/gpu/gpu0\n");
    const auto events = nlohmann::json::parse(piece(entries, "events.json"));
    EXPECT_EQ(events.at("events").at(0).at("kind"), "hang");
}

TEST_F(Report, ATraceIsStillOneWhenItsNamesAreReplaced) {
    const std::string trace = piece(BugReport(sources).entries(), "trace/gpu0.trace");
    EXPECT_EQ(nlohmann::json::from_cbor(trace),
              (nlohmann::json{{"vgpu_trace", 4}, {"names", {{"1", "USER"}}}}));
    service.recorded_trace = "no trace";
    EXPECT_THAT(piece(BugReport(sources).entries(), "MISSING.txt"),
                HasSubstr("trace/gpu0.trace: byte 0: there is no chunk"));
    service.recorded_trace.clear();
    EXPECT_THAT(piece(BugReport(sources).entries(), "MISSING.txt"),
                HasSubstr("trace/gpu0.trace: vgpud has recorded nothing of this GPU yet"));
}

TEST_F(Report, WithoutVgpudHasTheRest) {
    has_bus = false;
    const BugReport report(sources);
    EXPECT_THAT(names(report.entries()),
                ElementsAre("README.txt", "versions.json", "doctor.json", "configuration.json",
                            "kernel-messages.txt", "MISSING.txt"));
    EXPECT_EQ(report.missing().front().piece, "vgpud's data");
    EXPECT_THAT(piece(report.entries(), "MISSING.txt"), HasSubstr(kHomes + "USER/bus: no bus"));
}

TEST_F(Report, AVgpudThatHangsCostsSecondsAndNotMinutes) {
    const BugReport report(sources);
    EXPECT_GT(service.call_limit, std::chrono::seconds(0));
    EXPECT_LE(service.call_limit, std::chrono::seconds(10));
}

TEST_F(Report, PiecesThatCannotBeHadNameTheirReason) {
    sources.configuration = tree.file("not-there.json");
    sources.kernel_log = tree.file("no-kmsg");
    service.error_name = "org.vgpu1.Error.NotAuthorized";  // Dump wants a privilege
    const std::string missing = piece(BugReport(sources).entries(), "MISSING.txt");
    EXPECT_THAT(missing, AllOf(HasSubstr("configuration.json: "), HasSubstr("No such file"),
                               HasSubstr("kernel-messages.txt: "),
                               HasSubstr("dump/gpu0.txt: VGPU-0: as the test wants.")));
    sources.configuration = tree.path();
    EXPECT_THAT(piece(BugReport(sources).entries(), "MISSING.txt"),
                HasSubstr("configuration.json: " + tree.path() + ": Is a directory"));
    sources.configuration = tree.write("broken.json", "{ no json");
    EXPECT_THAT(piece(BugReport(sources).entries(), "MISSING.txt"), HasSubstr("is not JSON"));
}

TEST_F(Report, HasNoSecretNoNameAndNoProcessOfAGuest) {
    setenv("VGPU_TEST_SECRET", "s3cret-env", 1);
    std::string all;
    for (const auto& [name, content] : BugReport(sources).entries()) all += name + content;
    unsetenv("VGPU_TEST_SECRET");
    for (const char* secret : {"s3cret", "hunter2", "alice", "falcon", "matmul", "link of"})
        EXPECT_THAT(all, Not(HasSubstr(secret)));
    EXPECT_THAT(all, HasSubstr("on HOST"));
    EXPECT_THAT(all, HasSubstr(kHomes + "USER/state"));
    EXPECT_THAT(all, HasSubstr("\"plain\"")) << "what is no secret stays";
}

TEST_F(Report, TheArchiveIsReadableByItsOwnerOnlyAndHoldsThePieces) {
    const std::string file = tree.file("report.tar.gz");
    const auto written = BugReport(sources).entries();
    write_archive(file, "vgpu-report", written);
    struct stat status {};
    ASSERT_EQ(::stat(file.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777u, 0600u);
    const auto read = read_archive(file);
    ASSERT_EQ(read.size(), written.size());
    for (std::size_t i = 0; i < read.size(); ++i) {
        EXPECT_EQ(read[i].first, "vgpu-report/" + written[i].first);
        EXPECT_EQ(read[i].second, written[i].second);
    }
}

TEST_F(Report, AFileThatExistsIsNotOverwritten) {
    const std::string file = tree.write("precious", "x");
    try {
        write_archive(file, "vgpu-report", {{"a", "b"}});
        FAIL();
    } catch (const ServiceError& error) {
        EXPECT_THAT(error.what(), HasSubstr("cannot write " + file + ": File exists"));
    }
    std::ifstream kept(file);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(kept), {}), "x");
    EXPECT_THROW(write_archive(tree.file("no/such/directory"), "r", {{"a", "b"}}), ServiceError);
}

class ReportVerb : public testing::Cli {
protected:
    [[nodiscard]] std::string file(const std::string& name) const { return tree.file(name); }
    TempTree tree;
};

TEST_F(ReportVerb, SucceedsWithPiecesMissingAndTellsWhich) {
    EXPECT_EQ(run({"report", "-o", file("r.tar.gz"), "--config", file("none.json")}), 0);
    EXPECT_THAT(out.str(), HasSubstr(file("r.tar.gz") + ": "));
    EXPECT_THAT(out.str(), HasSubstr("missing: configuration.json: "));
    EXPECT_GE(read_archive(file("r.tar.gz")).size(), 8u);
    EXPECT_EQ(run({"report", "-o", file("r.tar.gz")}), 1) << "the file is there now";
    EXPECT_EQ(run({"report", "--json", "-o", file("s.tar.gz"), "--config", file("none.json")}), 0);
    const auto document = nlohmann::json::parse(out.str());
    EXPECT_EQ(document.at("schema"), "vgpuctl-report-1");
    EXPECT_EQ(document.at("file"), file("s.tar.gz"));
    EXPECT_EQ(document.at("missing").at(0).at("piece"), "configuration.json");
}

TEST(Redaction, NamesAreReplacedAsWordsOnly) {
    const Identity identity{.host = "falcon", .users = {"al", "bob"}};
    EXPECT_EQ(without_names("falcon falcons falcon-1 bob bobby", identity),
              "HOST falcons HOST-1 USER bobby");
    EXPECT_EQ(without_names(kHomes + "eve/x " + kHomes, identity), kHomes + "USER/x " + kHomes);
    EXPECT_EQ(without_names("al alone", identity), "al alone") << "too short to be told apart";
    EXPECT_EQ(without_names("", identity), "");
}

TEST(Redaction, SecretsAreFoundByTheirNames) {
    for (const char* name : {"password", "API_TOKEN", "ssh-key", "Authorization", "clientSecret"})
        EXPECT_TRUE(is_secret_name(name)) << name;
    for (const char* name : {"state_dir", "vfs", "weight", ""})
        EXPECT_FALSE(is_secret_name(name)) << name;
}

TEST(Redaction, ListsOfArgumentsAreFollowed) {
    const std::string text =
        R"({"args": ["--token", "a", "b", "--key=c", "d", {"password": 1}, ["--key"]]})";
    const nlohmann::json wanted = {{"args",
                                    {"--token",
                                     "(removed)",
                                     "b",
                                     "--key=(removed)",
                                     "d",
                                     {{"password", "(removed)"}},
                                     nlohmann::json::array({"--key"})}}};
    EXPECT_EQ(nlohmann::json::parse(*redacted_configuration(text)), wanted);
    EXPECT_FALSE(redacted_configuration("{"));
}

/// What is left of `args` in a configuration.
nlohmann::json redacted_args(const nlohmann::json& args) {
    const nlohmann::json document = {{"args", args}};
    return nlohmann::json::parse(redacted_configuration(document.dump()).value()).at("args");
}

TEST(Redaction, PasswordsInAddressesAreCutWhateverTheyAreCalled) {
    EXPECT_EQ(redacted_args("qemu+tls://admin:hunter2@host/system"),
              "qemu+tls://admin:(removed)@host/system");
    EXPECT_EQ(redacted_args("http://a:b@c:d/e@one:80 and https://x:y@two/"),
              "http://a:(removed)@one:80 and https://x:(removed)@two/")
        << "what was not escaped as it should have been is cut, too";
    for (const char* harmless : {"qemu:///system", "qemu+ssh://root@host:22/system",
                                 "http://host:80/metrics", "0000:03:00.0", "unix:path=/run/bus"})
        EXPECT_EQ(redacted_args(harmless), harmless);
}

TEST(Redaction, WhatIsInAWebAddressBeforeTheHostIsCut) {
    EXPECT_EQ(redacted_args("push to HTTPS://ghp_abc@host:8080/x"),
              "push to HTTPS://(removed)@host:8080/x");
    EXPECT_EQ(redacted_args("git+https://glpat-1@one/ http://abc@two"),
              "git+https://(removed)@one/ http://(removed)@two");
}

TEST(Redaction, WhatFollowsBearerAndBasicIsCut) {
    EXPECT_EQ(redacted_args("send Bearer abc, then basic ZGVm=="),
              "send Bearer (removed) then basic (removed)");
    EXPECT_EQ(redacted_args("Bearer  abc and BASIC\tZGVm"),
              "Bearer  (removed) and BASIC\t(removed)");
    EXPECT_EQ(redacted_args("the basics of bearers"), "the basics of bearers");
    EXPECT_EQ(redacted_args("bearer "), "bearer ");
    EXPECT_EQ(redacted_args("a cupbearer is no word of these"), "a cupbearer is no word of these");
}

TEST(Redaction, BothSidesOfAnEqualsSignAreJudged) {
    EXPECT_EQ(redacted_args("--password=x y"), "--password=(removed)");
    EXPECT_EQ(redacted_args("--env=API_TOKEN=x"), "--env=(removed)");
    EXPECT_EQ(redacted_args("--header=Authorization: Bearer abc"), "--header=(removed)");
    EXPECT_EQ(redacted_args("X-Api-Key: abc"), "X-Api-Key:(removed)");
    EXPECT_EQ(redacted_args("--weight=3"), "--weight=3");
}

TEST(Redaction, WhatFollowsTheNameOfASecretInAListIsRemoved) {
    using nlohmann::json;
    const auto list = [](std::vector<std::string> words) { return json(std::move(words)); };
    EXPECT_EQ(redacted_args(list({"--password=a", "b", "--vfs", "3"})),
              list({"--password=(removed)", "b", "--vfs", "3"}));
    EXPECT_EQ(redacted_args(list({"-p", "a", "-u", "b:c", "d"})),
              list({"-p", "(removed)", "-u", "(removed)", "d"}));
    EXPECT_EQ(redacted_args(list({"-H", "Authorization: Bearer abc", "next"})),
              list({"-H", "Authorization:(removed)", "next"}));
    EXPECT_EQ(redacted_args(list({"--to", "http://a:b@c/"})),
              list({"--to", "http://a:(removed)@c/"}));
}

}  // namespace
}  // namespace vgpu::cli
