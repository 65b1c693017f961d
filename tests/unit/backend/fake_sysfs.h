// SPDX-License-Identifier: MIT
//
// FakeSysfs: a tree of sysfs files in memory. A file has permission bits, which count for root,
// too, a function that makes its text, and one that takes a write and returns 0 or an errno. Tests
// read the log of accepted writes, make files fail, and act between two accesses (somebody opens a
// VF). Any thread may call it; store() of a file may sleep with sleep_until(), as the kernel does.
#pragma once

#include "daemon/backend/sriov/sysfs.h"

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace vgpu::daemon::testing {

inline constexpr unsigned kReadOnly = 0444, kReadWrite = 0644, kWriteOnly = 0200;

/// vgpud was killed after a write; see FakeSysfs::kill_after().
struct Killed : std::runtime_error {
    Killed() : std::runtime_error("killed") {}
};

struct FakeFile {
    unsigned mode = kReadOnly;
    std::function<std::string()> show{};  ///< throws an errno if it fails
    std::function<int(const std::string&)> store{};
};

class FakeSysfs final : public sriov::Sysfs {
public:
    sriov::SysfsResult<std::string> read(const std::string& path) override;
    sriov::SysfsResult<> write(const std::string& path, std::string_view text) override;
    sriov::SysfsResult<std::vector<std::string>> list(const std::string& path) override;
    sriov::SysfsResult<std::string> link(const std::string& path) override;
    std::optional<unsigned> mode(const std::string& path) override;

    // --- the tree
    void add(const std::string& path, FakeFile file);
    /// A read-only file with this text.
    void add(const std::string& path, const std::string& text);
    void add_link(const std::string& path, const std::string& target);
    /// The file, or the directory with all in it.
    void remove(const std::string& path);
    [[nodiscard]] std::string text(const std::string& path);

    // --- what tests do to it
    /// Every access to `path` fails with `code`, or none any more with 0.
    void fail(const std::string& path, int code);
    /// The text that is read from `path` instead of its own.
    void show_instead(const std::string& path, const std::string& text);
    /// Before each accepted write: somebody else acts.
    std::function<void(const std::string& path)> before_write{};
    /// The n-th accepted write from now on takes effect, and then Killed is thrown. 0: never.
    void kill_after(unsigned writes) { writes_to_live_ = writes; }
    /// "sriov_numvfs=4", "0000:03:00.1/reset=1": the last components of path, and what was written.
    [[nodiscard]] std::vector<std::string> writes() const { return writes_; }
    void forget_writes() { writes_.clear(); }

    /// Called by store(), which has the tree's lock once: sleeps without it until `is_true`.
    void sleep_until(const std::function<bool()>& is_true);
    /// Changes something under the tree's lock and wakes sleepers.
    void change(const std::function<void()>& what);

private:
    [[nodiscard]] bool is_directory(const std::string& path) const;
    [[nodiscard]] int refusal(const std::string& path, unsigned wanted) const;

    mutable std::recursive_mutex mutex_;
    std::condition_variable_any changed_;
    std::map<std::string, FakeFile> files_;
    std::map<std::string, std::string> links_;
    std::map<std::string, int> failures_;
    std::map<std::string, std::string> shown_;
    std::vector<std::string> writes_;
    unsigned writes_to_live_ = 0;
};

}  // namespace vgpu::daemon::testing
