// SPDX-License-Identifier: MIT
//
// XeAdmin: access to the sysfs files below <PF>/sriov_admin of Linux' xe driver. These files set
// VRAM, quanta and time-outs of VFs, and stop VFs
// (Documentation/ABI/testing/sysfs-driver-intel-xe-sriov). Level says which of these settings the
// driver offers. Distributions backport the files, so the level follows from the writable files,
// and not from the version of the kernel:
//
//   None      no such file (6.17, 6.18): only the number of VFs
//   Schedule  vfN/profile/exec_quantum_ms (6.19)
//   Vram      also vfN/profile/vram_quota (7.0)
//
// A written value is in force at once. It is lost when VFs are disabled or the driver is loaded
// again. XeAdmin reads each written quota, quantum and time-out back, because the driver rounds and
// clamps. A write may wait for the firmware for seconds, so only the GPU's thread calls this class.
#pragma once

#include "daemon/backend/sriov/sysfs.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vgpu::daemon::xe {

enum class Level { None, Schedule, Vram };
/// "none", "schedule", "vram"
[[nodiscard]] std::string_view name_of(Level level);

/// Quantum and preempt time-out of a function (backend/quanta.h). 0 means unlimited: the function
/// can then keep all other functions from the GPU.
struct Timing {
    std::uint32_t quantum_ms = 0;
    std::uint32_t preempt_timeout_us = 0;

    bool operator==(const Timing&) const = default;
};

/// The largest values that the driver accepts.
inline constexpr std::uint32_t kMaxQuantumMs = 100'000, kMaxPreemptTimeoutUs = 100'000'000;

class XeAdmin {
public:
    XeAdmin(sriov::Sysfs& files, std::string pf_address)
        : files_(files), address_(std::move(pf_address)) {}

    [[nodiscard]] Level level() const;
    /// The unit of VRAM quotas, in bytes: 2 MiB for each tile of the GPU.
    [[nodiscard]] std::uint64_t vram_unit() const;

    /// The largest size that the BAR of the VRAM can have; 0 if there is no such BAR. xe has no
    /// file with the size of the VRAM, and the BAR is smaller than the VRAM if the host's firmware
    /// gives it too little room. The largest BAR covers the whole VRAM, rounded up to a power of
    /// two. So the driver may refuse quotas even if their sum is smaller. Wakes a sleeping GPU.
    Result<std::uint64_t> largest_vram_bar() const;
    /// The VRAM quota in bytes, 0 for no VRAM; none if there is no file vram_quota.
    /// PfRefused if the tiles of the GPU have different quotas (EUCLEAN).
    Result<std::optional<std::uint64_t>> vram(std::uint32_t vf) const;
    /// Gives a closed VF `bytes` of VRAM, rounded up to vram_unit(); 0 frees its VRAM. The driver
    /// does not clear the memory: reset the VF before its next user. Returns the quota in force.
    /// NotOffered unless level() is Vram; PfRefused, with the driver's reason, for example if there
    /// is too little VRAM.
    Result<std::uint64_t> set_vram(std::uint32_t vf, std::uint64_t bytes);

    /// Frees the VRAM of the VFs with numbers above `count`. The driver reserves the quota of a VF
    /// even if the VF is not enabled.
    Result<> free_vram_above(std::uint32_t count);

    /// The timing that the driver reports. `function`: 0 is the PF, else a VF.
    Result<Timing> timing(std::uint32_t function) const;
    /// Writes the values that differ. PfRefused if another value is read back.
    Result<> set_timing(std::uint32_t function, const Timing& requested);

    /// True if the engine idles during the quantum of an idle VF, because the scheduling priority
    /// is "normal", not "low". The priority is a setting of the GPU, not of a VF.
    Result<bool> is_strict() const;
    /// Sets the priority to "low", if is_strict().
    Result<> end_strict();

    /// Ends the work of a running VF. The VF stays stopped until it is reset.
    Result<> stop(std::uint32_t vf);

private:
    /// The size that the BAR of the VRAM has now; 0 if there is no such BAR.
    Result<std::uint64_t> vram_bar() const;
    [[nodiscard]] std::string path(std::string_view file) const;
    [[nodiscard]] std::string profile_path(std::uint32_t function, std::string_view file) const;
    Result<std::uint64_t> read(const std::string& file, std::uint64_t max) const;
    /// Writes `requested` unless the file has it already. PfRefused if another value is read back.
    Result<> write_checked(const std::string& file, std::uint64_t requested);

    sriov::Sysfs& files_;
    const std::string address_;
};

}  // namespace vgpu::daemon::xe
