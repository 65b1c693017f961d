// SPDX-License-Identifier: MIT
//
// DurableRecord: the record of one GPU. No other code changes this record. To change the record,
// edit a copy of get(), then call:
//   commit  for a change that is about to happen: if the disk refuses, get() is unchanged
//   put     for a change that has happened: get() has the change even if the disk refuses; the next
//           commit(), put() or retry() then writes the change
#pragma once

#include "daemon/service/state/store.h"

#include <optional>
#include <string>
#include <utility>

namespace vgpu::daemon {

class DurableRecord {
public:
    DurableRecord(StateStore& store, std::string gpu) : store_(store), gpu_(std::move(gpu)) {}

    [[nodiscard]] GpuRecord get() const { return owed_ ? *owed_ : store_.gpu(gpu_); }
    /// As get().settings, but without a copy of the VFs.
    [[nodiscard]] GpuSettings settings() const {
        return owed_ ? owed_->settings : store_.settings(gpu_);
    }
    /// The UUID of the VF that is defined under this number; none if there is no such VF.
    [[nodiscard]] std::optional<Uuid> uuid(std::uint32_t vf) const {
        if (!owed_) return store_.uuid(gpu_, vf);
        const auto at = owed_->vfs.find(vf);
        return at == owed_->vfs.end() ? std::nullopt : std::optional(at->second.spec.uuid);
    }

    /// Writes `after`. Fails as StateStore::commit(). Blocks on the disk.
    Result<> commit(const GpuRecord& after) {
        TRY_VOID(store_.commit(gpu_, after));
        owed_.reset();
        return {};
    }
    /// As commit(), but get() returns `after` even if the disk refuses.
    Result<> put(const GpuRecord& after) {
        auto done = commit(after);
        if (!done) owed_ = after;
        return done;
    }
    /// Writes the record that the disk has refused, if any. Fails as commit().
    Result<> retry() { return owed_ ? commit(GpuRecord(*owed_)) : Result<>(); }

private:
    StateStore& store_;
    std::string gpu_;
    std::optional<GpuRecord> owed_;  ///< the record that the disk has refused; none: all is written
};

}  // namespace vgpu::daemon
