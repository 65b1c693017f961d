// SPDX-License-Identifier: MIT
//
// BulkOps: the operations of VGPU_OP_COMMAND (hw/gpuiov.h): fill, copy, DMA, scrub, verify, save
// and load of device state. The PF starts one by a register write and polls OP_STATUS; it is
// executed on the op thread, because moving VRAM takes longer than a register access may. One
// operation at a time; a start while one is busy is refused and logged.
//
// Ranges are checked here: FILL, COPY, SCRUB and VERIFY of device VRAM are refused as a whole
// before their first byte; DMA and what goes through a VF's page table end at the first piece that
// leaves the memory they name. Work is cut into pieces, so stop() is quick.
//
// start(), status(), size(): io thread. run(): op thread. stop(): any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "pf-driver/hw/gpuiov.h"
#include "pf-driver/softgpu/iov/vf_panel.h"
#include "pf-driver/softgpu/mem/system_memory.h"
#include "pf-driver/softgpu/mem/vram.h"

namespace vgpu::softgpu::iov {

class BulkOps {
public:
    /// The OP_* registers as they stood when OP_COMMAND was written.
    struct Request {
        std::uint32_t opcode = VGPU_OP_NONE;
        VfId vf = kPf;  ///< whose VRAM or state; kPf: device VRAM
        /// Source, destination and size are in bytes. Offsets into the VRAM that `vf` names, except
        /// the bus side of DMA_IN, DMA_OUT, SAVE_STATE and LOAD_STATE, which is an address in the
        /// PF's memory.
        std::uint64_t source = 0;
        std::uint64_t destination = 0;
        std::uint64_t size = 0;
        /// FILL only; repeated from the first byte of the range on.
        std::uint32_t pattern = 0;
    };
    /// Largest state stream LOAD_STATE accepts.
    /// The stream is held in memory as a whole; this bounds what a PF can make softgpu allocate.
    static constexpr std::uint64_t kMaxStateBytes = 256ull << 20;

    /// `bus` is the PF's memory.
    BulkOps(mem::DeviceVram& vram, mem::SystemMemory& bus, VfPanels vfs);

    /// Returns at once, with status() BUSY. While another operation is busy the new one is dropped
    /// and only the log says so: a PF polls status() before it starts the next.
    void start(const Request& request);
    [[nodiscard]] vgpu_hw_op_status status() const { return status_.load(); }
    /// OP_SIZE as the device changed it: the length of a saved state.
    [[nodiscard]] std::uint64_t size() const { return size_.load(); }

    /// Executes operations until stop().
    void run();
    /// For good: the operation that is executing ends REFUSED at its next piece.
    void stop();
    /// Executes the operation that waits, if any (tests; what run() loops over).
    void run_pending();

private:
    /// One per opcode; see bulk_ops.cpp.
    struct Row;
    static const Row kRows[];

    /// An error becomes REFUSED; its text goes to the log, as the PF has registers only.
    [[nodiscard]] Result<> execute(const Request& request);
    [[nodiscard]] Result<> check(const Request& request, const Row& row) const;
    /// Of device VRAM: checked as a whole first. Of a VF's: ends with ERANGE at the first piece
    /// beyond.
    Result<> fill(const Request& request);
    Result<> copy(const Request& request);
    Result<> dma_in(const Request& request);
    Result<> dma_out(const Request& request);
    /// Of device VRAM by mem::DeviceVram::scrub(), which replaces whole pages of the host where it
    /// may.
    Result<> scrub_vram(const Request& request);
    Result<> scrub_state(const Request& request);
    /// EIO if a byte is not zero; how the PF proves a scrub before it hands out the slice again.
    Result<> verify_zero(const Request& request);
    /// ENOSPC with size() set to what is needed if the PF's buffer is too small, so the PF can ask
    /// with a size of 0 first.
    Result<> save_state(const Request& request);
    Result<> load_state(const Request& request);

    [[nodiscard]] Result<> read(VfId vf, std::uint64_t offset, std::span<std::byte> out);
    [[nodiscard]] Result<> write(VfId vf, std::uint64_t offset, std::span<const std::byte> data);
    /// Calls piece(first byte, bytes) until `size` is done; ECANCELED once stop() was called.
    template <typename Piece> Result<> in_pieces(std::uint64_t size, Piece piece);

    mem::DeviceVram& vram_;
    mem::SystemMemory& bus_;
    const VfPanels vfs_;

    std::mutex mutex_;
    std::condition_variable changed_;
    /// mutex_; at most one, as status_ is BUSY from start() to the end.
    std::optional<Request> waiting_;
    std::atomic<bool> is_stopping_{false};
    std::atomic<vgpu_hw_op_status> status_{VGPU_OP_DONE};
    std::atomic<std::uint64_t> size_{0};
};

}  // namespace vgpu::softgpu::iov
