// SPDX-License-Identifier: MIT
//
// SriovPf: changes the number of VFs. While VFs are enabled, the PCI core refuses every other
// number except 0 with EBUSY, so vgpud writes 0 first. A write of 0 while a VF is open sleeps until
// the VF is closed, and holds the locks of the PF. So vgpud writes 0 only when every VF is closed
// and has no driver. The steps:
//
//   1. If a VF is not closed, fail with VfsInUse and write nothing.
//   2. Write 0 to sriov_drivers_autoprobe, so that the new VFs get no driver.
//   3. Unbind every VF and check again. If a VF was opened meanwhile, bind the drivers again and
//      fail with VfsInUse.
//   4. Write 0 to sriov_numvfs, call EnableSteps::before_enable(), and write the new number.
//   5. Count the VFs (the links virtfnN), and call EnableSteps::after_enable().
#include "daemon/backend/sriov/pf.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace vgpu::daemon::sriov {

Result<> SriovPf::check_all_closed() {
    const Result<> closed = refuse_open_vfs();
    if (closed) return {};
    return fail(closed.error().id, closed.error().cause + ". Nothing was written");
}

Result<> SriovPf::refuse_open_vfs() {
    TRY(const PfFunction facts, inspect());
    std::vector<std::string> used;
    for (const VfFunction& vf : facts.vfs)
        if (vf.use != VfUse::Closed) used.push_back(describe_use(vf));
    if (used.empty()) return {};
    return fail(ErrorId::VfsInUse,
                fmt::format("all VFs of {} would be disabled and enabled again, but {}", address(),
                            fmt::join(used, ", ")));
}

Result<> SriovPf::set_count(std::uint32_t count, EnableSteps& steps) {
    TRY(const PfFunction facts, inspect());
    if (count > facts.total_vfs)
        return fail(ErrorId::OutOfRange, fmt::format("{} has at most {} VFs, not {}", address(),
                                                     facts.total_vfs, count));
    if (facts.vfs.size() == count) return steps.after_enable(count);
    if (!facts.vfs.empty()) TRY_VOID(disable_all(facts));
    if (count == 0) return {};
    TRY_VOID(write_autoprobe(false));
    TRY_VOID(steps.before_enable(count));
    TRY_VOID(write_count(count));
    return steps.after_enable(count);
}

Result<> SriovPf::disable_all(const PfFunction& facts) {
    TRY_VOID(check_all_closed());
    TRY_VOID(write_autoprobe(false));
    TRY_VOID(unbind_all(facts));
    if (const Result<> closed = refuse_open_vfs(); !closed)
        return rebind_drivers(facts, facts.vfs.size(), closed.error());
    return write_count(0);
}

/// Binds the first `count` VFs to their drivers again. Returns `error`, with the errors of drivers
/// that could not be bound.
tl::unexpected<Error> SriovPf::rebind_drivers(const PfFunction& facts, std::size_t count,
                                              const Error& error) {
    std::string cause = error.cause;
    for (std::size_t i = 0; i < count; ++i) {
        const VfFunction& vf = facts.vfs[i];
        const Result<> again = vf.driver.empty() ? Result<>() : probe(vf, vf.driver);
        if (!again) cause += "; " + again.error().cause;
    }
    return fail(error.id, cause + ". The VFs stay enabled");
}

Result<> SriovPf::unbind_all(const PfFunction& facts) {
    for (std::size_t i = 0; i < facts.vfs.size(); ++i) {
        const Result<> unbound = unbind(facts.vfs[i], TakeFromHost::No);
        if (!unbound) return rebind_drivers(facts, i, unbound.error());
    }
    return {};
}

/// Counts the VFs after the write, because a driver may enable fewer and report success
/// (drivers/pci/iov.c).
Result<> SriovPf::write_count(std::uint32_t count) {
    TRY_VOID(checked(files_.write(pf_path("sriov_numvfs"), fmt::format("{}", count))));
    TRY(const PfFunction facts, inspect());
    if (facts.vfs.size() == count) return {};
    return fail(ErrorId::PfRefused,
                fmt::format("{} has {} VFs after '{}' was written to {}; the kernel's log says why",
                            address(), facts.vfs.size(), count, pf_path("sriov_numvfs")));
}

}  // namespace vgpu::daemon::sriov
