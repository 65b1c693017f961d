// SPDX-License-Identifier: MIT
//
// Fuzzes what vgpu-slurm reads: the output of Slurm's programs, with names and paths that users
// choose. The first byte of the input says which output the rest is. For any input, an error has a
// short text, a GRES list that is written is read with the same numbers, and an owner belongs to
// one job.
#include "daemon/engines/slurm/jobs.h"
#include "daemon/engines/slurm/texts.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace {

using namespace vgpu::slurm;

constexpr const char* kNode = "n017";
constexpr std::size_t kFewWords = 2'000;

void require(bool is_true) {
    if (!is_true) std::abort();
}

template <typename T> bool is_read(const vgpu::daemon::Result<T>& result, std::size_t bytes) {
    if (!result) require(!result.error().cause.empty());
    if (!result) require(result.error().cause.size() < kFewWords + bytes);
    return result.has_value();
}

void check_gres(const std::string& text) {
    const auto counts = read_gres(text);
    if (!is_read(counts, text.size())) return;
    std::size_t vfs = 0;
    for (const auto& [profile, count] : *counts) vfs += count;
    require(profiles_of(*counts).size() == vfs);
    const std::string written = with_counts(text, *counts);
    const auto again = read_gres(written);
    require(again.has_value() && *again == *counts);
    require(with_counts(written, *counts) == written);
    require(!configuration_of(kNode, *counts).empty());
}

void check_job(const std::string& text) {
    const std::string rest = text.substr(std::min(text.find('=') + 1, text.size()));
    const std::string id = rest.substr(0, rest.find_first_not_of("0123456789"));
    const auto job = read_job(text, id, kNode);
    if (!is_read(job, text.size())) return;
    require(job->state.find_first_of(" \t\r\n") == std::string::npos);
    for (const auto& [profile, count] : job->vfs) require(!profile.empty());
}

void check_queue(const std::string& text) {
    const auto jobs = read_queue(text);
    if (!is_read(jobs, text.size())) return;
    for (const JobLife& job : *jobs) {
        const auto life =
            life_of(owner_of({.cluster = "lab", .id = job.id, .life = job.life}), "lab");
        require(life.has_value() && *life == job);
    }
}

void check_node(const std::string& text) {
    const auto node = read_node(text);
    if (is_read(node, text.size())) require(node->reason.find('\n') == std::string::npos);
}

void check_steps(const std::string& text) {
    const auto steps = read_steps(text);
    if (!is_read(steps, text.size())) return;
    for (const std::string& id : *steps) require(!id.empty());
}

void check_names(const std::string& text) {
    static_cast<void>(is_in(text, kNode));
    const auto cluster = cluster_in(text);
    require(!cluster || !cluster->empty());
    const auto life = life_of(text, "lab");
    if (life) require(owner_of({.cluster = "lab", .id = life->id, .life = life->life}) == text);
}

constexpr std::array kChecks{check_gres, check_job,   check_queue,
                             check_node, check_steps, check_names};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    std::string text;
    text.assign(data + 1, data + size);
    kChecks[data[0] % kChecks.size()](text);
    return 0;
}
