// SPDX-License-Identifier: MIT
#include "daemon/service/state/store.h"

#include "daemon/service/state/record_json.h"
#include "daemon/service/words.h"

#include <fmt/format.h>
#include <algorithm>
#include <set>
#include <utility>

namespace vgpu::daemon {

namespace {

constexpr std::string_view kGpus = "gpus/", kJson = ".json";
constexpr const char* kCopy = ".bak";
constexpr const char* kDamaged = ".damaged";
constexpr const char* kApply = "apply.json";
constexpr std::string_view kMayBeFound =
    "; the written file could not be rolled back, so a vgpud that starts before the next change "
    "may find this change made";

/// Name of the state file of a GPU. A GPU's id is a valid name, so it has no slash.
std::string name_of(const std::string& id) {
    return fmt::format("{}{}{}", kGpus, id, kJson);
}

/// Ids of all GPUs that have a state file or a copy of it. Ignores temporary files and *.damaged.
std::set<std::string> ids_of(const std::vector<std::string>& names) {
    std::set<std::string> ids;
    for (std::string_view name : names) {
        if (name.ends_with(kCopy)) name.remove_suffix(std::string_view(kCopy).size());
        if (!name.starts_with(kGpus) || !name.ends_with(kJson)) continue;
        name.remove_prefix(kGpus.size());
        name.remove_suffix(kJson.size());
        if (is_valid_name(name)) ids.emplace(name);
    }
    return ids;
}

bool have_same_names(const GpuRecord& a, const GpuRecord& b) {
    return std::equal(a.vfs.begin(), a.vfs.end(), b.vfs.begin(), b.vfs.end(),
                      [](const auto& one, const auto& other) {
                          return one.first == other.first &&
                                 one.second.spec.name == other.second.spec.name;
                      });
}

std::string untrusted_text(const std::string& path, std::string_view why) {
    return fmt::format("the state file {} cannot be trusted: {}", path, why);
}

}  // namespace

void StateStore::load() {
    const auto names = port_.list();
    if (!names)
        problems_[kAllGpus] = names.error();
    else
        for (const std::string& id : ids_of(*names)) load_gpu(id);
    load_apply();
    std::optional<LeaseTime> latest;
    for (const auto& [id, file] : files_)
        if (file.lease_time && (!latest || file.lease_time->reading > latest->reading))
            latest = file.lease_time;
    if (latest) recorded_time_ = latest->reading;
    if (clock_ != nullptr) leases_.emplace(*clock_, latest);
}

Result<GpuFile> StateStore::read_gpu(const std::string& name, const std::string& id) {
    const std::string path = port_.where(name);
    TRY(const auto text, port_.read(name));
    if (!text)
        return fail(ErrorId::StateCorrupt, fmt::format("the state file {} is missing", path));
    auto file = decode_gpu(*text);
    if (file && file->gpu != id)
        file = fail(ErrorId::StateCorrupt, fmt::format("it is the file of '{}'", file->gpu));
    if (!file) file.error().cause = untrusted_text(path, file.error().cause);
    return file;
}

/// Loads the file of a GPU. If the file is damaged, the GPU is read-only, and load_gpu() loads the
/// copy, if it is intact, so that vgpud shows the VFs in service under their names.
void StateStore::load_gpu(const std::string& id) {
    const std::string name = name_of(id);
    auto file = read_gpu(name, id);
    if (file) {
        files_[id] = *std::move(file);
        return;
    }
    Error& problem = problems_[id] = file.error();
    if (problem.id != ErrorId::StateCorrupt) return;
    auto copy = read_gpu(name + kCopy, id);
    if (copy) {
        problem.cause += fmt::format("; its copy with generation {} is sound", copy->generation);
        files_[id] = *std::move(copy);
    } else if (copy.error().id == ErrorId::StateNewer) {
        problem = copy.error();
    } else {
        problem.cause += "; it has no sound copy";
    }
}

void StateStore::load_apply() {
    const auto text = port_.read(kApply);
    if (text && !*text) return;
    auto apply = text ? decode_apply(**text) : tl::make_unexpected(text.error());
    if (apply) {
        apply_ = *std::move(apply);
        return;
    }
    if (text) apply.error().cause = untrusted_text(port_.where(kApply), apply.error().cause);
    problems_.try_emplace(kAllGpus, apply.error());
}

Result<std::vector<std::string>> StateStore::recover() {
    std::vector<std::string> done;
    for (const auto& [id, problem] : problems_) {
        if (problem.id != ErrorId::StateCorrupt) continue;
        if (id != kAllGpus) {
            TRY_VOID(recover_gpu(id));
            done.push_back(problem.cause + (files_.contains(id)
                                                ? ", and is the state of the GPU from now on"
                                                : "; the GPU has no state now, and vgpud starts "
                                                  "from what it reports"));
            continue;
        }
        TRY_VOID(port_.list());
        TRY_VOID(port_.remove(kApply, std::string(kApply) + kDamaged));
        done.push_back(problem.cause + "; the apply is not continued");
    }
    return done;
}

/// Removes the file before its copy. If this is interrupted, a copy without a file is left, which
/// load() reports as a problem again.
Result<> StateStore::recover_gpu(const std::string& id) {
    const std::string name = name_of(id), copy = name + kCopy;
    if (files_.contains(id)) return port_.replace(name, encode_gpu(files_.at(id)), name + kDamaged);
    TRY_VOID(port_.remove(name, name + kDamaged));
    return port_.remove(copy, copy + kDamaged);
}

GpuRecord StateStore::gpu(const std::string& id) const {
    const std::scoped_lock lock(mutex_);
    const auto at = files_.find(id);
    return at == files_.end() ? GpuRecord{} : at->second.record;
}

GpuSettings StateStore::settings(const std::string& id) const {
    const std::scoped_lock lock(mutex_);
    const auto at = files_.find(id);
    return at == files_.end() ? GpuSettings{} : at->second.record.settings;
}

std::map<std::string, GpuRecord> StateStore::records() const {
    const std::scoped_lock lock(mutex_);
    std::map<std::string, GpuRecord> records;
    for (const auto& [id, file] : files_) records[id] = file.record;
    return records;
}

std::vector<std::string> StateStore::gpus() const {
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> ids;
    for (const auto& [id, file] : files_) ids.push_back(id);
    return ids;
}

StateStore::Names StateStore::names() const {
    const std::scoped_lock lock(mutex_);
    Names names;
    for (const auto& [id, file] : files_)
        for (const auto& [vf, record] : file.record.vfs)
            names.emplace(record.spec.name, std::pair(id, vf));
    return names;
}

std::uint64_t StateStore::names_version() const {
    const std::scoped_lock lock(mutex_);
    return names_version_;
}

std::optional<Uuid> StateStore::uuid(const std::string& id, std::uint32_t vf) const {
    const std::scoped_lock lock(mutex_);
    const auto file = files_.find(id);
    if (file == files_.end()) return {};
    const auto at = file->second.record.vfs.find(vf);
    return at == file->second.record.vfs.end() ? std::nullopt : std::optional(at->second.spec.uuid);
}

std::uint64_t StateStore::generation() const {
    const std::scoped_lock lock(mutex_);
    std::uint64_t changes = 0;
    for (const auto& [id, file] : files_) changes += file.generation;
    return changes;
}

std::optional<ApplyIntent> StateStore::apply() const {
    const std::scoped_lock lock(mutex_);
    return apply_;
}

std::optional<GpuFile> StateStore::file(const std::string& id) const {
    const std::scoped_lock lock(mutex_);
    const auto at = files_.find(id);
    return at == files_.end() ? std::nullopt : std::optional(at->second);
}

std::mutex& StateStore::write_mutex_of(const std::string& id) {
    const std::scoped_lock lock(mutex_);
    return write_mutexes_[id];
}

Result<> StateStore::writable(const std::string& id) const {
    if (problems_.empty()) return {};
    for (const std::string& key : {std::string(kAllGpus), id})
        if (const auto at = problems_.find(key); at != problems_.end())
            return fail(
                at->second.id == ErrorId::StateNewer ? ErrorId::StateNewer : ErrorId::StateReadOnly,
                at->second.cause);
    return {};
}

std::string StateStore::condition() const {
    std::vector<std::string_view> causes;
    for (const auto& [id, problem] : problems_) causes.push_back(problem.cause);
    if (!causes.empty()) return fmt::format("{}", fmt::join(causes, "; "));
    const std::scoped_lock lock(mutex_);
    return write_failure_;
}

void StateStore::record_result(const Result<>& done) {
    const std::scoped_lock lock(mutex_);
    write_failure_ = done ? "" : done.error().cause;
}

Result<> StateStore::commit(const std::string& id, const GpuRecord& record) {
    return commit(id, record, Write::IfChanged);
}

Result<> StateStore::commit(const std::string& id, const GpuRecord& record, Write when) {
    TRY_VOID(writable(id));
    const std::scoped_lock write_lock(write_mutex_of(id));
    const auto before = file(id);
    if (before && before->record == record && when == Write::IfChanged) return {};
    GpuFile after{.gpu = id, .generation = before ? before->generation + 1 : 1, .record = record};
    if (leases_) after.lease_time = leases_->record();
    const std::string name = name_of(id), text = encode_gpu(after);
    auto done = port_.replace(name, text, name + kCopy);
    if (!done)
        roll_back_write(name, text, before ? std::optional(encode_gpu(*before)) : std::nullopt,
                        done.error());
    record_result(done);
    if (!done) return done;
    const std::scoped_lock lock(mutex_);
    if (!before || !have_same_names(before->record, record)) ++names_version_;
    if (after.lease_time) recorded_time_ = after.lease_time->reading;
    files_[id] = std::move(after);
    return {};
}

Result<> StateStore::commit_apply(const std::optional<ApplyIntent>& apply) {
    TRY_VOID(writable(kAllGpus));
    const std::scoped_lock write_lock(apply_write_mutex_);
    const auto before = this->apply();
    if (apply == before) return {};
    if (apply && !before)
        for (const DesiredGpu& gpu : apply->after) TRY_VOID(writable(gpu.gpu));
    const auto text_of = [](const auto& one) {
        return one ? std::optional(encode_apply(*one)) : std::nullopt;
    };
    const auto text = text_of(apply);
    auto done = text ? port_.replace(kApply, *text) : port_.remove(kApply);
    if (!done) roll_back_write(kApply, text, text_of(before), done.error());
    record_result(done);
    if (!done) return done;
    const std::scoped_lock lock(mutex_);
    apply_ = apply;
    return {};
}

/// Rolls back a failed write. The refused content may be in the file nevertheless, because a sync
/// can fail after the rename; a later start must not find this content. Any other content is the
/// old one or another program's, and stays.
void StateStore::roll_back_write(const std::string& name, const std::optional<std::string>& refused,
                                 const std::optional<std::string>& old, Error& error) {
    const auto found = port_.read(name);
    if (found && *found != refused) return;
    if (!(old ? port_.replace(name, *old) : port_.remove(name)))
        error.cause += std::string(kMayBeFound);
}

void StateStore::record_time(const std::string& id) {
    {
        const std::scoped_lock lock(mutex_);
        if (recorded_time_ && leases_->now() - *recorded_time_ < kRecordInterval) return;
    }
    static_cast<void>(commit(id, gpu(id), Write::Always));
}

}  // namespace vgpu::daemon
