// SPDX-License-Identifier: MIT
#include "daemon/engines/slurm/texts.h"

#include "text/number.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <optional>

namespace vgpu::slurm {

namespace {

constexpr std::string_view kBlanks = " \t\r\n";

tl::unexpected<Error> unexpected_text(std::string_view program, std::string_view text,
                                      std::string_view defect) {
    return fail(ErrorId::System, fmt::format("'{}' printed '{}', which {}", program,
                                             text.substr(0, kMaxShown), defect));
}

/// The text after the first " KEY=" in `line`, up to the next blank; none if `line` lacks the key.
std::optional<std::string_view> field(std::string_view line, std::string_view key) {
    const std::string word = fmt::format(" {}=", key);
    const std::size_t at = line.find(word);
    if (at == std::string_view::npos) return {};
    const std::string_view rest = line.substr(at + word.size());
    return rest.substr(0, rest.find_first_of(kBlanks));
}

bool has_field_twice(std::string_view line, std::string_view key) {
    const std::string word = fmt::format(" {}=", key);
    const std::size_t at = line.find(word);
    return at != std::string_view::npos && line.find(word, at + 1) != std::string_view::npos;
}

/// The record of job `id` in the output of `scontrol -o show job`; empty if there is none. scontrol
/// prints a record for each task of an array job, and for each component of a heterogeneous job. A
/// record is one line, unless the user put line ends into a name or path. If a user imitated the
/// start of a record, two lines begin with "JobId=ID ". The result then includes both, so that
/// has_field_twice() finds the imitation.
std::string_view record_of(std::string_view output, const std::string& id) {
    const std::string begin = fmt::format("JobId={} ", id);
    std::size_t first = output.starts_with(begin) ? 0 : output.find("\n" + begin);
    if (first == std::string_view::npos) return {};
    if (first != 0) ++first;
    const std::size_t again = output.find("\n" + begin, first);
    const std::size_t from = again == std::string_view::npos ? first : again;
    const std::size_t end = output.find("\nJobId=", from + 1);
    return output.substr(first, std::min(end, output.size()) - first);
}

/// The number in parentheses, such as 0 in "root(0)"; none if `value` does not end with one.
std::optional<std::uint32_t> id_of(std::optional<std::string_view> value) {
    if (!value || !value->ends_with(')')) return {};
    const std::size_t open = value->rfind('(');
    if (open == std::string_view::npos) return {};
    return text::number_in<std::uint32_t>(value->substr(open + 1, value->size() - open - 2));
}

/// The VFs of a job on `node`. `text` has a group "Nodes=… GRES=…" for each set of the job's hosts.
Result<Counts> read_groups(std::string_view text, std::string_view node) {
    constexpr std::string_view kNodes = " Nodes=";
    Counts counts;
    for (std::size_t at = text.find(kNodes); at != std::string_view::npos;) {
        const std::size_t next = text.find(kNodes, at + 1);
        const std::string_view group = text.substr(at, next - at);
        if (is_in(field(group, "Nodes").value_or(""), node)) {
            TRY(const Counts one, read_gres(field(group, "GRES").value_or("")));
            for (const auto& [profile, count] : one) counts[profile] += count;
        }
        at = next;
    }
    return counts;
}

/// True if the user requested VFs. Reads the last "TresPerNode=", because an earlier one may be
/// part of a text that the user chose.
bool has_asked_for_vfs(std::string_view text) {
    const std::size_t at = text.rfind(" TresPerNode=");
    if (at == std::string_view::npos) return false;
    return has_vfs(*field(text.substr(at), "TresPerNode"));
}

/// True if the number `digits` is in `range`, such as "5" or "01-10".
bool matches_range(std::string_view range, std::string_view digits) {
    const std::size_t dash = range.find('-');
    const std::string_view low = range.substr(0, dash);
    const std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
    const auto number = text::number_in<std::uint64_t>(digits);
    const auto first = text::number_in<std::uint64_t>(low);
    const auto last = text::number_in<std::uint64_t>(high);
    if (!number || !first || !last || *number < *first || *number > *last) return false;
    // Slurm pads each number with zeroes to the length of the range's first number: 08-105 has 09
    // and 100.
    return digits.size() == low.size() || (digits.size() > low.size() && !digits.starts_with('0'));
}

/// True if `name` matches one element of a host list, such as "rack[1-2]-n[01-10,15]".
/// Tries each possible length of the number in place of the first brackets.
bool matches_host(std::string_view pattern, std::string_view name) {
    const std::size_t open = pattern.find('[');
    if (open == std::string_view::npos) return pattern == name;
    const std::size_t close = pattern.find(']', open);
    if (close == std::string_view::npos || !name.starts_with(pattern.substr(0, open))) return false;
    name.remove_prefix(open);
    const std::string_view rest = pattern.substr(close + 1);
    const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    for (std::size_t count = 1; count <= digits; ++count) {
        if (!matches_host(rest, name.substr(count))) continue;
        std::string_view ranges = pattern.substr(open + 1, close - open - 1);
        while (!ranges.empty()) {
            const std::size_t comma = std::min(ranges.find(','), ranges.size());
            if (matches_range(ranges.substr(0, comma), name.substr(0, count))) return true;
            ranges.remove_prefix(std::min(comma + 1, ranges.size()));
        }
    }
    return false;
}

/// Removes the first word and the blanks before it from `text`. Returns the word; empty at the end.
std::string_view next_word(std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
    text.remove_prefix(word.size());
    return word;
}

char lower_case(char letter) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
}

}  // namespace

bool is_in(std::string_view hosts, std::string_view name) {
    std::size_t begin = 0;
    bool is_bracketed = false;
    for (std::size_t i = 0; i <= hosts.size(); ++i) {
        const char letter = i < hosts.size() ? hosts[i] : ',';
        if (letter == '[') is_bracketed = true;
        if (letter == ']') is_bracketed = false;
        if (letter != ',' || is_bracketed) continue;
        if (matches_host(hosts.substr(begin, i - begin), name)) return true;
        begin = i + 1;
    }
    return false;
}

std::string task_name(std::string_view text, const std::string& id) {
    const std::string_view record = record_of(text, id);
    // no text that the user chose is before JobReference
    const std::string_view own = record.substr(0, record.find(" JobName="));
    const auto array = field(own, "ArrayJobId"), task = field(own, "ArrayTaskId");
    const bool is_task = array && task && text::number_in<std::uint32_t>(*array) &&
                         text::number_in<std::uint32_t>(*task);
    return is_task ? fmt::format("{}_{}", *array, *task) : id;
}

Result<Job> read_job(std::string_view output, const std::string& id, std::string_view node) {
    constexpr std::string_view kProgram = "scontrol -o -d show job";
    const std::string_view text = record_of(output, id);
    // The user chooses the job's name and paths, which may imitate fields of Slurm.
    for (const char* key : {"UserId", "GroupId", "JobState", "Restarts", "NodeList", "MinCPUsNode"})
        if (has_field_twice(text, key))
            return fail(ErrorId::BadConfiguration,
                        fmt::format("the job's name or one of its paths imitates the field {} of "
                                    "'{}'; submit it with another name or path",
                                    key, kProgram));
    const auto life = field(text, "Restarts");
    const auto number = text::number_in<std::uint32_t>(life.value_or(""));
    const auto uid = id_of(field(text, "UserId")), gid = id_of(field(text, "GroupId"));
    const auto state = field(text, "JobState");
    if (!number || !uid || !gid || !state) {
        if (!text.empty() && text.size() < output.size())
            return fail(ErrorId::BadConfiguration,
                        fmt::format("the job's name or one of its paths imitates a line of '{}'; "
                                    "submit it with another name or path",
                                    kProgram));
        return unexpected_text(
            kProgram, output,
            fmt::format("lacks JobId={}, UserId, GroupId, JobState or Restarts", id));
    }
    Job job{.life = *number,
            .user = {.uid = *uid, .gid = *gid},
            .state = std::string(*state),
            .is_here = is_in(field(text, "NodeList").value_or(""), node),
            .vfs = {},
            .has_asked_for_vfs = has_asked_for_vfs(text)};
    // no text that the user chose is between these two fields
    const std::size_t begin = text.find(" NodeList=");
    const std::size_t end = text.find(" MinCPUsNode=", std::min(begin, text.size()));
    if (end == std::string_view::npos)
        return unexpected_text(kProgram, text, "lacks NodeList or MinCPUsNode");
    TRY(job.vfs, read_groups(text.substr(begin, end - begin), node));
    return job;
}

Result<std::set<JobLife>> read_queue(std::string_view text) {
    std::set<JobLife> jobs;
    for (std::string_view rest = text; !rest.empty();) {
        const std::size_t end = rest.find('\n');
        if (end == std::string_view::npos) return unexpected_text("squeue", rest, "is cut off");
        std::string_view line = rest.substr(0, end);
        rest.remove_prefix(end + 1);
        const std::string_view id = next_word(line);
        const auto life = text::number_in<std::uint32_t>(next_word(line));
        if (!text::number_in<std::uint32_t>(id) || !life || next_word(line).empty() ||
            !next_word(line).empty())
            return unexpected_text("squeue", text,
                                   "is not a job, a number of restarts and a state "
                                   "on each line");
        jobs.insert(JobLife{.id = std::string(id), .life = *life});
    }
    return jobs;
}

Result<Node> read_node(std::string_view text) {
    constexpr std::string_view kReason = " Reason=";
    const auto gres = field(text, "Gres"), state = field(text, "State");
    if (!text.starts_with("NodeName=") || !gres || !state)
        return unexpected_text("scontrol -o show node", text, "lacks NodeName, Gres or State");
    Node node{.gres = std::string(*gres),
              .reason = "",
              .is_drained = state->find("DRAIN") != std::string_view::npos};
    if (const std::size_t at = text.find(kReason); at != std::string_view::npos) {
        const std::string_view rest = text.substr(at + kReason.size());
        // "vgpu: gpu0 is pf-lost [root@2026-11-27T20:51:07]"
        node.reason = rest.substr(0, std::min(rest.find(" ["), rest.find('\n')));
    }
    return node;
}

bool has_running_state(std::string_view states) {
    for (std::string_view word = next_word(states); !word.empty(); word = next_word(states))
        if (word == "R" || word == "CF") return true;
    return false;
}

Result<std::set<std::string>> read_steps(std::string_view text) {
    constexpr std::string_view kSteps = "Active Steps";
    const std::size_t begin = text.find(kSteps);
    const std::size_t equals = text.find("= ", begin);
    const std::size_t end = text.find('\n', begin);
    if (begin == std::string_view::npos || equals > end || end == std::string_view::npos)
        return unexpected_text("scontrol show slurmd", text, "lacks Active Steps");
    std::set<std::string> jobs;
    std::string_view rest = text.substr(equals + 2, end - equals - 2);
    for (std::string_view word = next_word(rest); !word.empty(); word = next_word(rest)) {
        if (word == "NONE") continue;
        // a word is "17.0," or "17.batch,"; Slurm 22.05 prints the batch step as "17,"
        const std::string_view id = word.substr(0, word.find_first_not_of("0123456789"));
        if (id.empty()) return unexpected_text("scontrol show slurmd", text, "has an unknown step");
        jobs.emplace(id);
    }
    return jobs;
}

std::optional<std::string> cluster_in(std::string_view configuration) {
    constexpr std::string_view kKey = "clustername";
    const auto is_equal = [](char a, char b) { return lower_case(a) == b; };
    for (std::string_view rest = configuration; !rest.empty();) {
        std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
        const std::size_t equals = line.find('=');
        if (equals == std::string_view::npos) continue;
        std::string_view key = line.substr(0, equals);
        key = next_word(key);
        if (!std::equal(key.begin(), key.end(), kKey.begin(), kKey.end(), is_equal)) continue;
        std::string_view value = line.substr(equals + 1);
        value = next_word(value);
        value = value.substr(0, value.find('#'));
        if (value.empty()) continue;
        std::string name(value);
        std::ranges::transform(name, name.begin(), lower_case);
        return name;
    }
    return {};
}

}  // namespace vgpu::slurm
