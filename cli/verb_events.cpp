// SPDX-License-Identifier: MIT
//
// vgpuctl events: prints the latest events and, with --follow, new events. When a D-Bus signal of
// vgpud announces a new event, vgpuctl reads the new events from vgpud's event log. The log numbers
// the events, so vgpuctl prints no event twice and notices missed events.
#include "cli/colour.h"
#include "cli/interruption.h"
#include "cli/number_options.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "text/number.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <array>
#include <chrono>

namespace vgpu::cli {

namespace {

/// The largest number of events that vgpud keeps (EventLog::kCapacity).
constexpr std::uint64_t kMaxKeptEvents = 512;

/// The time in UTC, in the format of RFC 3339: "2026-11-22T05:10:31.204518Z".
std::string time_text(std::uint64_t time_us) {
    constexpr std::uint64_t kUsPerS = 1'000'000;
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z",
                       fmt::gmtime(static_cast<std::time_t>(time_us / kUsPerS)), time_us % kUsPerS);
}

/// The target of an event: "gpu0", "gpu0/vf3".
std::string target_of(const Properties& event, const std::string& name = "Gpu") {
    const std::uint64_t vf = number_of(event, "Vf");
    const std::string gpu = text_of(event, name);
    return vf == 0 ? gpu : fmt::format("{}/vf{}", gpu, vf);
}

std::string time_of(const Properties& event, const std::string& name) {
    return time_text(number_of(event, name));
}

/// The columns for -o and --noheadings. Without these options, EventsVerb::print() prints events.
constexpr std::array kEventColumns{
    PropertyColumn{{"TIME"}, "TimeUs", time_of},  PropertyColumn{{"TARGET"}, "Gpu", target_of},
    PropertyColumn{{"KIND"}, "Kind", text_of},    PropertyColumn{{"TEXT"}, "Text", text_of},
    PropertyColumn{extra("SEQ"), "Seq", text_of},
};

/// The colour for the severity of a kind of event. A kind that only a newer vgpud has is Plain.
Colour colour_of(const std::string& kind) {
    struct Row {
        std::string_view kind;
        Colour colour;
    };
    // events.def uses these three names as severities
    constexpr Colour Info = Colour::Plain, Warning = Colour::Yellow, Error = Colour::Red;
    constexpr std::array kRows{
#define EVENT(name, kind, severity, cause, meaning) Row{kind, severity},
#include "schemas/events.def"
#undef EVENT
    };
    for (const Row& row : kRows)
        if (row.kind == kind) return row.colour;
    return Colour::Plain;
}

/// The line of an event without its time: "gpu0/vf1: hang: does not give up the engine". On a
/// terminal, the line is wrapped and the kind may be coloured.
std::string words_of(const Properties& event, const Invocation& invocation) {
    constexpr std::size_t kTimeColumns = sizeof("2026-11-22T05:10:31.204518Z  ") - 1;
    const std::string target = target_of(event) + ": ", kind = text_of(event, "Kind");
    std::string words = target + kind + ": " + text_of(event, "Text");
    words = invocation.is_terminal ? wrapped_text(words, kTimeColumns, kTimeColumns) : words + "\n";
    // false if wrapped_text() broke the line before or inside the kind
    const bool is_kind_in_place = words.compare(target.size(), kind.size(), kind) == 0;
    if (is_kind_in_place)
        words.replace(target.size(), kind.size(),
                      painted(kind, colour_of(kind), invocation.uses_colour));
    return words;
}

/// Exits with 0 when interrupted. --json: a document per line (vgpuctl-event-1).
class EventsVerb final : public Verb {
public:
    EventsVerb()
        : Verb({Group::State, "events",
                "print what happened to GPUs and VFs: resets, hangs, losses, scrubs",
                "events gpu0 --follow"}) {}
    void describe(CLI::App& command) override {
        command.add_option("TARGET", target_, "only of this GPU or VF (default: of all)");
        auto* follow =
            command.add_flag("--follow", is_following_, "also print new events, until interrupted");
        command.add_option("--limit", limit_, "number of latest events to print")
            ->transform(whole_within(0, kMaxKeptEvents))
            ->capture_default_str();
        table_.describe(command, {columns_of(kEventColumns)});
        command.get_option("--output")->excludes(follow);
        command.get_option("--noheadings")->excludes(follow);
    }

    ExitCode run(Invocation& invocation) override {
        selected_ = target_.empty() ? "" : selected_target(invocation.service);
        std::vector<Properties> recent = invocation.service.recent_events(0, kMaxKeptEvents);
        if (!recent.empty()) last_seq_ = number_of(recent.back(), "Seq");
        std::erase_if(recent, [this](const Properties& event) { return !is_selected(event); });
        if (recent.size() > limit_)
            recent.erase(recent.begin(), recent.end() - static_cast<std::ptrdiff_t>(limit_));
        if (table_.is_plain())
            invocation.out << table_.text(kEventColumns, recent);
        else
            for (const Properties& event : recent) print(invocation, event);
        invocation.out.flush();
        if (is_following_) follow(invocation);
        return ExitCode::Ok;
    }

private:
    /// The target as events name it ("gpu0/vf3"). Throws NotFound for an unknown target, but
    /// accepts a VF that may have existed earlier, because vgpud may still have its events.
    [[nodiscard]] std::string selected_target(Service& service) const {
        try {
            return target_of_path(service.resolve(target_));
        } catch (const ServiceError& error) {
            if (error.exit_code() == ExitCode::NotFound && may_be_gone(service)) return target_;
            throw;
        }
    }

    /// True if the target is "GPU/vfN" with a number that a VF of this GPU can have. Throws if the
    /// GPU does not exist.
    [[nodiscard]] bool may_be_gone(Service& service) const {
        constexpr std::string_view kVf = "/vf";
        const std::size_t at = target_.find(kVf);
        if (at == std::string::npos) return false;
        const auto index =
            text::number_in<std::uint64_t>(std::string_view(target_).substr(at + kVf.size()));
        if (index.value_or(0) == 0) return false;
        const Properties gpu = service.object(service.resolve(target_.substr(0, at)));
        // TotalVfs is 0 if vgpud has not reached the GPU yet
        return number_of(gpu, "TotalVfs") == 0 || *index <= number_of(gpu, "TotalVfs");
    }

    [[nodiscard]] bool is_selected(const Properties& event) const {
        return selected_.empty() || target_of(event) == selected_ ||
               text_of(event, "Gpu") == selected_;
    }

    /// Prints new events until a signal, a failed write, or the loss of the output's reader.
    void follow(Invocation& invocation) {
        const Interruption interruption;
        while (invocation.out) {
            switch (invocation.service.wait_for_change(interruption.fds())) {
                case BusChange::Stopped:
                    return;
                case BusChange::Gone:
                    invocation.err << "vgpuctl: vgpud is gone; events continue when it is back\n";
                    break;
                case BusChange::Back:
                    invocation.err << "vgpuctl: vgpud is back\n";
                    last_seq_ = 0;  // events of a new vgpud are numbered from the start
                    print_new(invocation);
                    break;
                case BusChange::Event:
                    print_new(invocation);
                    break;
            }
        }
    }

    /// Prints the events after last_seq_. Prints nothing if vgpud does not answer; follow() then
    /// gets BusChange::Gone if vgpud has ended.
    void print_new(Invocation& invocation) {
        std::vector<Properties> fresh;
        try {
            fresh = invocation.service.recent_events(last_seq_, kMaxKeptEvents);
        } catch (const ServiceError& error) {
            if (error.exit_code() != ExitCode::Unreachable) throw;
            return;
        }
        for (const Properties& event : fresh) {
            const std::uint64_t seq = number_of(event, "Seq");
            // a full log drops earlier events, whose numbers are then missing
            if (seq > last_seq_ + 1)
                invocation.err << fmt::format("vgpuctl: {} events were missed\n",
                                              seq - last_seq_ - 1);
            last_seq_ = seq;
            if (is_selected(event)) print(invocation, event);
        }
        invocation.out.flush();
    }

    static void print(Invocation& invocation, const Properties& event) {
        const std::string time = time_text(number_of(event, "TimeUs"));
        const std::string kind = text_of(event, "Kind");
        if (!invocation.is_json) {
            invocation.out << time << "  " << words_of(event, invocation);
            return;
        }
        const nlohmann::ordered_json line = {{"schema", "vgpuctl-event-1"},
                                             {"seq", number_of(event, "Seq")},
                                             {"time", time},
                                             {"time_us", number_of(event, "TimeUs")},
                                             {"target", target_of(event)},
                                             {"gpu", text_of(event, "Gpu")},
                                             {"vf", number_of(event, "Vf")},
                                             {"kind", kind},
                                             {"text", text_of(event, "Text")}};
        invocation.out << line.dump() << "\n";
    }

    std::string target_;
    std::string selected_;  ///< target of the events to print: "gpu0", "gpu0/vf3"; "" for all
    bool is_following_ = false;
    TableOptions table_;
    std::uint64_t limit_ = 50;
    std::uint64_t last_seq_ = 0;  ///< number of the newest event that was read; 0: none
};

}  // namespace

const MakeVerb make_events_verb = make_verb<EventsVerb>;

}  // namespace vgpu::cli
