// SPDX-License-Identifier: MIT
//
// Exploration: the real PF core with two VFs on a ModelGpu, through everything that may happen, to
// a bound. Between two steps of the device or the core's timer any act may come: an event of a VF
// (adversity.h), work, another run table, a client that reads its stream, and once in a path a
// fault. Each act is tried at each step after the one before, until a state comes that was met with
// as many acts left. States are compared by what decides how they continue (digest()): times are
// relative and in steps of a factor of two, numbers that only count and lags are left out. Two
// states that differ in nothing else are taken for one, so the exploration is exhaustive up to
// that.
//
// In each state: what check_engine() demands, no impossible transition, no call from a service into
// the core, no VF with work off the engine beyond its gap. From each state, without further acts:
// all requests are answered in time, and nothing is pending.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/unit/core/adversity.h"

namespace vgpu::test {

class Exploration {
public:
    /// Where paths begin.
    struct Root {
        const char* name;
        void (*prepare)(Adversity& world);
    };
    struct Act {
        std::string name;
        void (*happen)(Adversity& world, std::uint32_t vf);
        std::uint32_t vf;
        bool is_fault;
        bool is_short;  ///< tried unless the bound is whole, too
    };
    struct Bound {
        std::uint32_t acts;      ///< in a path, besides a fault
        bool is_whole;           ///< acts on both VFs, and all faults
        bool has_faults = true;  ///< one fault in a path, or none
    };
    [[nodiscard]] static const std::vector<Root>& roots();
    [[nodiscard]] static const std::vector<Act>& acts();

    explicit Exploration(Bound bound) : bound_(bound) {}
    /// Tries all paths from a root.
    void explore(const Root& root);

    std::uint64_t states = 0;        ///< different ones
    std::uint64_t transitions = 0;   ///< steps and acts
    std::vector<std::string> wrong;  ///< paths, with what is wrong at their ends

private:
    /// Of a path: what is not in the Adversity.
    struct Path {
        std::uint32_t acts_left = 0;
        bool had_fault = false;
        std::uint64_t since[3] = {};  ///< by VF: begin of its wait for the engine; 0: none
        std::uint64_t acted_at = 0;
        std::string text;
    };

    void follow(Path path);
    void branch(const Path& path);
    [[nodiscard]] bool may_fail(const Path& path) const {
        return bound_.has_faults && !path.had_fault;
    }
    [[nodiscard]] bool is_new(std::uint64_t state, const Path& path);
    bool help(Path& path);
    [[nodiscard]] std::string check_rest();
    [[nodiscard]] std::uint64_t digest(const Path& path);
    void step(Path& path);
    [[nodiscard]] std::string check(Path& path);
    [[nodiscard]] std::string check_waits(Path& path);
    void report(const Path& path, const std::string& what);

    const Bound bound_;
    Adversity* world_ = nullptr;
    /// Acts left + 1, by digest.
    std::unordered_map<std::uint64_t, std::uint32_t> seen_;
};

}  // namespace vgpu::test
