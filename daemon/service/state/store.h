// SPDX-License-Identifier: MIT
//
// StateStore: what vgpud remembers, on disk (StatePort: one file for each GPU, and one for the
// apply that is under way) and in memory, never different: a commit changes what readers see only
// after the file is durable. Each file is written under its own mutex, so no GPU waits for the disk
// of another one, and readers never wait for the disk. A file that cannot be trusted makes its GPU
// read-only, that of the apply all GPUs; it is never written over, except by recover(). After
// load() any thread may call it.
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
    /// Without a clock there is no lease time: for tools and tests that have no claims.
    explicit StateStore(StatePort& port, const Clock* clock = nullptr)
        : port_(port), clock_(clock) {}

    /// Reads the files; writes nothing.
    /// Once, before any other call and before there are threads. Never fails: problems() says what
    /// cannot be trusted.
    void load();

    /// The record of one GPU; a new one has defaults.
    [[nodiscard]] GpuRecord gpu(const std::string& id) const;
    /// As much of a GPU's record as is asked for often: no copy of its VFs.
    [[nodiscard]] GpuPolicy policy(const std::string& id) const;
    /// A copy, by the ids of all GPUs on record, seen or not.
    [[nodiscard]] std::map<std::string, GpuRecord> records() const;
    [[nodiscard]] std::vector<std::string> gpus() const;
    /// Every name that is given to a VF, with its GPU and number, of all GPUs on record; a name may
    /// be there twice.
    using Names = std::multimap<std::string, std::pair<std::string, std::uint32_t>>;
    [[nodiscard]] Names names() const;
    /// Another one when names() has changed.
    [[nodiscard]] std::uint64_t names_version() const;
    /// The UUID of the VF that is defined under this number; nothing if none is.
    [[nodiscard]] std::optional<Uuid> uuid(const std::string& id, std::uint32_t vf) const;
    /// Counts the changes of all GPUs' files.
    [[nodiscard]] std::uint64_t generation() const;
    /// The apply that is under way; nothing: none.
    [[nodiscard]] std::optional<ApplyIntent> apply() const;
    /// The time of leases. After load(), of a store that has a clock.
    [[nodiscard]] const LeaseClock& leases() const { return *leases_; }

    /// The key of problems() that concerns all GPUs.
    static constexpr const char* kAllGpus = "";
    /// What cannot be trusted, by the GPU's id: StateCorrupt or StateNewer with the file.
    [[nodiscard]] const std::map<std::string, Error>& problems() const { return problems_; }
    /// StateReadOnly, with the file, if this GPU cannot be changed.
    [[nodiscard]] Result<> writable(const std::string& id) const;
    [[nodiscard]] bool is_read_only(const std::string& id) const { return !writable(id); }
    /// True if there is any problem.
    [[nodiscard]] bool is_read_only() const { return !problems_.empty(); }
    /// What is to be known of the files: problems(), else why the last change could not be written;
    /// empty if all is well.
    [[nodiscard]] std::string trouble() const;
    /// Makes GPUs with damaged files writable: keeps each damaged file as NAME.damaged, and writes
    /// its copy, if that is sound. Returns a sentence for each problem that it solved.
    /// For a store that has only been loaded; the next load() finds the result. Does not touch the
    /// files of a newer vgpud. A vgpud that is killed meanwhile finds as much the next time.
    Result<std::vector<std::string>> recover();

    /// Replaces the record of one GPU. StateReadOnly or StateNotWritten leave everything as it was.
    /// Blocks for the disk. A record equal to the one in force is success and writes nothing.
    Result<> commit(const std::string& id, const GpuRecord& record);
    /// The same of the apply that is under way (nothing: of its end).
    Result<> commit_apply(const std::optional<ApplyIntent>& apply);
    /// Puts the lease time on record, in this GPU's file, if that was done longer ago than
    /// kNoteTime, or never: what a reboot may add to a lease. It tries again the next time if the
    /// disk refuses.
    void note_time(const std::string& id);
    static constexpr UnixTime kNoteTime{60};

private:
    enum class Write { IfChanged, Always };

    [[nodiscard]] Result<GpuFile> read_gpu(const std::string& name, const std::string& id);
    void load_gpu(const std::string& id);
    void load_apply();
    Result<> recover_gpu(const std::string& id);
    [[nodiscard]] std::optional<GpuFile> file(const std::string& id) const;
    [[nodiscard]] std::mutex& writing(const std::string& id);
    Result<> commit(const std::string& id, const GpuRecord& record, Write when);
    /// Of a write that has failed.
    void take_back(const std::string& name, const std::optional<std::string>& refused,
                   const std::optional<std::string>& old, Error& error);
    void note(const Result<>& done);

    StatePort& port_;
    const Clock* clock_;
    std::optional<LeaseClock> leases_;
    std::map<std::string, Error> problems_;  ///< as load() left them

    std::mutex apply_writing_;
    mutable std::mutex mutex_;  ///< of all that follow
    std::map<std::string, std::mutex> writing_;
    std::map<std::string, GpuFile> files_;
    std::optional<ApplyIntent> apply_;
    std::optional<UnixTime> noted_;  ///< the latest lease time on record
    std::uint64_t names_version_ = 0;
    std::string refusal_;  ///< of the last change; empty: it was written
};

}  // namespace vgpu::daemon
