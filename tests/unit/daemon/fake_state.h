// SPDX-License-Identifier: MIT
//
// FakeState: a disk in memory at the StatePort seam. It can be full, read-only, or fail to sync
// (what was written is there, but nobody can be sure); `on_point` is called before, in the middle
// of and after every write, and may throw: what is in `files` then is what the next vgpud finds.
#pragma once

#include "daemon/ports/state_port.h"
#include "daemon/service/state/record_json.h"

#include <functional>
#include <map>
#include <mutex>

namespace vgpu::daemon::testing {

class FakeState final : public StatePort {
public:
    Result<std::vector<std::string>> list() override {
        const std::scoped_lock lock(mutex_);
        if (is_unreadable) return fail(ErrorId::StateCorrupt, "cannot read memory/gpus");
        std::vector<std::string> names;
        for (const auto& [name, content] : files) names.push_back(name);
        return names;
    }
    Result<std::optional<std::string>> read(const std::string& name) override {
        const std::scoped_lock lock(mutex_);
        const auto at = files.find(name);
        return at == files.end() ? std::nullopt : std::optional(at->second);
    }
    Result<> replace(const std::string& name, std::string_view content,
                     const std::string& backup_name) override {
        const std::string temporary = name + ".new";
        point();
        if (is_read_only) return refusal();
        put(temporary, content.substr(0, content.size() / 2));
        point();
        if (is_full) return drop(temporary), refusal();
        put(temporary, content);
        keep(name, backup_name);
        point();
        put(name, content);
        drop(temporary);
        return settled();
    }
    Result<> remove(const std::string& name, const std::string& backup_name) override {
        point();
        if (is_read_only) return refusal();
        keep(name, backup_name);
        drop(name);
        return settled();
    }
    [[nodiscard]] std::string where(const std::string& name) const override {
        return "memory/" + name;
    }
    /// What the file of a GPU says now; it must be sound.
    [[nodiscard]] GpuRecord record(const std::string& id = "gpu0") const {
        return decode_gpu(files.at("gpus/" + id + ".json")).value().record;
    }
    [[nodiscard]] std::string& file(const std::string& id = "gpu0") {
        return files.at("gpus/" + id + ".json");
    }

    std::map<std::string, std::string> files;
    bool is_full = false;
    bool is_read_only = false;
    bool is_sync_failing = false;
    bool is_unreadable = false;
    int stores = 0;  ///< changes that were made
    std::function<void()> on_point;

private:
    void point() const {
        if (on_point) on_point();
    }
    /// As unlink() and link() of a file that is there.
    void keep(const std::string& name, const std::string& backup_name) {
        const auto old = read(name);
        if (backup_name.empty() || !*old) return;
        drop(backup_name);
        point();
        put(backup_name, **old);
    }
    void put(const std::string& name, std::string_view content) {
        const std::scoped_lock lock(mutex_);
        files[name] = content;
    }
    void drop(const std::string& name) {
        const std::scoped_lock lock(mutex_);
        files.erase(name);
    }
    Result<> settled() {
        {
            const std::scoped_lock lock(mutex_);
            ++stores;
        }
        point();
        return is_sync_failing ? refusal() : Result<>{};
    }
    [[nodiscard]] Result<> refusal() const {
        return fail(ErrorId::StateNotWritten, is_full ? "no space left" : "as the test wants");
    }

    std::mutex mutex_;
};

}  // namespace vgpu::daemon::testing
