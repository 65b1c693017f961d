// SPDX-License-Identifier: MIT
#include "daemon/adapters/owner_probe.h"

#include "daemon/adapters/unique_fd.h"
#include "text/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <sstream>

namespace vgpu::daemon::adapters {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxLine = 4096;           ///< for "stat" and "comm", in bytes
constexpr std::size_t kMaxArguments = 2u << 20;  ///< for "cmdline", whose process chooses its size

/// Content of a file. Empty if the file is larger than `max_bytes` or cannot be read, for example
/// if the process ends after the file was opened. Does not throw.
std::string text_of(const fs::path& path, std::size_t max_bytes) {
    return text::whole_file(path, max_bytes).value_or("");
}

/// The start of a regular file that another user may have made; empty if it cannot be read. Does
/// not follow a link, and does not wait for the writer of a pipe.
std::string start_of_foreign_file(const fs::path& path) {
    constexpr std::size_t kMax = 64;
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat facts {};
    if (!file.is_open() || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return "";
    std::array<char, kMax> text{};
    const ssize_t got = ::read(file.get(), text.data(), text.size());
    return got > 0 ? std::string(text.data(), static_cast<std::size_t>(got)) : "";
}

/// State letter and start time, fields 3 and 22 of /proc/PID/stat; 'X' if the process is gone.
std::pair<char, std::uint64_t> state_of(const fs::path& process) {
    constexpr int kFieldsToStartTime = 18;
    const std::string line = text_of(process / "stat", kMaxLine);
    // A process's name may contain blanks and parentheses, so fields are read after the last ')'.
    const std::size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) return {'X', 0};
    std::istringstream fields(line.substr(name_end + 1));
    char state = 'X';
    std::string skipped;
    std::uint64_t start_time = 0;
    fields >> state;
    for (int i = 0; i < kFieldsToStartTime; ++i) fields >> skipped;
    fields >> start_time;
    return {fields ? state : 'X', start_time};
}

bool is_number(const std::string& name) {
    return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

/// The argument after "-uuid" in NUL-terminated arguments, in lower case; empty if none.
std::string uuid_among(const std::string& arguments) {
    using std::string_literals::operator""s;
    const std::string option = "\0-uuid\0"s;
    const std::size_t at = arguments.find(option);
    if (at == std::string::npos) return "";
    const std::size_t from = at + option.size();
    std::string uuid = arguments.substr(from, arguments.find('\0', from) - from);
    for (char& letter : uuid)
        letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    return uuid;
}

}  // namespace

bool OwnerProbe::is_hidden(int pid) const {
    if (text::whole_file(fs::path(proc_) / std::to_string(pid) / "stat", kMaxLine)) return false;
    return ::kill(pid, 0) == 0 || errno != ESRCH;
}

std::optional<bool> OwnerProbe::process_exists(const ProcessId& id) const {
    const auto start_time = start_time_of(id.pid);
    if (!start_time && is_hidden(id.pid)) return {};
    return start_time && (id.start_time == 0 || id.start_time == *start_time);
}

std::optional<std::uint64_t> OwnerProbe::start_time_of(int pid) const {
    const auto [state, start_time] = state_of(fs::path(proc_) / std::to_string(pid));
    if (state == 'X' || state == 'Z') return {};
    return start_time;
}

std::optional<std::set<std::string>> OwnerProbe::running_domains() const {
    constexpr int kInit = 1;
    if (is_hidden(kInit)) return {};
    std::set<std::string> uuids;
    std::error_code error;
    for (fs::directory_iterator at(proc_, error), end; !error && at != end; at.increment(error))
        if (is_number(at->path().filename()))
            uuids.insert(uuid_among(text_of(at->path() / "cmdline", kMaxArguments)));
    uuids.erase("");
    return uuids;
}

/// softgpu writes the pid of the client of vf1.sock to vf1.client. The user of softgpu may put any
/// other file there.
std::string OwnerProbe::client_of(const std::string& path) const {
    std::istringstream record(start_of_foreign_file(fs::path(path).replace_extension(".client")));
    int pid = 0;
    if (!(record >> pid)) return "";
    std::string name = text_of(fs::path(proc_) / std::to_string(pid) / "comm", kMaxLine);
    if (name.ends_with('\n')) name.pop_back();
    if (name.empty()) return "";
    return fmt::format("{} (pid {})", name, pid);
}

}  // namespace vgpu::daemon::adapters
