// SPDX-License-Identifier: MIT
//
// ErrorPath: raises every row of errors.def with the real vgpud, by one function for each row, and
// returns how the error was reported. A row without a function does not compile, except rows that
// need a GPU of a vendor's driver (tests/unit/daemon/backend_test.cpp, tests/unit/backend). Used by
// error_paths_test.cpp; the functions are in error_requests.cpp and error_service.cpp.
#pragma once

#include "daemon/ports/result.h"
#include "tests/scenario/dbus/advised.h"
#include "tests/scenario/dbus/fake_authority.h"

#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::daemon::testing {

using Dict = std::map<std::string, sdbus::Variant>;
using Words = std::vector<std::string>;

/// Generous: a healthy answer takes milliseconds.
inline constexpr test::milliseconds kPrompt = std::chrono::seconds(20);

/// How an error was reported: by a reply (with its name), or only as text (a log, a notice).
struct Told {
    std::string name, text;
    std::optional<test::Completed> ctl{};  ///< vgpuctl with the same error; none: not possible
};

/// The error that a call is answered with.
template <typename Call> Told told_by(const Call& call) {
    try {
        call();
    } catch (const sdbus::Error& error) {
        return {.name = error.getName(), .text = error.getMessage()};
    }
    return {.name = "none", .text = "it was done"};
}

/// A configuration with 1 VF 'train', or with 17 VFs.
std::string document(const std::string& vram, int vfs);
std::string text_of_file(const std::string& path);

inline constexpr const char* kTrain = "/org/vgpu1/gpu/gpu0/vf/1";

class ErrorPath : public Advised, public ::testing::WithParamInterface<ErrorRow> {
public:
#define DAEMON_ERROR(name, number, fix) Told raise_##name();
#define DRIVER_ERROR(name, number, fix)
#include "daemon/ports/errors.def"
#undef DAEMON_ERROR

protected:
    ErrorPath()
        : Advised(Setup{.gpus = "",
                        .bus_policy = fake_authority_rules(),
                        .authority = "",
                        .start = Setup::Start::Later}) {
        polkit.emplace(connect());
        polkit->say(true);
        start_daemon();
        client = connect();
    }

    Told call(const std::string& path, const std::string& interface, const std::string& method,
              const auto&... arguments) const {
        return told_by([&] {
            const auto object = sdbus::createProxy(*client, "org.vgpu1", path);
            object->finishRegistration();
            object->callMethod(method)
                .onInterface("org.vgpu1." + interface)
                .withArguments(arguments...);
        });
    }
    Told manager(const std::string& method, const auto&... arguments) const {
        return call("/org/vgpu1", "Manager", method, arguments...);
    }
    Told train(const std::string& method, const auto&... arguments) const {
        return call(kTrain, "Vf", method, arguments...);
    }
    /// The error of a job of train, which its method does not answer with.
    Told train_job(const std::string& method, const Dict& options) {
        const std::string job = begin_job(*client, kTrain, method, options);
        test::wait_for("the job to fail", kPrompt,
                       [&] { return job_property(job, "State") == "failed"; });
        return {.name = job_property(job, "ErrorName"), .text = job_property(job, "Error")};
    }
    Told create(const Dict& options) const {
        return manager("CreateVf", std::string("gpu0"), options);
    }
    /// Creates train with 64 MiB.
    void make_train() const {
        ASSERT_EQ(ctl({"create", "--name", "train", "--vram", "64M"}).status, 0);
    }
    [[nodiscard]] Told with_ctl(Told told, const Words& words) const {
        told.ctl = ctl(words);
        return told;
    }
    /// Plans `text` on D-Bus and with vgpuctl; `words` follow the file's name.
    [[nodiscard]] Told plan(const std::string& text, const Dict& options = {},
                            const Words& words = {}) const {
        const std::string file = directory.file("wanted.json");
        std::ofstream(file) << text;
        Words all{"plan", file};
        all.insert(all.end(), words.begin(), words.end());
        return with_ctl(manager("Plan", text, options), all);
    }
    /// A job that resizes train and waits for its scrub.
    [[nodiscard]] std::string start_job() {
        make_train();
        server.with([](FakePf& pf) { pf.holds_scrubs = true; });
        const auto proxy = sdbus::createProxy(*client, "org.vgpu1", "/org/vgpu1");
        proxy->finishRegistration();
        sdbus::ObjectPath job;
        proxy->callMethod("Apply")
            .onInterface("org.vgpu1.Manager")
            .withArguments(document("128MiB", 1), Dict{})
            .storeResultsTo(job);
        test::wait_for("train to be released", kPrompt, [&] {
            return ctl_json({"show", "train"}).at("vf").at("state") == "scrubbing";
        });
        return job;
    }
    [[nodiscard]] std::string job_property(const std::string& job, const std::string& name) const {
        const auto proxy = sdbus::createProxy(*client, "org.vgpu1", job);
        proxy->finishRegistration();
        return proxy->getProperty(name).onInterface("org.vgpu1.Job").get<std::string>();
    }
    void end_scrub() {
        server.with([](FakePf& pf) {
            pf.holds_scrubs = false;
            pf.finish_scrub(1);
        });
    }
    /// Restarts the PF core, changed by `change`.
    void come_back(const std::string& state, const std::function<void(FakePf&)>& change) {
        server.stop();
        server.with(change);
        server.start();
        wait_for_gpu_state(state);
    }
    [[nodiscard]] std::string state_file() const {
        return directory.file("state/gpus/gpu0.json");
    }
    /// Restarts vgpud with the state file `text`; its log then says what is wrong.
    void start_on_state(const std::string& text) {
        vgpud->kill_now();
        std::ofstream(state_file()) << text;
        start_daemon();
    }

    std::optional<FakeAuthority> polkit;
    std::unique_ptr<sdbus::IConnection> client;
};

}  // namespace vgpu::daemon::testing
