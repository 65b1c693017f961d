// SPDX-License-Identifier: MIT
#include "tests/bench/peers/worker.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace vgpu::test {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

/// A request of compare.py.
struct Request {
    std::string workload;
    std::uint32_t size = 0;
    std::uint32_t runs = 1;
    bool operator==(const Request&) const = default;
};

Request request_of(const std::string& line) {
    const auto json = Json::parse(line);
    return {json.at("workload"), json.at("size"), json.at("runs")};
}

const WorkloadKind& kind_of(const std::string& name) {
    const auto& kinds = workload_kinds();
    const auto found = std::ranges::find(kinds, name, &WorkloadKind::name);
    if (found == kinds.end()) throw std::invalid_argument("no workload is called " + name);
    return *found;
}

class Desk {
public:
    explicit Desk(Machine& machine) : machine_(machine) {}

    Json answer(const std::string& line) {
        const auto request = request_of(line);
        prepare(request);
        machine_.refill(workload_);
        const auto before = machine_.wave_instructions();
        const auto start = Clock::now();
        machine_.run(request.runs);
        const std::chrono::duration<double> spent = Clock::now() - start;
        Json out{{"seconds", spent.count()},
                 {"work", workload_.work * request.runs},
                 {"wrong_words", wrong_words(workload_, machine_.output())}};
        if (before) out["wave_instructions"] = *machine_.wave_instructions() - *before;
        return out;
    }

private:
    /// A new kernel runs once before it is measured, because some implementations compile it then.
    void prepare(const Request& request) {
        if (request == placed_) return;
        workload_ = kind_of(request.workload).make(request.size, request.runs);
        const bool is_new = request.workload != placed_.workload || request.size != placed_.size;
        placed_ = {};
        if (is_new) {
            machine_.place(workload_);
            machine_.refill(workload_);
            machine_.run(1);
        }
        placed_ = request;
    }

    Machine& machine_;
    Request placed_;
    Workload workload_;
};

Json greeting(const Machine& machine) {
    Json workloads = Json::array();
    for (const auto& kind : workload_kinds())
        workloads.push_back({{"name", kind.name}, {"unit", kind.unit}, {"sizes", kind.sizes}});
    return {{"ready", machine.description()}, {"workloads", std::move(workloads)}};
}

}  // namespace

int serve(Machine& machine) {
    Desk desk(machine);
    std::cout << greeting(machine).dump() << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
        Json answer;
        try {
            answer = desk.answer(line);
        } catch (const std::exception& error) {
            answer = {{"error", error.what()}};
        }
        std::cout << answer.dump() << std::endl;
    }
    return 0;
}

}  // namespace vgpu::test
