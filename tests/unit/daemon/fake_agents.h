// SPDX-License-Identifier: MIT
//
// FakeAgentPort: the sockets of agents in memory. What vgpud sends is kept, what an agent says is
// put in by the test. Also the lines of a well-behaved agent.
#pragma once

#include "daemon/ports/agent_port.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace vgpu::daemon::testing {

struct FakeAgentPort final : AgentPort {
    struct Place {
        bool is_accepting = true;
        bool is_cut = false;
        std::string sent;
    };

    Result<> listen(const std::string& path) override {
        if (is_full) return fail(ErrorId::System, path + ": no room");
        places[path] = {};
        return {};
    }
    void close(const std::string& path) override { places.erase(path); }
    void accept_clients(const std::string& path, bool is_accepting) override {
        places[path].is_accepting = is_accepting;
    }
    bool send(const std::string& path, std::string_view bytes) override {
        if (!is_read) return false;
        places[path].sent += bytes;
        return true;
    }
    void disconnect(const std::string& path) override { places[path].is_cut = true; }
    std::vector<AgentInput> take() override { return std::exchange(input, {}); }

    std::map<std::string, Place> places;
    std::vector<AgentInput> input;
    bool is_full = false, is_read = true;
};

inline std::string hello_line(const std::string& welcomed = "true") {
    return R"({"type":"hello","protocol":1,"welcomed":)" + welcomed +
           R"(,"agent":"0.1.0","kernel":"6.12.57","driver":{"name":"amdgpu","version":"",)"
           R"("srcversion":"AB"},"rocr":"1.13.0","vf":{"pci":"0000:00:05.0","unique_id":"1d"}})"
           "\n";
}

inline std::string status_line(const std::string& comm = "matmul") {
    return R"({"type":"status","health":{"driver":"amdgpu","render_node":"/dev/dri/renderD128",)"
           R"("resets":1,"errors":2,"last_error":"oops"},"vram":{"total_bytes":1024,)"
           R"("used_bytes":512},"process_count":40,"processes":[{"pid":412,"comm":")" +
           comm + R"(","vram_bytes":256,"queues":2}],"quiesced":false})" + "\n";
}

inline std::string result_line(int id, const std::string& ok = "true") {
    return R"({"type":"result","id":)" + std::to_string(id) + R"(,"ok":)" + ok +
           R"(,"text":"fine","duration_ms":12})" + "\n";
}

}  // namespace vgpu::daemon::testing
