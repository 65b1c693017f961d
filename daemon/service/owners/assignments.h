// SPDX-License-Identifier: MIT
//
// Assignments: VFs for consumers that come and go, such as the virtual machines of libvirt. One
// request chooses (assignment.h), claims and links all VFs of a consumer or none, so that two that
// want the last one cannot both get it; one takes all of them back, scrubbed. A request whose VF is
// being scrubbed waits for that, within its limit, and holds up nobody else.
//
//   assign     choose -> claim each (GPU thread) -> link -> answer
//                 ^--- lost a race: choose again;  only scrubs in the way: again when they are over
//   take_back  end each claim and owe its scrub (durable) -> answer; scrubs go on in the background
//
// Main loop only; main.cpp calls step() in every turn.
#pragma once

#include "daemon/ports/vm_sockets_port.h"
#include "daemon/service/owners/assignment.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace vgpu::daemon {

/// One VF of a consumer.
struct GivenVf {
    Target target;
    std::uint64_t generation = 0;  ///< of the claim
    std::string path;              ///< where the consumer finds its socket; empty: nowhere
};

/// All answers come in the main loop. Claims are durable when they are answered; titles and waiting
/// requests are not and end with vgpud.
class Assignments {
public:
    /// Between two looks while a request waits.
    static constexpr Nanoseconds kLook = std::chrono::milliseconds(5);
    /// A libvirt hook waits for the answer, and libvirt for the hook.
    static constexpr std::uint64_t kMostWaitMs = 10'000;
    static constexpr std::uint64_t kDefaultWaitMs = 5'000;
    /// Times that a request chooses again because somebody else was faster.
    static constexpr int kTries = 4;

    Assignments(Manager& manager, VmSocketsPort& sockets, const Clock& clock)
        : manager_(manager), sockets_(sockets), clock_(clock) {}

    /// Options: wait_ms, title. What else `owner` has is taken back.
    void assign(const std::string& owner, const std::vector<Want>& wants, const Options& options,
                Done<std::vector<GivenVf>> done);
    /// `uid` and `gid` may open the sockets of what `owner` has. NoSuchVf if that is nothing.
    Result<> grant(const std::string& owner, std::uint32_t uid, std::uint32_t gid,
                   const Options& options);
    /// How many VFs were taken back; ends a request of `owner` that still waits (Cancelled).
    void take_back(const std::string& owner, const Options& options, Done<std::uint32_t> done);
    /// Claims again what the paths of `owner` lead to, as far as that is nobody's: for a consumer
    /// that runs, when the state was lost. Option title. How many VFs `owner` has then.
    void adopt(const std::string& owner, const Options& options, Done<std::uint32_t> done);

    /// Who knows whether the domain of an owner is off; claims from before a boot end by it.
    using IsOff = std::function<bool(const std::string& owner)>;
    void ask_of_domains(IsOff is_off) { is_off_ = std::move(is_off); }
    /// What IsOff answers may have changed.
    void note_domains() { std::fill(followed_.begin(), followed_.end(), 0); }

    void step();
    [[nodiscard]] std::optional<Nanoseconds> next_step() const;
    /// What was asked for and is not done gets no answer.
    void end() { requests_.clear(); }

    /// Names that are kept; those of owners of VFs in any case.
    static constexpr std::size_t kMostTitles = 5120;
    /// What people call the owner; empty if that is not known. Not durable.
    [[nodiscard]] std::string title_of(const std::string& owner) const;
    void set_title(const std::string& owner, const std::string& title);
    /// Whether titles were set since the last call.
    [[nodiscard]] bool take_new_titles() { return std::exchange(has_new_titles_, false); }

private:
    /// Lives as long as an answer may still come, also when it is over.
    struct Request {
        std::string owner;
        std::vector<Want> wants;
        Nanoseconds deadline{0};
        Done<std::vector<GivenVf>> done;
        int tries = 0;
        /// Claims of its VFs are under way in GPU threads.
        bool is_claiming = false;
        bool is_cancelled = false;
        bool is_over = false;
        std::vector<Target> chosen;
        std::set<Target> had;  ///< before it asked
        std::vector<GivenVf> given;
    };
    /// A VF that is a consumer's, as a snapshot says.
    struct Held {
        Uuid vf{};
        std::string owner;
        std::uint64_t generation = 0;  ///< of the claim
        VfSockets sockets;
        bool is_revoked = false;
    };
    using HeldVfs = std::map<Target, Held>;

    Result<> start_assign(const std::string& owner, const std::vector<Want>& wants,
                          const Options& options, const Done<std::vector<GivenVf>>& done);
    void try_choose(const std::shared_ptr<Request>& request);
    void claim_next(const std::shared_ptr<Request>& request);
    void on_claimed(const std::shared_ptr<Request>& request, const Target& target,
                    const Result<std::uint64_t>& generation);
    void finish(const std::shared_ptr<Request>& request);
    void give_up(const std::shared_ptr<Request>& request, const Error& error);
    void undo_claims(Request& request);
    Result<> link(Request& request);
    Result<> take_title(const std::string& owner, const OptionReader& options);
    void forget_unused_titles();
    void take_back_others(const Request& request);
    void take_back_one(const Target& target, const Held& held, Done<> done);
    [[nodiscard]] static Held held(const VfView& view);
    [[nodiscard]] HeldVfs held_by(const std::string& owner) const;
    /// A claim may end in other ways than by take_back(): released or taken over by hand, its VF
    /// destroyed. Its consumer loses the sockets then, too.
    void follow_claims();
    void follow(const GpuHost& gpu);
    void note_opened(const Target& target);
    /// After a boot nobody hears of the end of a domain that ran before it. Its claim ends here,
    /// with a scrub, if it is off and the claim is no reservation.
    void release_left_behind(const Target& target, const VfView& view);
    /// False if the VF is another's or another one now: the consumer has lost its paths as well. If
    /// it is nobody's they stay, for adopt().
    bool may_go_on(const Target& target, Held& held);
    /// Also of a VF that is not to be seen, since its GPU is not in service: claims are durable.
    [[nodiscard]] std::optional<VfRecord> record_of(const Target& target) const;
    /// PfLost if a VF is claimed on record by `owner` and not to be seen.
    [[nodiscard]] Result<> check_all_seen(const std::string& owner) const;

    Manager& manager_;
    VmSocketsPort& sockets_;
    const Clock& clock_;
    std::deque<std::shared_ptr<Request>> requests_;  ///< in the order in which they came
    std::set<Target> reserved_;                      ///< being claimed by a request
    HeldVfs opened_;                                 ///< whose sockets or paths a consumer may have
    std::vector<std::uint64_t> followed_;            ///< by GPU, as GpuHost::is_newer() keeps it
    std::map<std::string, std::string> titles_;
    bool has_new_titles_ = false;
    IsOff is_off_;
};

}  // namespace vgpu::daemon
