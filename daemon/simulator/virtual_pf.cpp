// SPDX-License-Identifier: MIT
#include "daemon/simulator/virtual_pf.h"

#include "daemon/adapters/event_ring.h"

#include <sys/mman.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace vgpu::simulator {

using daemon::Result;
using daemon::adapters::EventRing;
using daemon::adapters::UapiChannel;
using daemon::adapters::UapiClient;
using daemon::adapters::UapiReply;
using daemon::adapters::UapiRequest;
using daemon::adapters::UniqueFd;
using daemon::adapters::Wakeup;

namespace {

constexpr std::uint64_t kClient = 1;  ///< vgpud, as a client of the PF core
constexpr std::uint32_t kHeadBytes = VGPU_PF_RING_EVENTS_OFFSET;
constexpr std::uint32_t kRingBytes = kHeadBytes + VirtualPf::kRingEntries * sizeof(vgpu_pf_event);

}  // namespace

class VirtualPf::Channel final : public UapiChannel {
public:
    explicit Channel(VirtualPf& pf) : pf_(pf) {}

    Result<UapiReply> exchange(const UapiRequest& request) override {
        UapiReply reply;
        reply.body.assign(request.body.begin(), request.body.end());
        // the core requires an aligned struct
        std::vector<std::uint64_t> body((reply.body.size() + 7) / 8);
        std::memcpy(body.data(), reply.body.data(), reply.body.size());
        const Answer answer = pf_.run(request.op, body.data());
        if (answer.error != 0) return refused(answer.error, answer.message);
        std::memcpy(reply.body.data(), body.data(), reply.body.size());
        return reply;
    }
    Result<std::unique_ptr<daemon::EventPort>> open_events() override {
        vgpu_pf_event_ring_info info{};
        info.size = sizeof info;
        info.entries = kRingEntries;
        info.bytes = kRingBytes;
        info.events_offset = kHeadBytes;
        auto ring = EventRing::map(info, UniqueFd(::dup(pf_.ring_memory_.get())), UniqueFd());
        if (!ring) return tl::make_unexpected(ring.error());
        return std::unique_ptr<daemon::EventPort>(std::move(*ring));
    }
    [[nodiscard]] int fd() const override { return -1; }
    void interrupt() override {}

private:
    VirtualPf& pf_;
};

VirtualPf::VirtualPf(const ModelGpu::Options& options)
    : gpu(options),
      core_(static_cast<vgpu_pf*>(::operator new(vgpu_pf_bytes()))),
      ring_memory_(::memfd_create("event-ring", MFD_CLOEXEC)) {
    if (!ring_memory_.is_open() || ::ftruncate(ring_memory_.get(), kRingBytes) != 0)
        throw std::runtime_error("no memory for the event ring");
    ring_ = ::mmap(nullptr, kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring_memory_.get(), 0);
    if (ring_ == MAP_FAILED) throw std::runtime_error("cannot map the event ring");
    gpu.forward.request_done = [this](std::uint64_t token, int error, const char* message) {
        done_[token] = {error, message};
    };
    vgpu_pf_params params{};
    params.boot_id = 1;
    params.time_scale = 1;
    params.event_ring = ring_;
    params.event_ring_bytes = kRingBytes;
    std::strcpy(params.name, "gpu0");
    vgpu_pf_init(core_.get(), gpu.os(), &params);
    gpu.bind(core_.get());
    vgpu_pf_attach(core_.get());
    gpu.run_for(0);  // delivers pending interrupts
}

VirtualPf::~VirtualPf() {
    gpu.bind(nullptr);
    ::munmap(ring_, kRingBytes);
}

std::unique_ptr<daemon::Backend> VirtualPf::port() {
    return std::make_unique<UapiClient>("gpu0", [this](const std::string&, const Wakeup&) {
        return Result<std::unique_ptr<UapiChannel>>(std::make_unique<Channel>(*this));
    });
}

vgpu_pf_vf_view VirtualPf::vf(std::uint32_t number) const {
    return vgpu_pf_view_vf(core_.get(), number);
}

vgpu_pf_engine_view VirtualPf::engine() const {
    return vgpu_pf_view_engine(core_.get());
}

VirtualPf::Answer VirtualPf::run(vgpu_pf_op op, void* body) {
    const std::uint64_t token = ++last_token_;
    Answer answer{vgpu_pf_request_run_for(core_.get(), kClient, op, body, token),
                  vgpu_pf_view_message(core_.get())};
    gpu.run_for(0);
    while (answer.error == -EINPROGRESS) {
        if (const auto done = done_.extract(token)) {
            answer = done.mapped();
            break;
        }
        if (gpu.next_event() == kEndless)
            return {-ETIMEDOUT, "the model has no further event, so the request cannot end"};
        wait();
    }
    if (answer.error == 0 && op == VGPU_PF_OP_SET_RUN_TABLE && on_table)
        on_table(static_cast<const vgpu_pf_run_table*>(body)->generation);
    return answer;
}

}  // namespace vgpu::simulator
