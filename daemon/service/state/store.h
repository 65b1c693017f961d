// SPDX-License-Identifier: MIT
//
// StateStore: vgpud's records, in memory and on disk. A StatePort stores one file for each GPU, and
// one for the apply that is under way. Readers see a change only after its file is durable. Each
// file is written under a separate mutex, which readers do not lock. So no GPU waits for another
// GPU's write, and readers never wait for the disk. If the file of a GPU cannot be trusted, that
// GPU is read-only; if the file of the apply cannot be trusted, all GPUs are read-only. Only
// recover() overwrites an untrusted file. After load(), any thread may call every function except
// recover().
#pragma once

#include "daemon/ports/clock.h"
#include "daemon/ports/state_port.h"
#include "daemon/service/config/apply_intent.h"
#include "daemon/service/state/lease_clock.h"
#include "daemon/service/state/records.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vgpu::daemon {

class StateStore {
public:
    /// `clock`: null for tools and tests without claims; there is no lease clock then.
    explicit StateStore(StatePort& port, const Clock* clock = nullptr)
        : port_(port), clock_(clock) {}

    /// Reads the files; writes nothing. Call once, before any other function and before threads
    /// start. Never fails: problems() reports the files that cannot be trusted.
    void load();

    /// The record of one GPU; defaults if there is none.
    [[nodiscard]] GpuRecord gpu(const std::string& id) const;
    /// The settings in a GPU's record. Cheaper than gpu(), which copies the VFs.
    [[nodiscard]] GpuSettings settings(const std::string& id) const;
    /// Copies of the records of all GPUs on record, by GPU id. The GPUs may be absent.
    [[nodiscard]] std::map<std::string, GpuRecord> records() const;
    /// Ids of all GPUs on record.
    [[nodiscard]] std::vector<std::string> gpus() const;
    /// Name of each VF on record, with its GPU id and VF number. A name may occur twice.
    using Names = std::multimap<std::string, std::pair<std::string, std::uint32_t>>;
    [[nodiscard]] Names names() const;
    /// A number that grows with each change of names().
    [[nodiscard]] std::uint64_t names_version() const;
    /// The UUID of the VF that is defined on GPU `id` under this number; none if there is no such
    /// VF.
    [[nodiscard]] std::optional<Uuid> uuid(const std::string& id, std::uint32_t vf) const;
    /// Sum of GpuFile::generation of all GPUs.
    [[nodiscard]] std::uint64_t generation() const;
    /// The apply that is under way, if any.
    [[nodiscard]] std::optional<ApplyIntent> apply() const;
    /// The clock for leases. Requires load() and a clock.
    [[nodiscard]] const LeaseClock& leases() const { return *leases_; }

    /// The key in problems() of a problem that concerns all GPUs.
    static constexpr const char* kAllGpus = "";
    /// By GPU id: why the file of the GPU cannot be trusted. StateCorrupt or StateNewer; the error
    /// names the file.
    [[nodiscard]] const std::map<std::string, Error>& problems() const { return problems_; }
    /// StateReadOnly or StateNewer if this GPU's record cannot be changed; the error names the
    /// file.
    [[nodiscard]] Result<> writable(const std::string& id) const;
    [[nodiscard]] bool is_read_only(const std::string& id) const { return !writable(id); }
    /// True if there is any problem.
    [[nodiscard]] bool is_read_only() const { return !problems_.empty(); }
    /// Text for operators: the problems(), or else why the last write of any file failed; empty if
    /// all is well.
    [[nodiscard]] std::string condition() const;
    /// Makes GPUs with damaged files writable. Keeps each damaged file as NAME.damaged, and
    /// restores the backup copy (NAME.bak) if the copy is intact; otherwise the GPU loses its
    /// record. If the file of the apply is damaged, vgpud does not continue that apply. Returns a
    /// sentence for each solved problem. Call only right after load(); the result counts from the
    /// next load() on. Does not touch the files of a newer vgpud. May be repeated after an
    /// interruption.
    Result<std::vector<std::string>> recover();

    /// Replaces the record of one GPU, and waits until the new record is on disk. Writes nothing if
    /// the record equals the current one. Fails as writable() or with StateNotWritten; gpu() then
    /// returns the old record. If the new record may be on disk nevertheless, the error says so.
    Result<> commit(const std::string& id, const GpuRecord& record);
    /// As commit(), for the apply that is under way; none: the apply has ended.
    Result<> commit_apply(const std::optional<ApplyIntent>& apply);
    /// Writes the reading of the lease clock to this GPU's file, unless the last reading in the
    /// file of any GPU is less than kRecordInterval old. This limits the time by which a reboot
    /// prolongs leases: the time from the last recorded reading to the shutdown. If the write
    /// fails, the next call tries again.
    void record_time(const std::string& id);
    static constexpr UnixTime kRecordInterval{60};

private:
    /// Always: writes the file even if the record is unchanged, to record the lease clock.
    enum class Write { IfChanged, Always };

    [[nodiscard]] Result<GpuFile> read_gpu(const std::string& name, const std::string& id);
    void load_gpu(const std::string& id);
    void load_apply();
    Result<> recover_gpu(const std::string& id);
    [[nodiscard]] std::optional<GpuFile> file(const std::string& id) const;
    [[nodiscard]] std::mutex& write_mutex_of(const std::string& id);
    Result<> commit(const std::string& id, const GpuRecord& record, Write when);
    void roll_back_write(const std::string& name, const std::optional<std::string>& refused,
                         const std::optional<std::string>& old, Error& error);
    void record_result(const Result<>& done);

    StatePort& port_;
    const Clock* clock_;
    std::optional<LeaseClock> leases_;
    std::map<std::string, Error> problems_;  ///< found by load()

    std::mutex apply_write_mutex_;  ///< locked while the file of the apply is written
    mutable std::mutex mutex_;      ///< guards the members below
    std::map<std::string, std::mutex> write_mutexes_;  ///< by GPU; locked while its file is written
    std::map<std::string, GpuFile> files_;
    std::optional<ApplyIntent> apply_;
    std::optional<UnixTime> recorded_time_;  ///< latest recorded reading of the lease clock
    std::uint64_t names_version_ = 0;
    std::string write_failure_;  ///< why the last write failed; empty if it succeeded
};

}  // namespace vgpu::daemon
