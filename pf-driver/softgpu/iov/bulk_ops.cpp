// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/iov/bulk_ops.h"

#include <fmt/format.h>

#include <algorithm>

#include "pf-driver/softgpu/base/log.h"

namespace vgpu::softgpu::iov {

namespace {

/// Bytes of one piece of device VRAM. in_pieces() checks between pieces whether stop() was called.
constexpr std::uint64_t kPieceBytes = 4ull << 20;
/// Size of the bounce buffer, and so of a piece that goes through the buffer. The buffer fits into
/// the CPU's cache.
constexpr std::uint64_t kBufferBytes = 64ull << 10;

}  // namespace

/// One row per operation.
struct BulkOps::Row {
    /// What a request of this operation may name: the device (VF 0), a VF, or either of them.
    enum Scope : std::uint8_t { Device, Vf, Both };

    vgpu_hw_op opcode;
    Scope scope;
    Result<> (BulkOps::*execute)(const Request&);
};

const BulkOps::Row BulkOps::kRows[] = {
    {VGPU_OP_DMA_IN, Row::Vf, &BulkOps::dma_in},
    {VGPU_OP_DMA_OUT, Row::Vf, &BulkOps::dma_out},
    {VGPU_OP_SCRUB_VRAM, Row::Both, &BulkOps::scrub_vram},
    {VGPU_OP_SCRUB_STATE, Row::Vf, &BulkOps::scrub_state},
    {VGPU_OP_VERIFY_ZERO, Row::Device, &BulkOps::verify_zero},
    {VGPU_OP_SAVE_STATE, Row::Vf, &BulkOps::save_state},
    {VGPU_OP_LOAD_STATE, Row::Vf, &BulkOps::load_state},
};

BulkOps::BulkOps(mem::DeviceVram& vram, mem::SystemMemory& bus, VfControls vfs)
    : vram_(vram), bus_(bus), vfs_(std::move(vfs)) {}

/// Sets the status to BUSY before it returns: a PF that polls right after its write must not see
/// the DONE of the last operation.
void BulkOps::start(const Request& request) {
    {
        const std::scoped_lock lock(mutex_);
        if (status_ == VGPU_OP_BUSY) {
            log::warn("PF: operation {} refused: another operation is busy", request.opcode);
            return;
        }
        status_ = VGPU_OP_BUSY;
        size_ = request.size;
        waiting_ = request;
    }
    changed_.notify_all();
}

void BulkOps::run() {
    while (!is_stopping_) {
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return waiting_.has_value() || is_stopping_; });
        }
        run_pending();
    }
}

void BulkOps::stop() {
    {
        const std::scoped_lock lock(mutex_);
        is_stopping_ = true;
    }
    changed_.notify_all();
}

/// The status is written last, after size_: a PF that sees DONE reads the right size.
void BulkOps::run_pending() {
    Request request;
    {
        const std::scoped_lock lock(mutex_);
        if (!waiting_) return;
        request = *std::exchange(waiting_, std::nullopt);
    }
    const Result<> result = execute(request);
    if (!result)
        log::warn("PF: operation {} of VF{} refused: {}", request.opcode, raw(request.vf),
                  result.error().message);
    status_ = result ? VGPU_OP_DONE : VGPU_OP_REFUSED;
}

Result<> BulkOps::execute(const Request& request) {
    if (request.opcode == VGPU_OP_NONE) return {};
    const auto row = std::ranges::find_if(kRows, [&](const Row& r) {
        return static_cast<std::uint32_t>(r.opcode) == request.opcode;
    });
    if (row == std::end(kRows)) return fail(ENOSYS, "there is no such operation");
    TRY_VOID(check(request, *row));
    return (this->*row->execute)(request);
}

Result<> BulkOps::check(const Request& request, const Row& row) const {
    if (raw(request.vf) > vfs_.count()) return fail(ENODEV, "there is no such VF");
    if (row.scope == Row::Vf && request.vf == kPf) return fail(EINVAL, "the operation needs a VF");
    if (row.scope == Row::Device && request.vf != kPf)
        return fail(EINVAL, "the operation is for device VRAM; name no VF");
    return {};
}

template <typename Piece>
Result<> BulkOps::in_pieces(std::uint64_t size, std::uint64_t piece_bytes, Piece piece) {
    for (std::uint64_t done = 0; done < size;) {
        if (is_stopping_) return fail(ECANCELED, "the device is stopping");
        const std::uint64_t count = std::min(size - done, piece_bytes);
        TRY_VOID(piece(done, count));
        done += count;
    }
    return {};
}

Result<> BulkOps::write(const Request& request, std::uint64_t at, std::span<const std::byte> data) {
    const std::uint64_t offset = request.destination + at;
    if (!vfs_[request.vf].write_vram(VfOffset{offset}, data))
        return fail(ERANGE, fmt::format("offset {:#x} is outside the VF's VRAM", offset));
    return {};
}

/// Copies through a bounce buffer, because neither VRAM nor PF memory need be contiguous.
Result<> BulkOps::dma_in(const Request& request) {
    std::vector<std::byte> buffer(kBufferBytes);
    return in_pieces(request.size, kBufferBytes, [&](std::uint64_t at, std::uint64_t count) {
        const auto part = std::span(buffer).first(count);
        const bool is_read = bus_.read(Iova{request.source + at}, part);
        return is_read ? write(request, at, part)
                       : Result<>(fail(EFAULT, "the bus memory is not mapped for reading"));
    });
}

Result<> BulkOps::dma_out(const Request& request) {
    std::vector<std::byte> buffer(kBufferBytes);
    return in_pieces(
        request.size, kBufferBytes, [&](std::uint64_t at, std::uint64_t count) -> Result<> {
            const auto part = std::span(buffer).first(count);
            if (!vfs_[request.vf].read_vram(VfOffset{request.source + at}, part))
                return fail(ERANGE, fmt::format("offset {:#x} is outside the VF's VRAM",
                                                request.source + at));
            if (!bus_.write(Iova{request.destination + at}, part))
                return fail(EFAULT, "the bus memory is not mapped for writing");
            return {};
        });
}

Result<> BulkOps::scrub_vram(const Request& request) {
    if (request.vf != kPf) {
        const std::vector<std::byte> zeroes(kBufferBytes);
        return in_pieces(request.size, kBufferBytes, [&](std::uint64_t at, std::uint64_t count) {
            return write(request, at, std::span(zeroes).first(count));
        });
    }
    if (!vram_.contains(DeviceOffset{request.destination}, {request.size}))
        return fail(ERANGE, "the range is outside VRAM");
    return in_pieces(request.size, kPieceBytes, [&](std::uint64_t at, std::uint64_t count) {
        return vram_.scrub(DeviceOffset{request.destination + at}, {count});
    });
}

Result<> BulkOps::scrub_state(const Request& request) {
    return vfs_[request.vf].scrub_state();
}

Result<> BulkOps::verify_zero(const Request& request) {
    if (!vram_.contains(DeviceOffset{request.source}, {request.size}))
        return fail(ERANGE, "the range is outside VRAM");
    return in_pieces(request.size, kPieceBytes, [&](std::uint64_t at, std::uint64_t count) {
        return vram_.verify_zero(DeviceOffset{request.source + at}, {count});
    });
}

Result<> BulkOps::save_state(const Request& request) {
    TRY(const std::vector<std::byte> stream, vfs_[request.vf].save_state());
    size_ = stream.size();  // even if the state does not fit, because the PF reads the size
    if (stream.size() > request.size)
        return fail(ENOSPC, fmt::format("the state needs {} bytes", stream.size()));
    if (!bus_.write(Iova{request.destination}, stream))
        return fail(EFAULT, "the bus memory is not mapped for writing");
    return {};
}

/// Copies the whole stream before the VF loads it, because the PF may change its memory during the
/// load.
Result<> BulkOps::load_state(const Request& request) {
    if (request.size > kMaxStateBytes) return fail(E2BIG, "no state is that large");
    std::vector<std::byte> stream(request.size);
    if (!bus_.read(Iova{request.source}, stream))
        return fail(EFAULT, "the bus memory is not mapped for reading");
    return vfs_[request.vf].load_state(stream);
}

}  // namespace vgpu::softgpu::iov
