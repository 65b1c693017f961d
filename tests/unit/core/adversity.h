// SPDX-License-Identifier: MIT
//
// Adversity: three tenants on a ModelGpu, and everything that can happen to them. VF2 is the one
// that things happen to, VF1 and VF3 are its neighbours. A test brings the run table into a
// situation, breaks the device in some way, lets events happen, and calls check(), which demands
// that nothing is stuck: every request was answered once, nothing is pending, and every VF can be
// brought back into service, run, be released and be given to a next tenant.
#pragma once

#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/core/rig.h"

namespace vgpu::test {

class Adversity {
public:
    static constexpr std::uint32_t kNeighbour = 1, kSubject = 2, kThird = 3, kVfs = 3;

    /// Names of what may happen to a VF, of where the run table may be with VF2, of what may break.
    struct Event {
        const char* name;
        void (*happen)(Adversity& world, std::uint32_t vf);
    };
    struct Situation {
        const char* name;
        void (*prepare)(Adversity& world);
        bool (*is_reached)(Adversity& world);
    };
    struct Trouble {
        const char* name;
        void (*arise)(Adversity& world);
    };
    [[nodiscard]] static const std::vector<Event>& events();
    [[nodiscard]] static const std::vector<Situation>& situations();
    [[nodiscard]] static const std::vector<Trouble>& troubles();

    struct Setup {
        bool is_stepwise = false;
        std::uint32_t vfs = kVfs;
        std::uint64_t vram_mib = 16;  ///< of each VF
        std::uint32_t quantum_us = 20'000;
        std::uint32_t max_gap_us = 0;  ///< of each VF; 0: no limit
    };
    struct GuestRequest {
        std::size_t received;  ///< messages the guest had got then
        std::uint64_t time_ns;
    };
    /// Device, core, and what tenants and operators wait for. It fits only its own Adversity.
    struct Snapshot {
        ModelGpu::Snapshot gpu;
        std::vector<std::uint8_t> core;
        std::uint64_t last_token;
        std::map<std::uint64_t, std::shared_ptr<void>> open;
        std::optional<GuestRequest> asked[kVfs + 1];
    };

    Adversity() : Adversity(Setup{}) {}
    explicit Adversity(const Setup& setup);
    ~Adversity() { rig.gpu.forward = {}; }
    Adversity(const Adversity&) = delete;
    Adversity& operator=(const Adversity&) = delete;

    /// False: the trouble has led elsewhere.
    bool reach(const Situation& situation, const Trouble& trouble);
    /// An operator's request, which may end later.
    template <typename T> void ask(std::uint32_t op, const T& payload) {
        auto kept = std::make_shared<T>(payload);
        const std::uint64_t token = ++last_token_;
        open_[token] = kept;
        const int error = vgpu_pf_request_run(rig.pf.get(), op, kept.get(), token);
        if (error != -EINPROGRESS && open_.erase(token) == 0)
            wrong_ = "a request was answered at once and once more";
    }
    void ask_control(std::uint32_t vf, vgpu_pf_control_action action);
    void ask_about(std::uint32_t op, std::uint32_t vf);
    void provision(std::uint32_t vf);
    void cancel_last();
    /// A guest's request that must be answered, until it sends another message or is reset.
    void guest_asks(std::uint32_t vf, std::uint32_t message);
    void guest_forgets(std::uint32_t vf) { asked_[vf].reset(); }
    /// What the guard tells the life cycle, if the state allows it.
    void post(std::uint32_t vf, vgpu_vf_event event, vgpu_pf_reason reason);
    void lose_device();
    void get_device_back();
    /// The process of the core dies; a new one finds the device. Clients lose their requests.
    void restart_core();
    [[nodiscard]] Snapshot save() const;
    void restore(const Snapshot& snapshot);
    /// Nothing is pending: every request is answered, and no VF is between two states.
    [[nodiscard]] bool is_quiet();
    /// The time of a guest's request that has not been answered yet.
    [[nodiscard]] std::optional<std::uint64_t> guest_waits_since(std::uint32_t vf);
    /// At any time: whoever is said to be off the engine does not run there, and waits for nothing.
    /// Empty: so it is.
    [[nodiscard]] std::string check_engine();
    /// Whenever it is quiet. Empty: nothing is left over.
    [[nodiscard]] std::string check_rest();
    /// In the end, with the trouble over. Empty: nothing is wrong.
    [[nodiscard]] std::string check();

    Rig rig;

private:
    static constexpr std::uint64_t kFirstToken = 1'000'000;  ///< the rig's own are smaller

    void run_until_quiet();
    void end_trouble();
    int set_table();
    [[nodiscard]] std::string check_answers();
    [[nodiscard]] std::string revive(std::uint32_t vf);
    [[nodiscard]] int step_towards_service(std::uint32_t vf);
    [[nodiscard]] std::string load(std::uint32_t vf);
    [[nodiscard]] std::string check_service();
    [[nodiscard]] std::string give_to_next_tenant(std::uint32_t vf);

    const Setup setup_;
    std::uint64_t last_token_ = kFirstToken;
    std::map<std::uint64_t, std::shared_ptr<void>> open_;
    std::optional<GuestRequest> asked_[kVfs + 1];
    std::string wrong_;
};

}  // namespace vgpu::test
