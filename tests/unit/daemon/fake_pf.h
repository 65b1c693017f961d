// SPDX-License-Identifier: MIT
//
// FakePf: a PF core in memory as a Backend. Keeps VRAM, VFs, table and events as the real one
// promises to; refuses what it must refuse. Tests reach into it to lose it, to fail its next
// operation, or to let VFs run. One object outlives the ports made from it, as vgpu-pf outlives
// vgpud.
#pragma once

#include "daemon/backend/backend.h"
#include "daemon/backend/pf_core.h"
#include "daemon/ports/clock.h"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace vgpu::daemon::testing {

class VirtualClock final : public Clock {
public:
    [[nodiscard]] Nanoseconds now() const override { return now_; }
    void advance(Nanoseconds by) { now_ += by; }
    [[nodiscard]] Nanoseconds boot_time() const override { return now_ - booted_at_; }
    [[nodiscard]] std::string boot_id() const override { return "boot-" + std::to_string(boots_); }
    [[nodiscard]] std::chrono::seconds unix_time() const override {
        return std::chrono::duration_cast<std::chrono::seconds>(now_) + wall_ahead_;
    }
    /// Somebody puts the wall clock right, or wrong.
    void step_wall(std::chrono::seconds by) { wall_ahead_ += by; }
    void reboot() {
        booted_at_ = now_;
        ++boots_;
    }

private:
    Nanoseconds now_ = std::chrono::seconds(100);
    Nanoseconds booted_at_{0};
    int boots_ = 0;
    std::chrono::seconds wall_ahead_{0};
};

class FakePf {
public:
    static constexpr std::uint64_t kMiB = 1u << 20;

    explicit FakePf(VirtualClock& clock) : clock_(clock) {
        info.uapi_version = VGPU_PF_UAPI_VERSION;
        info.total_vfs = 16;
        info.vram_bytes = 2048 * kMiB;
        info.vram_free_bytes = info.vram_largest_free_bytes = 2032 * kMiB;
        info.vram_unit_bytes = 16 * kMiB;
        info.vram_aperture_bytes = 256 * kMiB;
        info.doorbell_pages = 512;
        info.cu_count = 8;
        table.count = 1;
        table.entries[0] = {.vf = 1, .quantum_us = 6000};
    }

    void push(vgpu_pf_event_type type, std::uint32_t vf = 0, std::uint64_t arg = 0,
              std::uint64_t arg2 = 0, std::uint64_t duration_ns = 0) {
        vgpu_pf_event event{};
        event.seq = next_seq++;
        event.time_ns = static_cast<std::uint64_t>(clock_.now().count());
        event.type = type;
        event.vf = vf;
        event.duration_ns = duration_ns;
        event.arg = arg;
        event.arg2 = arg2;
        ring.push_back(event);
        if (on_event) on_event(event);
        while (ring.size() > ring_entries) ring.pop_front();
    }
    /// `vf` runs for `ns` from now on.
    void run(std::uint32_t vf, std::int64_t ns) {
        clock_.advance(Nanoseconds{ns});
        vfs.at(vf).service_ns += static_cast<std::uint64_t>(ns);
        push(VGPU_PF_EVENT_RUN, vf, 1, 0, static_cast<std::uint64_t>(ns));
    }
    void give_work(std::uint32_t vf) {
        vfs.at(vf).has_work = 1;
        push(VGPU_PF_EVENT_WAKE, vf, 1ull << (vf - 1));
    }
    void set_state(std::uint32_t vf, vgpu_pf_vf_state state) {
        const std::uint32_t old = std::exchange(vfs.at(vf).state, state);
        push(VGPU_PF_EVENT_STATE, vf, state, old);
    }
    void finish_scrub(std::uint32_t vf) {
        is_scrubbed.insert(vf);
        push(VGPU_PF_EVENT_SCRUBBED, vf, vfs.at(vf).generation);
    }
    void restart() {
        vfs.clear();
        is_scrubbed.clear();
        info.vram_free_bytes = info.vram_largest_free_bytes = 2032 * kMiB;
        table.count = 1;
        ring.clear();
        next_seq = 1;
    }
    [[nodiscard]] Nanoseconds now() const { return clock_.now(); }

    vgpu_pf_info info{};
    std::map<std::uint32_t, vgpu_pf_vf> vfs;
    vgpu_pf_run_table table{};
    std::deque<vgpu_pf_event> ring;
    std::size_t ring_entries = 1024;
    std::uint64_t next_seq = 1;
    std::uint32_t next_generation = 1;
    std::set<std::uint32_t> is_scrubbed;
    std::vector<std::string> log;      ///< operations that change something, in order
    std::map<std::string, int> asked;  ///< how often each operation came, refused ones as well
    std::string refuse;                ///< name of the operation to refuse, e.g. "provision"
    /// Refuses what it says so of: the operation and the VF it changes.
    std::function<bool(const std::string& operation, std::uint32_t vf)> refuses;
    std::function<bool(const vgpu_pf_provision&)> refuses_resources;  ///< of VFs to be made
    bool scrubs_at_once = false;
    bool holds_scrubs = false;  ///< UapiServer is not to finish them either
    bool holds_resets = false;  ///< a reset is over when the test sets another state
    bool is_there = true;
    bool is_provision_answer_lost = false;               ///< it is done, but the connection is gone
    std::function<void(const vgpu_pf_event&)> on_event;  ///< also tell somebody else
    std::function<void()> on_change;                     ///< before each change; may throw

private:
    VirtualClock& clock_;
};

class FakeEvents final : public EventPort {
public:
    explicit FakeEvents(FakePf& pf) : pf_(pf), next_(pf.next_seq) {}

    EventBatch read() override {
        EventBatch batch;
        for (const vgpu_pf_event& event : pf_.ring) {
            if (event.seq < next_) continue;
            batch.lost += event.seq - next_;
            next_ = event.seq + 1;
            batch.events.push_back(event);
        }
        return batch;
    }
    [[nodiscard]] std::uint64_t next_seq() const override { return pf_.next_seq; }
    void skip_to_end() override { next_ = pf_.next_seq; }
    [[nodiscard]] int wait_fd() const override { return -1; }

private:
    FakePf& pf_;
    std::uint64_t next_;
};

class FakePfPort final : public Backend {
public:
    explicit FakePfPort(FakePf& pf) : pf_(pf) {}

    Result<> connect() override {
        is_connected_ = pf_.is_there;
        return answer("connect");
    }
    void disconnect() override { is_connected_ = false; }
    [[nodiscard]] bool is_connected() const override { return is_connected_; }
    [[nodiscard]] int connection_fd() const override { return -1; }

    Result<GpuFacts> get_info() override {
        TRY_VOID(answer("get_info"));
        pf_.info.device_time_ns = static_cast<std::uint64_t>(pf_.now().count());
        return facts_of(pf_.info);
    }
    Result<VfFacts> get_vf(std::uint32_t vf) override {
        TRY_VOID(answer("get_vf"));
        const auto at = pf_.vfs.find(vf);
        vgpu_pf_vf absent{};
        absent.vf = vf;
        return facts_of(at == pf_.vfs.end() ? absent : at->second);
    }
    Result<> provision(const vgpu_pf_provision& wanted) override {
        TRY_VOID(change("provision", wanted.vf));
        if (pf_.refuses_resources && pf_.refuses_resources(wanted))
            return fail(ErrorId::PfRefused, "as the test wants");
        vgpu_pf_vf vf{};
        vf.vf = wanted.vf;
        vf.state = VGPU_PF_VF_PROVISIONED;
        vf.generation = pf_.next_generation++;
        vf.vram_bytes = wanted.vram_bytes;
        vf.cu_mask = wanted.cu_mask;
        vf.doorbell_pages = wanted.doorbell_pages;
        std::copy(std::begin(wanted.uuid), std::end(wanted.uuid), std::begin(vf.uuid));
        pf_.vfs[wanted.vf] = vf;
        pf_.info.vram_free_bytes -= wanted.vram_bytes;
        pf_.info.vram_largest_free_bytes = pf_.info.vram_free_bytes;
        if (pf_.is_provision_answer_lost) {
            is_connected_ = false;
            return fail(ErrorId::PfLost, "no answer");
        }
        return {};
    }
    Result<> release(std::uint32_t vf, std::uint32_t) override {
        TRY_VOID(change("release", vf));
        pf_.vfs.at(vf).last_error = 0;
        pf_.set_state(vf, VGPU_PF_VF_SCRUBBING);
        if (pf_.scrubs_at_once) pf_.finish_scrub(vf);
        return {};
    }
    Result<> confirm_scrub(std::uint32_t vf, std::uint32_t) override {
        TRY_VOID(change("confirm_scrub", vf));
        if (!pf_.is_scrubbed.contains(vf)) return fail(ErrorId::PfRefused, "not finished");
        pf_.is_scrubbed.erase(vf);
        pf_.info.vram_free_bytes += pf_.vfs.at(vf).vram_bytes;
        pf_.info.vram_largest_free_bytes = pf_.info.vram_free_bytes;
        pf_.vfs.erase(vf);
        return {};
    }
    Result<> check_scrubbed(std::uint32_t vf, std::uint32_t) override {
        TRY_VOID(answer("check_scrubbed"));
        if (pf_.is_scrubbed.contains(vf)) return {};
        return fail(ErrorId::PfRefused, "not zero");
    }
    Result<> control(std::uint32_t vf, std::uint32_t, vgpu_pf_control_action action) override {
        struct Row {
            std::uint32_t from;  ///< a bit for each state in which it is done (core/vf/control.c)
            vgpu_pf_vf_state to;
        };
        constexpr std::uint32_t kInTurns =
            1u << VGPU_PF_VF_PROVISIONED | 1u << VGPU_PF_VF_READY | 1u << VGPU_PF_VF_RUNNING;
        constexpr std::uint32_t kInUse = kInTurns | 1u << VGPU_PF_VF_PAUSED;
        constexpr std::uint32_t kResettable = kInUse | 1u << VGPU_PF_VF_STOPPED |
                                              1u << VGPU_PF_VF_RESETTING |
                                              1u << VGPU_PF_VF_MISMATCH;
        constexpr std::array kRows{Row{0, VGPU_PF_VF_ABSENT},
                                   Row{kInTurns, VGPU_PF_VF_PAUSED},
                                   Row{1u << VGPU_PF_VF_PAUSED, VGPU_PF_VF_READY},
                                   Row{kInUse | 1u << VGPU_PF_VF_RESETTING, VGPU_PF_VF_STOPPED},
                                   Row{kResettable, VGPU_PF_VF_PROVISIONED},
                                   Row{1u << VGPU_PF_VF_QUARANTINED, VGPU_PF_VF_PROVISIONED}};
        TRY_VOID(change("control", vf));
        const Row& row = kRows.at(action);
        if ((row.from & 1u << pf_.vfs.at(vf).state) == 0)
            return fail(ErrorId::PfRefused, "not in this state");
        const bool is_held = pf_.holds_resets && row.to == VGPU_PF_VF_PROVISIONED;
        pf_.set_state(vf, is_held ? VGPU_PF_VF_RESETTING : row.to);
        return {};
    }
    Result<> set_run_table(const vgpu_pf_run_table& table) override {
        TRY_VOID(change("set_run_table", 0));
        if (table.generation != pf_.table.generation + 1 || table.count == 0)
            return fail(ErrorId::PfRefused, "stale");
        pf_.table = table;
        return {};
    }
    Result<vgpu_pf_run_table> get_run_table() override {
        TRY_VOID(answer("get_run_table"));
        return pf_.table;
    }
    Result<> acquire_lease() override { return answer("acquire_lease"); }
    Result<> dump(int) override { return answer("dump"); }
    void interrupt() override {}
    Result<std::unique_ptr<EventPort>> open_events() override {
        TRY_VOID(answer("open_events"));
        return std::unique_ptr<EventPort>(std::make_unique<FakeEvents>(pf_));
    }

private:
    Result<> answer(const std::string& operation) {
        ++pf_.asked[operation];
        if (!pf_.is_there || !is_connected_) {
            is_connected_ = false;
            return fail(ErrorId::PfLost, operation + ": gone");
        }
        if (pf_.refuse == operation) return fail(ErrorId::PfRefused, "as the test wants");
        return {};
    }
    Result<> change(const std::string& operation, std::uint32_t vf) {
        if (pf_.on_change) pf_.on_change();
        TRY_VOID(answer(operation));
        if (pf_.refuses && pf_.refuses(operation, vf))
            return fail(ErrorId::PfRefused, "as the test wants");
        pf_.log.push_back(vf == 0 ? operation : operation + " " + std::to_string(vf));
        return {};
    }

    FakePf& pf_;
    bool is_connected_ = false;
};

}  // namespace vgpu::daemon::testing
