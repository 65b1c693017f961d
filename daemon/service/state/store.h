// SPDX-License-Identifier: MIT
//
// StateStore: Records on disk (StatePort: a checkpoint and a journal of changes since) and in
// memory, never different: commit() changes what records() returns only after the change is
// durable. Commits that come while another one is being written go to disk together, in one record
// and one sync. After a write that failed the journal's end is not trusted: the next commit begins
// with a new checkpoint. Files that cannot be trusted make the store read-only with a message; they
// are never reset. After load() any thread may call it: readers never wait for the disk.
//
//   commit --> waiting --> one of them writes all: append a record, or (journal long, or its end
//              not known) checkpoint + new journal --> records() --> all are answered
#pragma once

#include "daemon/ports/clock.h"
#include "daemon/ports/state_port.h"
#include "daemon/service/state/lease_clock.h"
#include "daemon/service/state/record_json.h"
#include "daemon/service/state/records.h"
#include "daemon/service/state/recovery.h"

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vgpu::daemon {

class StateStore {
public:
    /// A journal longer than that is followed by a new checkpoint. Every start reads all of it; a
    /// record has a few hundred bytes, a checkpoint costs as much as a few changes.
    static constexpr std::uint64_t kJournalBytes = StatePort::kJournalBytes;

    /// Without a clock there is no lease time: for tools and tests that have no claims.
    explicit StateStore(StatePort& port, const Clock* clock = nullptr)
        : port_(port), clock_(clock) {}

    /// Reads the files; afterwards either records() are their content or is_read_only(). Writes
    /// nothing.
    /// Once, before any other call and before there are threads. Never fails: a problem makes the
    /// store read-only, and its note() or message() says so.
    void load();

    /// A copy, of one generation. Does not wait for a commit that is being written.
    [[nodiscard]] Records records() const;
    /// The record of one GPU; a new one has defaults.
    [[nodiscard]] GpuRecord gpu(const std::string& id) const;
    /// Of records().
    [[nodiscard]] std::uint64_t generation() const;
    /// As much of a GPU's record as is asked for often: no copy of its VFs.
    [[nodiscard]] GpuPolicy policy(const std::string& id) const;
    /// Every name that is given to a VF, with its GPU and number, of all GPUs on record, seen or
    /// not; a name may be there twice.
    using Names = std::multimap<std::string, std::pair<std::string, std::uint32_t>>;
    [[nodiscard]] Names names() const;
    /// Another one when names() has changed.
    [[nodiscard]] std::uint64_t names_version() const;
    /// Ids of all GPUs on record.
    [[nodiscard]] std::vector<std::string> gpus() const;
    /// The UUID of the VF that is defined under this number; nothing if none is.
    [[nodiscard]] std::optional<Uuid> uuid(const std::string& id, std::uint32_t vf) const;
    [[nodiscard]] bool is_read_only() const { return problem_.has_value(); }
    /// It is read-only, and records() are what is sound of damaged files, which may be nothing.
    [[nodiscard]] bool is_salvaged() const { return is_salvaged_; }
    /// Writes that as a new state, so that the store can be changed again. The files must have been
    /// kept elsewhere. A store that is killed meanwhile finds as much the next time.
    Result<> write_salvaged();
    /// Why it is read-only; empty if it is not.
    [[nodiscard]] const std::string& message() const { return message_; }
    [[nodiscard]] const std::optional<Error>& problem() const { return problem_; }
    /// What load() found odd but could mend; empty if nothing.
    [[nodiscard]] const std::string& note() const { return note_; }
    /// What is to be known of the files: why they are read-only, else why the last change could not
    /// be written, else note(); empty if all is well.
    [[nodiscard]] std::string trouble() const;

    /// Replaces the record of one GPU. StateReadOnly or StateNotWritten leave everything as it was.
    /// On disk when it returns success (fdatasync or rename and fsync); not in records() before
    /// that. Blocks for the disk, also for another thread's commit. A record equal to the one in
    /// force is success and writes nothing.
    Result<> commit(const std::string& gpu_id, const GpuRecord& record);
    /// Replaces the records of several GPUs, all or none.
    /// One journal record, so also after a crash all or none.
    Result<> commit(const Changes& changes);
    /// The apply that is under way; nothing: none.
    [[nodiscard]] std::optional<ApplyIntent> apply() const;
    /// The same as commit(), of the apply that is under way (nothing: of its end).
    Result<> commit_apply(const std::optional<ApplyIntent>& apply);
    /// The time of leases. After load(), of a store that has a clock.
    [[nodiscard]] const LeaseClock& leases() const { return *leases_; }
    /// Puts the lease time on record if that was done longer ago than kNoteTime, or never.
    /// What a reboot may add to a lease.
    void note_time();
    static constexpr UnixTime kNoteTime{60};
    /// Commits that wait until the one being written is done.
    [[nodiscard]] std::size_t waiting();

private:
    /// One commit(), on the stack of its thread until it is answered.
    struct Waiting {
        const Changes* changes = nullptr;
        const std::optional<ApplyIntent>* apply = nullptr;  ///< null: as it is
        bool is_for_time = false;
        std::optional<Result<>> answer{};
    };

    /// What the next generation has that this one has not.
    struct Change {
        std::uint64_t generation = 0;
        Changes gpus{};
        const std::optional<ApplyIntent>* apply = nullptr;  ///< null: as it is
        std::optional<LeaseTime> time{};
        bool is_for_time = false;  ///< also if nothing else is to be written
        std::string payload{};     ///< as a record of the journal has it

        void apply_to(Records& records) &&;
    };
    [[nodiscard]] Change change_by(Changes changes, const std::optional<ApplyIntent>* apply,
                                   bool is_for_time) const;

    void show_salvaged(const StateImage& image);
    Result<> commit(Waiting& own);
    /// Called with the lock; writes without it, so that others can come to wait.
    void write_for(std::unique_lock<std::mutex>& lock);
    Result<> write(Change change);
    /// After a failure the journal's end is not trusted: the next write is a checkpoint.
    Result<> append(std::string_view record);
    Result<> checkpoint(const Change& change);

    StatePort& port_;
    const Clock* clock_;
    std::optional<LeaseClock> leases_;
    std::optional<Error> problem_;
    bool is_salvaged_ = false;
    std::string message_;
    std::string note_;

    std::mutex commit_mutex_;  ///< of the next three
    std::condition_variable written_;
    std::vector<Waiting*> waiting_;
    bool is_writing_ = false;

    // of the thread that set is_writing_
    bool has_journal_ = false;
    bool is_appendable_ = false;  ///< the journal's end is known and sound
    std::uint64_t journal_end_ = 0;

    mutable std::mutex records_mutex_;  ///< of the next three
    Records records_;
    std::uint64_t names_version_ = 0;
    std::string refusal_;  ///< of the last change; empty: it was written
};

}  // namespace vgpu::daemon
