// SPDX-License-Identifier: MIT
//
// Exporter: BusFixture with the program vgpu-exporter, and curl to scrape it.
#pragma once

#include "tests/scenario/dbus/bus_fixture.h"
#include "tests/unit/exporter/open_metrics.h"

#include <optional>
#include <string>
#include <vector>

namespace vgpu::daemon::testing {

inline test::Completed curl(const std::string& url, const std::string& accept = "*/*",
                            const std::vector<std::string>& more = {}) {
    std::vector<std::string> command{"/usr/bin/curl",    "-sS", "-i", "--max-time", "20", "-H",
                                     "Accept: " + accept};
    command.insert(command.end(), more.begin(), more.end());
    command.push_back(url);
    return test::run(command);
}

inline std::string body_of(const test::Completed& answer) {
    const std::size_t end = answer.out.find("\r\n\r\n");
    return end == std::string::npos ? "" : answer.out.substr(end + 4);
}

class Exporter : public BusFixture {
protected:
    explicit Exporter(const Setup& setup = {}) : BusFixture(setup) {}

    [[nodiscard]] std::vector<std::string> command() const {
        return {test::program("vgpu-exporter"), "--bus", address, "--listen", "127.0.0.1:0"};
    }
    void start_exporter(std::vector<std::string> before = {}) {
        const auto own = command();
        before.insert(before.end(), own.begin(), own.end());
        exporter.emplace(
            test::ChildProcess::Spec{"vgpu-exporter", before, directory.file("exporter.log")});
        exporter->wait_for_output("/metrics\n");
        const std::string text = exporter->output();
        const std::size_t begin = text.find("http://");
        url = text.substr(begin, text.find("/metrics") - begin);
    }
    /// Waits (bounded) for an answer in which vgpu_up is `up`.
    void wait_for_up(double up) {
        test::wait_for("another vgpu_up", test::milliseconds(10'000), [&] {
            return exporter::testing::OpenMetrics(body_of(curl(url + "/metrics")))
                       .value("vgpu_up", {}) == up;
        });
    }

    std::optional<test::ChildProcess> exporter;
    std::string url;
};

}  // namespace vgpu::daemon::testing
