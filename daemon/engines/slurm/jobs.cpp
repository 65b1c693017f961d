// SPDX-License-Identifier: MIT
#include "daemon/engines/slurm/jobs.h"

#include "daemon/engines/slurm/health.h"
#include "text/number.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>

namespace vgpu::slurm {

namespace {

std::string prefix_of(const std::string& cluster) {
    return fmt::format("slurm:{}:", cluster);
}

/// True if the error is a lack of free VFs, so that another host may serve the job.
bool is_lack_of_vfs(ErrorId id) {
    return id == ErrorId::NoMatchingVf || id == ErrorId::Claimed || id == ErrorId::WrongState;
}

}  // namespace

std::string owner_of(const JobReference& job) {
    return fmt::format("{}{}.{}", prefix_of(job.cluster), job.id, job.life);
}

std::optional<JobLife> life_of(const std::string& owner, const std::string& cluster) {
    const std::string prefix = prefix_of(cluster);
    const std::size_t dot = owner.rfind('.');
    if (!owner.starts_with(prefix) || dot == std::string::npos || dot < prefix.size()) return {};
    const auto life = text::number_in<std::uint32_t>(std::string_view(owner).substr(dot + 1));
    if (!life) return {};
    JobLife job{.id = owner.substr(prefix.size(), dot - prefix.size()), .life = *life};
    // another spelling of the life, such as "17.00", is not an owner of this bridge
    const bool is_canonical =
        owner_of({.cluster = cluster, .id = job.id, .life = job.life}) == owner;
    return is_canonical ? std::optional(std::move(job)) : std::nullopt;
}

std::string device_of(const std::string& socket) {
    return fmt::format(R"({{"driver":"vfio-user-pci","socket":{{"type":"unix","path":"{}"}}}})",
                       socket);
}

/// Claims the VFs for the life that slurmctld reports, because the environment of a step may name
/// an earlier life. If a job is requeued and its host goes down before Slurm knows that the job has
/// ended there, Slurm 22.05 starts the job again without its GRES. assign() then returns
/// NoMatchingVf, so that prolog() requeues the job once more; the next start has the GRES.
Result<std::vector<AssignedVf>> Jobs::assign(const JobReference& job) {
    TRY(const Job known, slurm_.job(job.id));
    if (known.vfs.empty() && known.has_asked_for_vfs)
        return fail(ErrorId::NoMatchingVf,
                    "Slurm started the job without the VFs that it asked for");
    if (known.vfs.empty()) return std::vector<AssignedVf>{};
    return vgpud_.assign(owner_of({.cluster = job.cluster, .id = job.id, .life = known.life}),
                         profiles_of(known.vfs), known.user);
}

Outcome Jobs::prolog(const JobReference& job) {
    const auto given = assign(job);
    if (!given) return refuse(job, given.error());
    return {};
}

/// Handles a failed prolog. The values that Health has published may be wrong, so the next health
/// check publishes them again, and resumes the host if refuse() has drained it.
Outcome Jobs::refuse(const JobReference& job, const Error& error) {
    const std::string reason = std::string(kReasonPrefix) + error.cause;
    const bool is_at_fault =
        error.id == ErrorId::BadConfiguration || error.id == ErrorId::OutOfRange;
    published_.forget();
    if (is_at_fault || is_lack_of_vfs(error.id)) {
        const auto sent = is_at_fault ? slurm_.hold(job.id, reason) : slurm_.requeue(job.id);
        if (sent)
            return {.status = kDone,
                    .log = fmt::format("job {} is {}: {}", job.id,
                                       is_at_fault ? "held" : "requeued", error.cause),
                    .out = ""};
        // Slurm requeues neither a job of srun or salloc, nor one with --no-requeue, nor a job that
        // another of its hosts has requeued.
        if (slurm_.cancel(job.id, reason))
            return {.status = kDone,
                    .log = fmt::format("job {} is stopped: {}; {}", job.id, error.cause,
                                       sent.error().cause),
                    .out = ""};
    }
    // After a failed prolog, Slurm drains the host with a general reason, unless a reason is
    // already set. So refuse() sets a detailed reason first. refuse() must not replace an
    // operator's reason with a reason that begins with kReasonPrefix, because the health check
    // would then resume the host.
    const auto node = slurm_.this_node();
    if (node && !node->is_drained) static_cast<void>(slurm_.drain(reason));
    return {.status = kFailed, .log = error.cause, .out = ""};
}

Outcome Jobs::ensure(const JobReference& job) {
    const auto given = assign(job);
    if (given) return {};
    return {.status = kFailed, .log = given.error().cause, .out = ""};
}

Outcome Jobs::task(const JobReference& job) {
    const auto claims = vgpud_.claims();
    const std::string owner = owner_of(job);
    const auto count = claims ? std::ranges::count(*claims, owner, &Claim::owner) : 0;
    Outcome outcome;
    for (int n = 0; n < count; ++n)
        outcome.out +=
            fmt::format("export VGPU_SOCKET_{0}={1}/owner/{2}/{0}.sock\n", n, run_dir_, owner);
    // A job inherits the variables of the job that submitted it. run() in main.cpp stops at the
    // first variable that is not set.
    outcome.out += fmt::format("unset VGPU_SOCKET_{}\n", count);
    if (count > 0) return outcome;
    const auto known = slurm_.job(job.id);
    if (!known) return {.status = kFailed, .log = known.error().cause, .out = ""};
    if (known->vfs.empty() && !known->has_asked_for_vfs) return outcome;
    return {
        .status = kFailed,
        .log = fmt::format("job {} has no VF on {}: {}", job.id, slurm_.node(),
                           claims ? fmt::format("'{}' owns none", owner) : claims.error().cause),
        .out = ""};
}

/// True if `life` of the job has ended. The epilog names the life `job.life`, and `life` <=
/// `job.life`. If `life` < `job.life`, `life` has ended. If the two are equal, either `life` has
/// ended, or this is the late epilog of the life before: the epilog of a requeued job names the
/// next life. If the two are 0, there is no life before, so `life` has ended. `is_open`: true if a
/// client has a VF of `life` open.
Result<bool> Jobs::is_over(const JobReference& job, std::uint32_t life, bool is_open) {
    if (life < job.life || job.life == 0) return true;
    if (is_open) return false;
    TRY(const auto steps, slurm_.steps());
    if (steps.contains(job.id)) return false;
    TRY(const Job known, slurm_.job(job.id));
    const bool is_running = known.state == "RUNNING" || known.state == "CONFIGURING" ||
                            known.state == "SUSPENDED" || known.state == "STOPPED";
    return !(is_running && known.life == life && known.is_here);
}

Outcome Jobs::epilog(const JobReference& job) {
    const auto claims = vgpud_.claims();
    if (!claims) return {.status = kDone, .log = claims.error().cause, .out = ""};
    std::map<std::string, bool> open_of_owner;
    for (const Claim& claim : *claims) open_of_owner[claim.owner] |= claim.is_open;
    Outcome outcome;
    for (const auto& [owner, is_open] : open_of_owner) {
        const auto life = life_of(owner, job.cluster);
        if (!life || life->id != job.id || life->life > job.life) continue;
        const auto over = is_over(job, life->life, is_open);
        if (!over) outcome.log = over.error().cause;
        if (!over || !*over) continue;
        if (const auto ended = vgpud_.unassign(owner); !ended) outcome.log = ended.error().cause;
    }
    return outcome;
}

}  // namespace vgpu::slurm
