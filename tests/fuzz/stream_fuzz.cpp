// SPDX-License-Identifier: MIT
//
// Fuzzes RESTORE of a VF from a stream that may come from anybody (core/vf/restore.c). Input:
//
//   a byte      bits of Head: what is wrong with the head of the stream
//   sections    each is a byte of kind, a byte with bits of Section, two bytes of length, and the
//               values that these bits say are in the input
//
// Checksums are right unless a bit says otherwise, so that the checks behind them are reached. For
// any stream, a RESTORE that fails has a message, the memory of the stream is freed, a VF whose
// RESTORE succeeds can be resumed, and no VF ends in MISMATCH.
#include "pf-driver/core/vf/stream.h"
#include "tests/unit/core/rig.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

namespace {

using namespace vgpu::test;

constexpr std::uint32_t kVf = 1;
constexpr std::uint64_t kMib = 16;
constexpr std::uint64_t kVramBytes = kMib << 20;

enum Head : std::uint8_t { kHeadIsChanged = 1, kHeadIsSealed = 2 };
enum Section : std::uint8_t {
    kOffsetIsGiven = 1,
    kBytesAreGiven = 2,
    kIsDamaged = 4,
    kIsCut = 8,
    kIsInMib = 16,
    kIsRest = 32,
};

void require(bool is_true) {
    if (!is_true) std::abort();
}

/// Values from the input, or zeroes when it has ended.
class Input {
public:
    explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
    template <typename T> T take() {
        T value{};
        const std::size_t count = std::min(sizeof(T), bytes_.size());
        std::memcpy(&value, bytes_.data(), count);
        bytes_ = bytes_.subspan(count);
        return value;
    }
    [[nodiscard]] bool is_over() const { return bytes_.empty(); }

private:
    std::span<const std::uint8_t> bytes_;
};

class Stream {
public:
    explicit Stream(const vgpu_pf& pf) : pf_(pf) {}

    void add_head(Input& in) {
        const auto how = in.take<std::uint8_t>();
        stream_head head{};
        head.magic = STREAM_MAGIC;
        head.version = STREAM_VERSION;
        head.driver_loaded = how >> 4 & 1;
        head.vram_bytes = kVramBytes;
        head.device_cus = pf_.device.cu_count;
        head.cu_mask = pf_.vfs[kVf].config.cu_mask;
        const std::size_t at = how & kHeadIsChanged ? in.take<std::uint8_t>() % sizeof(head) : 0;
        const auto value = how & kHeadIsChanged ? in.take<std::uint8_t>() : std::uint8_t{0};
        if ((how & kHeadIsSealed) != 0) change(head, at, value);
        head.crc = vgpu_pf_text_crc32c(0, &head, offsetof(stream_head, crc));
        if ((how & kHeadIsSealed) == 0) change(head, at, value);
        append(&head, sizeof(head));
    }
    void add_section(Input& in) {
        const auto kind = in.take<std::uint8_t>();
        const auto how = in.take<std::uint8_t>();
        section_head head{};
        head.kind = kind % 8;
        head.offset = how & kOffsetIsGiven ? in.take<std::uint64_t>() : offset_;
        head.bytes = in.take<std::uint16_t>();
        if ((how & kIsInMib) != 0) head.bytes = head.bytes % 32 << 20;
        if ((how & kIsRest) != 0) head.bytes = kVramBytes - offset_;
        if (head.kind == SECTION_END) head.bytes = 0;
        const auto contents = static_cast<std::uint8_t>(head.bytes);
        if ((how & kBytesAreGiven) != 0) head.bytes = in.take<std::uint64_t>();
        add(head, how, contents);
        if (head.kind == SECTION_VRAM || head.kind == SECTION_ZERO) offset_ += head.bytes;
    }
    [[nodiscard]] std::vector<std::uint8_t> bytes() const { return bytes_; }

private:
    static constexpr std::uint64_t kMaxPayload = 2u << 20;  ///< more than a section may have

    static void change(stream_head& head, std::size_t at, std::uint8_t value) {
        std::uint8_t bytes[sizeof(head)];
        std::memcpy(bytes, &head, sizeof(head));
        bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ value);
        std::memcpy(&head, bytes, sizeof(head));
    }
    void append(const void* data, std::size_t size) {
        const auto* bytes = static_cast<const std::uint8_t*>(data);
        bytes_.insert(bytes_.end(), bytes, bytes + size);
    }
    void add(section_head& head, std::uint8_t how, std::uint8_t contents) {
        const bool has_payload = head.kind == SECTION_STATE || head.kind == SECTION_VRAM;
        const std::vector<std::uint8_t> payload(has_payload ? std::min(head.bytes, kMaxPayload) : 0,
                                                contents);
        head.crc =
            vgpu_pf_text_crc32c(0, payload.data(), static_cast<std::uint32_t>(payload.size()));
        head.crc = vgpu_pf_text_crc32c(head.crc, &head.kind, sizeof(head.kind));
        head.crc =
            vgpu_pf_text_crc32c(head.crc, &head.offset, sizeof(head.offset) + sizeof(head.bytes));
        if ((how & kIsDamaged) != 0) head.crc ^= 1;
        append(&head, sizeof(head));
        append(payload.data(), how & kIsCut ? payload.size() / 2 : payload.size());
    }

    const vgpu_pf& pf_;
    std::uint64_t offset_ = 0;
    std::vector<std::uint8_t> bytes_;
};

/// Makes VF1 a paused VF for each input. Time passes, so that no limit of the guard is reached.
void prepare(Rig& rig) {
    static_cast<void>(rig.control(kVf, VGPU_PF_RESET));
    for (int i = 0; i < 100 && rig.vf(kVf).state == VGPU_PF_VF_RESETTING; ++i)
        rig.gpu.run_for(10 * kMs);
    rig.gpu.run_for(kSecond);
    rig.load_driver(kVf);
    require(rig.control(kVf, VGPU_PF_PAUSE) == 0);
    rig.gpu.done.clear();
    rig.gpu.log_lines.clear();
}

void check(Rig& rig, int error, const vgpu_pf_stream& restore, std::size_t bytes) {
    require(rig.pf->stream.kind == VGPU_STREAM_NONE && rig.pf->stream.buffer.cpu == nullptr);
    require(rig.gpu.calls_back == 0 && rig.vf(kVf).control.mismatches == 0);
    require(restore.bytes <= bytes);
    if (error != 0) require(!rig.message().empty());
    if (error == 0) require(rig.control(kVf, VGPU_PF_RESUME) == 0);
    require(rig.vf(kVf).state != VGPU_PF_VF_MISMATCH);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static Rig rig({.total_vfs = 1, .vram_mb = 48, .aperture_mb = 16, .cu_count = 4});
    static const bool is_provisioned = rig.provision(kVf, kMib) == 0;
    require(is_provisioned);
    prepare(rig);
    Input in(std::span(data, size));
    Stream stream(*rig.pf);
    stream.add_head(in);
    for (int sections = 0; sections < 32 && !in.is_over(); ++sections) stream.add_section(in);
    const std::vector<std::uint8_t> made = stream.bytes();
    rig.gpu.stream_in.assign(made);
    const std::size_t bytes = rig.gpu.stream_in.size();
    vgpu_pf_stream restore{sizeof(restore), kVf, 0, 0, 0};
    const int error = rig.request(VGPU_PF_OP_RESTORE, restore);
    check(rig, error, restore, bytes);
    return 0;
}
