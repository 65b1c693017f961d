// SPDX-License-Identifier: MIT
#include "tests/support/vf_client/sdma_queue.h"

#include <algorithm>

#include "pf-driver/hw/pm4.h"
#include "pf-driver/hw/sdma.h"
#include "tests/support/vf_client/mqd.h"
#include "tests/support/vf_client/process.h"

namespace vgpu::test {
namespace {

constexpr std::uint64_t kRptr = 0, kWptr = 64;
constexpr std::uint32_t kSubmitBytes = 256;  // ROCr pads its submissions to this

}  // namespace

SdmaQueue::SdmaQueue(Process& process, unsigned engine, std::uint32_t doorbell)
    : process_(process),
      engine_(engine),
      doorbell_(doorbell),
      ring_(process.allocate(kRingBytes)),
      words_(process.allocate(4096)),
      mqd_(process.client().gart().allocate(4096)) {
    write_sdma_mqd(mqd_, {.ring = ring_.address,
                          .ring_bytes = kRingBytes,
                          .rptr = words_.address + kRptr,
                          .wptr = words_.address + kWptr,
                          .doorbell = doorbell_,
                          .engine = engine_});
}

SdmaQueue::~SdmaQueue() {
    process_.free(ring_);
    process_.free(words_);
    process_.client().gart().free(mqd_);
}

Dwords SdmaQueue::map_packet() const {
    return pm4::map_queue_anywhere({.doorbell = doorbell_,
                                    .mqd = mqd_.address,
                                    .wptr = words_.address + kWptr,
                                    .engine = engine_ == 0 ? PM4_ENGINE_SDMA0 : PM4_ENGINE_SDMA1});
}

std::uint64_t SdmaQueue::read_pointer() const {
    return words_.load<std::uint64_t>(kRptr);
}

void SdmaQueue::push(const Dwords& packets) {
    auto stream = packets;
    const auto pad = (kSubmitBytes - stream.size() * 4 % kSubmitBytes) % kSubmitBytes;
    if (pad != 0) stream += sdma::nop(static_cast<std::uint32_t>(pad / 4 - 1));
    wait_for("SDMA queue: room", milliseconds(20000),
             [&] { return wptr_ - read_pointer() + stream.size() * 4 <= kRingBytes; });
    for (const auto dword : stream) {
        ring_.store(wptr_ % kRingBytes, dword);
        wptr_ += 4;
    }
    words_.store(kWptr, wptr_);
    process_.client().device().doorbell(doorbell_, wptr_);
}

void SdmaQueue::push(const Dwords& packets, const Signal& done) {
    auto stream = packets;
    const auto mailbox = done.memory.load<std::uint64_t>(offsetof(aql_signal, event_mailbox_ptr));
    stream += sdma::atomic_add(done.address() + offsetof(aql_signal, value), -1);
    stream += sdma::fence(mailbox, done.event_id);
    stream += sdma::trap(done.event_id);
    push(stream);
}

void SdmaQueue::copy(std::uint64_t destination, std::uint64_t source, std::uint64_t bytes,
                     const Signal& done) {
    Dwords stream;
    for (std::uint64_t at = 0; at < bytes; at += SDMA_MAX_COPY_BYTES) {
        const auto part = std::min<std::uint64_t>(bytes - at, SDMA_MAX_COPY_BYTES);
        stream += sdma::copy(destination + at, source + at, static_cast<std::uint32_t>(part));
    }
    push(stream, done);
}

}  // namespace vgpu::test
