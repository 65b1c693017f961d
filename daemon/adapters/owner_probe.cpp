// SPDX-License-Identifier: MIT
#include "daemon/adapters/owner_probe.h"

#include "text/whole_file.h"

#include <fmt/format.h>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace vgpu::daemon::adapters {

namespace {

namespace fs = std::filesystem;

/// Content of a file. Empty if the file cannot be read, for example if the process ends after the
/// file was opened. Does not throw.
std::string text_of(const fs::path& path) {
    return text::whole_file(path).value_or("");
}

/// State letter and start time, fields 3 and 22 of /proc/PID/stat; 'X' if the process is gone.
std::pair<char, std::uint64_t> state_of(const fs::path& process) {
    constexpr int kFieldsToStartTime = 18;
    const std::string line = text_of(process / "stat");
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

bool OwnerProbe::process_exists(const ProcessId& id) const {
    const auto start_time = start_time_of(id.pid);
    return start_time && (id.start_time == 0 || id.start_time == *start_time);
}

std::optional<std::uint64_t> OwnerProbe::start_time_of(int pid) const {
    const auto [state, start_time] = state_of(fs::path(proc_) / std::to_string(pid));
    if (state == 'X' || state == 'Z') return {};
    return start_time;
}

std::set<std::string> OwnerProbe::running_domains() const {
    std::set<std::string> uuids;
    std::error_code error;
    for (fs::directory_iterator at(proc_, error), end; !error && at != end; at.increment(error))
        if (is_number(at->path().filename()))
            uuids.insert(uuid_among(text_of(at->path() / "cmdline")));
    uuids.erase("");
    return uuids;
}

/// softgpu writes the pid of the client of vf1.sock to vf1.client.
std::string OwnerProbe::client_of(const std::string& path) const {
    std::ifstream record(fs::path(path).replace_extension(".client"));
    int pid = 0;
    if (!(record >> pid)) return "";
    std::string name = text_of(fs::path(proc_) / std::to_string(pid) / "comm");
    if (name.ends_with('\n')) name.pop_back();
    if (name.empty()) return "";
    return fmt::format("{} (pid {})", name, pid);
}

}  // namespace vgpu::daemon::adapters
