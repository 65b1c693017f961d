// SPDX-License-Identifier: MIT
//
// A strict reader of OpenMetrics 1.0 text, as far as vgpu-exporter writes it: gauges, counters,
// infos and state sets. It refuses what the specification forbids and also what it merely allows
// without need (families without a type). Used by the tests of the metrics; a test of its own shows
// that it refuses.
#pragma once

#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::exporter::testing {

using Labels = std::map<std::string, std::string>;

struct MetricSample {
    std::string name;
    Labels labels;
    double value = 0;
};

struct MetricFamily {
    std::string type, unit, help;
    std::vector<MetricSample> samples;
};

class OpenMetrics {
public:
    /// Throws std::runtime_error with the number of the line.
    explicit OpenMetrics(std::string_view text) {
        if (!text.ends_with("\n")) fail("the last line has no end");
        while (!text.empty()) {
            const std::size_t end = text.find('\n');
            ++line_;
            if (is_over_) fail("something follows # EOF");
            take_line(text.substr(0, end));
            text.remove_prefix(end + 1);
        }
        if (!is_over_) fail("# EOF is missing");
    }

    [[nodiscard]] const std::map<std::string, MetricFamily>& families() const { return families_; }

    /// The value of the one sample of `family` that has `labels` among its own; nothing if there is
    /// none.
    [[nodiscard]] std::optional<double> value(const std::string& family,
                                              const Labels& labels) const {
        const auto at = families_.find(family);
        if (at == families_.end()) return {};
        for (const MetricSample& sample : at->second.samples) {
            bool fits = true;
            for (const auto& [name, wanted] : labels) {
                const auto label = sample.labels.find(name);
                fits = fits && label != sample.labels.end() && label->second == wanted;
            }
            if (fits) return sample.value;
        }
        return {};
    }

private:
    [[noreturn]] void fail(const std::string& why) const {
        throw std::runtime_error("line " + std::to_string(line_) + ": " + why);
    }
    void want(bool is_so, const std::string& why) const {
        if (!is_so) fail(why);
    }

    static bool is_name(std::string_view name, bool may_have_colon) {
        if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
        for (const char letter : name) {
            const bool is_letter = (letter >= 'a' && letter <= 'z') ||
                                   (letter >= 'A' && letter <= 'Z') || letter == '_';
            const bool is_digit = letter >= '0' && letter <= '9';
            if (!is_letter && !is_digit && !(letter == ':' && may_have_colon)) return false;
        }
        return true;
    }

    void take_line(std::string_view line) {
        if (line == "# EOF") {
            is_over_ = true;
        } else if (line.starts_with("# ")) {
            take_metadata(line.substr(2));
        } else {
            want(!line.starts_with('#') && !line.empty(), "neither metadata nor a sample");
            take_sample(line);
        }
    }

    /// "TYPE name counter"
    void take_metadata(std::string_view rest) {
        const std::size_t first = rest.find(' ');
        want(first != std::string_view::npos, "metadata without a name");
        const std::string keyword(rest.substr(0, first));
        rest.remove_prefix(first + 1);
        const std::size_t second = rest.find(' ');
        want(second != std::string_view::npos, keyword + " without a value");
        const std::string name(rest.substr(0, second)), value(rest.substr(second + 1));
        want(is_name(name, true), "no name of a family: " + name);
        if (name != current_) begin(name);
        MetricFamily& family = families_[name];
        want(family.samples.empty(), "metadata behind samples");
        if (keyword == "TYPE") {
            static const std::set<std::string> kTypes{"gauge", "counter", "info", "stateset"};
            want(kTypes.contains(value), "no such type: " + value);
            set(family.type, value);
        } else if (keyword == "UNIT") {
            want(name.ends_with("_" + value), name + " does not end in its unit " + value);
            want(family.type != "info" && family.type != "stateset", "no unit is allowed here");
            set(family.unit, value);
        } else {
            want(keyword == "HELP", "no such keyword: " + keyword);
            set(family.help, value);
        }
    }

    void begin(const std::string& name) {
        want(!families_.contains(name), "family " + name + " a second time");
        current_ = name;
    }

    void set(std::string& where, const std::string& value) const {
        want(where.empty(), "said twice");
        where = value;
    }

    void take_sample(std::string_view line) {
        MetricSample sample;
        const std::size_t end = line.find_first_of("{ ");
        want(end != std::string_view::npos, "a sample without a value");
        sample.name = line.substr(0, end);
        line.remove_prefix(end);
        if (line.front() == '{') sample.labels = take_labels(line);
        want(line.starts_with(' '), "no space before the value");
        line.remove_prefix(1);
        sample.value = number(line);
        check(sample);
        families_[current_].samples.push_back(std::move(sample));
    }

    /// From '{' to behind '}'.
    Labels take_labels(std::string_view& line) const {
        Labels labels;
        line.remove_prefix(1);
        while (!line.starts_with('}')) {
            if (!labels.empty()) {
                want(line.starts_with(','), "no comma between labels");
                line.remove_prefix(1);
            }
            const std::size_t equals = line.find("=\"");
            want(equals != std::string_view::npos, "a label without a value");
            const std::string name(line.substr(0, equals));
            want(is_name(name, false), "no name of a label: " + name);
            line.remove_prefix(equals + 2);
            want(labels.emplace(name, take_quoted(line)).second, "label " + name + " twice");
        }
        line.remove_prefix(1);
        return labels;
    }

    std::string take_quoted(std::string_view& line) const {
        std::string value;
        for (;;) {
            want(!line.empty(), "no end of a label's value");
            const char letter = line.front();
            line.remove_prefix(1);
            if (letter == '"') return value;
            if (letter != '\\') {
                value += letter;
                continue;
            }
            want(!line.empty() &&
                     std::string_view("\\\"n").find(line.front()) != std::string_view::npos,
                 "no such escape");
            value += line.front() == 'n' ? '\n' : line.front();
            line.remove_prefix(1);
        }
    }

    [[nodiscard]] double number(std::string_view text) const {
        if (text == "NaN") return std::nan("");
        if (text == "+Inf") return HUGE_VAL;
        if (text == "-Inf") return -HUGE_VAL;
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        want(error == std::errc{} && end == text.data() + text.size() && std::isfinite(value),
             "no number: " + std::string(text));
        return value;
    }

    void check(const MetricSample& sample) {
        static const std::map<std::string, std::string> kSuffixes{
            {"gauge", ""}, {"counter", "_total"}, {"info", "_info"}, {"stateset", ""}};
        const MetricFamily& family = families_[current_];
        want(!current_.empty() && !family.type.empty(), "a sample of a family without a type");
        want(!family.help.empty(), "a sample of a family without help");
        want(sample.name == current_ + kSuffixes.at(family.type),
             sample.name + " is no sample of " + family.type + " " + current_);
        want(seen_.insert({sample.name, sample.labels}).second, "the same sample twice");
        if (family.type == "counter") want(sample.value >= 0, "a counter below 0");
        if (family.type == "info") want(sample.value == 1, "an info is 1");
        if (family.type != "stateset") return;
        want(sample.labels.contains(current_), "a state set without the label of its name");
        want(sample.value == 0 || sample.value == 1, "a state is 0 or 1");
    }

    std::map<std::string, MetricFamily> families_;
    std::set<std::pair<std::string, Labels>> seen_;
    std::string current_;
    int line_ = 0;
    bool is_over_ = false;
};

}  // namespace vgpu::exporter::testing
