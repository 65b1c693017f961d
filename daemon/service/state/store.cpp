// SPDX-License-Identifier: MIT
#include "daemon/service/state/store.h"

#include "daemon/service/state/journal.h"
#include "daemon/service/state/recovery.h"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

namespace vgpu::daemon {

namespace {

constexpr std::string_view kMayBeFound =
    "; what was written of it could not be taken back, so a vgpud started before the next change "
    "may find it made";

bool have_same_names(const GpuRecord& a, const GpuRecord& b) {
    return std::equal(a.vfs.begin(), a.vfs.end(), b.vfs.begin(), b.vfs.end(),
                      [](const auto& one, const auto& other) {
                          return one.first == other.first && one.second.name == other.second.name;
                      });
}

Result<StateImage> read_files(StatePort& port) {
    StateImage image{.checkpoint = {},
                     .journal = {},
                     .copy = {},
                     .checkpoint_path = port.where(StateFile::Checkpoint),
                     .journal_path = port.where(StateFile::Journal)};
    TRY(image.checkpoint, port.read(StateFile::Checkpoint));
    TRY(image.journal, port.read(StateFile::Journal));
    // One that cannot be read is none: it is asked for only if the others are damaged.
    if (auto copy = port.read(StateFile::Copy)) image.copy = *std::move(copy);
    return image;
}

}  // namespace

void StateStore::load() {
    const auto image = read_files(port_);
    auto recovered =
        image ? recover(*image) : Result<Recovered>(tl::make_unexpected(image.error()));
    if (!recovered) {
        problem_ = recovered.error();
        message_ = recovered.error().cause;
        if (image && problem_->id == ErrorId::StateCorrupt) show_salvaged(*image);
        if (clock_ != nullptr) leases_.emplace(*clock_, std::nullopt);
        return;
    }
    has_journal_ = image->journal.has_value();
    is_appendable_ = recovered->is_appendable;
    journal_end_ = recovered->journal_end;
    note_ = recovered->note;
    records_ = std::move(recovered->records);
    if (clock_ != nullptr) leases_.emplace(*clock_, records_.lease_time);
}

/// To look at: what is sound keeps its name. An apply that was under way is not gone on with.
/// Nothing is something, too: the files were read, so a new state may begin without them.
void StateStore::show_salvaged(const StateImage& image) {
    is_salvaged_ = true;
    auto salvaged = salvage(image);
    if (!salvaged) {
        message_ += "; nothing of it is sound";
        return;
    }
    message_ += fmt::format("; generation {} is sound and shown", salvaged->generation);
    records_ = *std::move(salvaged);
    records_.apply.reset();
}

/// The copy first: from then on there is one whole sound checkpoint at every moment.
Result<> StateStore::write_salvaged() {
    if (!is_salvaged_) return fail(ErrorId::StateCorrupt, message_);
    TRY_VOID(port_.replace(StateFile::Copy, encode_records(records())));
    problem_.reset();
    message_.clear();
    has_journal_ = is_appendable_ = is_salvaged_ = false;
    Waiting own{.is_for_time = true};
    return commit(own);
}

Records StateStore::records() const {
    const std::scoped_lock lock(records_mutex_);
    return records_;
}

GpuRecord StateStore::gpu(const std::string& id) const {
    const std::scoped_lock lock(records_mutex_);
    const auto at = records_.gpus.find(id);
    return at == records_.gpus.end() ? GpuRecord{} : at->second;
}

std::uint64_t StateStore::generation() const {
    const std::scoped_lock lock(records_mutex_);
    return records_.generation;
}

GpuPolicy StateStore::policy(const std::string& id) const {
    const std::scoped_lock lock(records_mutex_);
    const auto at = records_.gpus.find(id);
    return at == records_.gpus.end() ? GpuPolicy{} : policy_of(at->second);
}

StateStore::Names StateStore::names() const {
    const std::scoped_lock lock(records_mutex_);
    Names names;
    for (const auto& [id, gpu] : records_.gpus)
        for (const auto& [vf, record] : gpu.vfs) names.emplace(record.name, std::pair(id, vf));
    return names;
}

std::uint64_t StateStore::names_version() const {
    const std::scoped_lock lock(records_mutex_);
    return names_version_;
}

std::vector<std::string> StateStore::gpus() const {
    const std::scoped_lock lock(records_mutex_);
    std::vector<std::string> ids;
    for (const auto& [id, gpu] : records_.gpus) ids.push_back(id);
    return ids;
}

std::optional<Uuid> StateStore::uuid(const std::string& id, std::uint32_t vf) const {
    const std::scoped_lock lock(records_mutex_);
    const auto gpu = records_.gpus.find(id);
    if (gpu == records_.gpus.end()) return {};
    const auto at = gpu->second.vfs.find(vf);
    return at == gpu->second.vfs.end() ? std::nullopt : std::optional(at->second.uuid);
}

std::optional<ApplyIntent> StateStore::apply() const {
    const std::scoped_lock lock(records_mutex_);
    return records_.apply;
}

Result<> StateStore::commit(const std::string& gpu_id, const GpuRecord& record) {
    return commit(Changes{{gpu_id, record}});
}

Result<> StateStore::commit(const Changes& changes) {
    Waiting own{.changes = &changes};
    return commit(own);
}

Result<> StateStore::commit_apply(const std::optional<ApplyIntent>& apply) {
    Waiting own{.apply = &apply};
    return commit(own);
}

/// A refusal is told by the changes that are refused, too, and tried again the next time.
void StateStore::note_time() {
    {
        const std::scoped_lock lock(records_mutex_);
        const bool is_noted =
            records_.lease_time && leases_->now() - records_.lease_time->reading < kNoteTime;
        if (is_noted) return;
    }
    Waiting own{.is_for_time = true};
    static_cast<void>(commit(own));
}

Result<> StateStore::commit(Waiting& own) {
    if (is_read_only()) return fail(ErrorId::StateReadOnly, message_);
    std::unique_lock lock(commit_mutex_);
    waiting_.push_back(&own);
    // Whoever finds nobody writing writes for all that wait by then: while it syncs, the next group
    // gathers (group commit). So a commit waits for two writes at most, its own included, however
    // many threads commit.
    written_.wait(lock, [&] { return own.answer.has_value() || !is_writing_; });
    if (!own.answer) write_for(lock);
    return *own.answer;
}

std::size_t StateStore::waiting() {
    const std::scoped_lock lock(commit_mutex_);
    return waiting_.size();
}

/// Writes what all that wait want, in the order they came.
void StateStore::write_for(std::unique_lock<std::mutex>& lock) {
    is_writing_ = true;
    const std::vector<Waiting*> served = std::exchange(waiting_, {});
    lock.unlock();
    Changes together;
    const std::optional<ApplyIntent>* apply = nullptr;
    bool is_for_time = false;
    for (const Waiting* one : served) {
        is_for_time = is_for_time || one->is_for_time;
        if (one->apply != nullptr) apply = one->apply;
        if (one->changes == nullptr) continue;
        for (const auto& [id, record] : *one->changes) together[id] = record;
    }
    const Result<> done = write(change_by(std::move(together), apply, is_for_time));
    lock.lock();
    // One write, one answer: what shares a record shares its fate.
    for (Waiting* one : served) one->answer = done;
    is_writing_ = false;
    written_.notify_all();
}

std::string StateStore::trouble() const {
    if (is_read_only()) return message_;
    const std::scoped_lock lock(records_mutex_);
    return refusal_.empty() ? note_ : refusal_;
}

void StateStore::Change::apply_to(Records& records) && {
    records.generation = generation;
    for (auto& [id, record] : gpus) records.gpus[id] = std::move(record);
    if (apply != nullptr) records.apply = *apply;
    if (time) records.lease_time = time;
}

/// What is as it was already is left out.
StateStore::Change StateStore::change_by(Changes changes, const std::optional<ApplyIntent>* apply,
                                         bool is_for_time) const {
    const std::scoped_lock lock(records_mutex_);
    std::erase_if(changes, [this](const auto& entry) {
        const auto known = records_.gpus.find(entry.first);
        return known != records_.gpus.end() && known->second == entry.second;
    });
    Change change{.generation = records_.generation + 1,
                  .gpus = std::move(changes),
                  .is_for_time = is_for_time};
    if (leases_) change.time = leases_->record();
    if (apply != nullptr && *apply != records_.apply) change.apply = apply;
    change.payload = encode_changes(records_.gpus, change.gpus, change.apply, change.time);
    return change;
}

Result<> StateStore::write(Change change) {
    if (change.gpus.empty() && change.apply == nullptr && !change.is_for_time) return {};
    static_assert(kJournalBytes <= kMaxPayload);
    const bool fits = journal_end_ + change.payload.size() <= kJournalBytes;
    auto done = is_appendable_ && fits ? append(encode_record(change.generation, change.payload))
                                       : checkpoint(change);
    const std::scoped_lock lock(records_mutex_);
    refusal_ = done ? "" : done.error().cause;
    if (!done) return done;
    for (const auto& [id, gpu] : change.gpus)
        if (!have_same_names(records_.gpus[id], gpu)) ++names_version_;
    std::move(change).apply_to(records_);
    return done;
}

Result<> StateStore::append(std::string_view record) {
    auto done = port_.append(journal_end_, record);
    if (done) {
        journal_end_ += record.size();
        return {};
    }
    is_appendable_ = false;
    // The failed record may be whole on disk (a sync can fail after the write): it must not be
    // found by a later start, since its commit was answered as refused.
    if (!port_.cut(journal_end_)) done.error().cause += std::string(kMayBeFound);
    return done;
}

/// The next state as a whole, then a journal that begins after it. The first journal of all comes
/// before the first checkpoint: a checkpoint without a journal is one whose journal was lost.
Result<> StateStore::checkpoint(const Change& change) {
    Records next = records();
    Change(change).apply_to(next);
    is_appendable_ = false;
    if (!has_journal_)
        TRY_VOID(port_.replace(StateFile::Journal, encode_journal_head(generation())));
    has_journal_ = true;
    if (auto done = port_.replace(StateFile::Checkpoint, encode_records(next)); !done) {
        // it may be there all the same: what was refused is not to be found after a restart
        if (!port_.replace(StateFile::Checkpoint, encode_records(records())))
            done.error().cause += std::string(kMayBeFound);
        return done;
    }
    // Nothing depends on it while the checkpoint is sound.
    static_cast<void>(port_.replace(StateFile::Copy, encode_records(next)));
    const std::string head = encode_journal_head(next.generation);
    if (!port_.replace(StateFile::Journal, head)) return {};  // the old one is older, not wrong
    is_appendable_ = true;
    journal_end_ = head.size();
    return {};
}

}  // namespace vgpu::daemon
