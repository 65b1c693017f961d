// SPDX-License-Identifier: MIT
//
// BulkOps: the operations of VGPU_OP_COMMAND (hw/gpuiov.h). These are DMA, scrub, verify, and save
// and load of a VF's state. The PF starts an operation by a register write and polls OP_STATUS. The
// op thread (gpu.h) executes the operation, because moving VRAM takes longer than a register access
// may. Only one operation runs at a time; a start during another operation is dropped and logged.
//
// An operation outside its VRAM or the PF's memory ends with status REFUSED. SCRUB and VERIFY of
// device VRAM check the whole range before they touch the first byte. Operations on a VF's VRAM
// check piece by piece, and end at the first piece that is not completely in the VF's VRAM. stop()
// ends an operation on VRAM after the current piece; other operations run to their end.
//
// The io thread (gpu.h) calls start(), status() and size(). The op thread calls run(). Any thread
// may call stop().
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "pf-driver/hw/gpuiov.h"
#include "pf-driver/softgpu/base/pi_mutex.h"
#include "pf-driver/softgpu/iov/vf_control.h"
#include "pf-driver/softgpu/mem/system_memory.h"
#include "pf-driver/softgpu/mem/vram.h"

namespace vgpu::softgpu::iov {

class BulkOps {
public:
    /// The OP_* registers as they stood when OP_COMMAND was written.
    struct Request {
        std::uint32_t opcode = VGPU_OP_NONE;
        VfId vf = kPf;  ///< the owner of the VRAM or state; kPf: device VRAM
        /// Source, destination and size are in bytes. A VRAM address is an offset into the VRAM
        /// that `vf` names. The bus side of DMA_IN, DMA_OUT, SAVE_STATE and LOAD_STATE is an
        /// address in the PF's memory.
        std::uint64_t source = 0;
        std::uint64_t destination = 0;
        std::uint64_t size = 0;
    };
    /// The largest state stream that LOAD_STATE accepts. softgpu holds a whole stream in memory, so
    /// the limit bounds the memory that a PF can make softgpu allocate.
    static constexpr std::uint64_t kMaxStateBytes = 256ull << 20;

    /// `bus` is the PF's memory. All references outlive the BulkOps.
    BulkOps(mem::DeviceVram& vram, mem::SystemMemory& bus, VfControls vfs);

    /// Hands the operation to the op thread and returns at once, with status() BUSY. If another
    /// operation is busy, drops the new operation; only the log reports the drop. So a PF polls
    /// OP_STATUS before it starts the next operation.
    void start(const Request& request);
    [[nodiscard]] vgpu_hw_op_status status() const { return status_.load(); }
    /// OP_SIZE of the last operation in bytes; after SAVE_STATE, the length of the state, unless
    /// the VF refused to save its state.
    [[nodiscard]] std::uint64_t size() const { return size_.load(); }

    /// Executes operations until stop().
    void run();
    /// Ends run() permanently. An operation that stop() cuts short ends with status REFUSED.
    void stop();
    /// Executes the waiting operation, if any. run() calls this in a loop; tests call it directly.
    void run_pending();

private:
    /// One row per opcode (bulk_ops.cpp).
    struct Row;
    static const Row kRows[];

    /// An error becomes status REFUSED. The text of the error goes to the log, because the PF reads
    /// only registers.
    [[nodiscard]] Result<> execute(const Request& request);
    [[nodiscard]] Result<> check(const Request& request, const Row& row) const;
    Result<> dma_in(const Request& request);
    Result<> dma_out(const Request& request);
    /// For device VRAM, uses mem::DeviceVram::scrub(), which replaces whole pages of the host where
    /// possible. For a VF's VRAM, writes zeroes.
    Result<> scrub_vram(const Request& request);
    Result<> scrub_state(const Request& request);
    /// EIO if a byte is not zero. The PF checks a scrub with this operation before it reuses the
    /// VRAM.
    Result<> verify_zero(const Request& request);
    /// ENOSPC, with size() set to the required size, if the PF's buffer is too small. So a PF
    /// learns the size from an operation with a size of 0.
    Result<> save_state(const Request& request);
    Result<> load_state(const Request& request);

    /// Writes `data` to the VF's VRAM, at byte `at` of the request's destination.
    [[nodiscard]] Result<> write(const Request& request, std::uint64_t at,
                                 std::span<const std::byte> data);
    /// Calls piece(offset, bytes) for one piece after the other, until `size` bytes are done;
    /// ECANCELED after stop().
    template <typename Piece>
    Result<> in_pieces(std::uint64_t size, std::uint64_t piece_bytes, Piece piece);

    mem::DeviceVram& vram_;
    mem::SystemMemory& bus_;
    const VfControls vfs_;

    PiMutex mutex_;
    PiCondition changed_;
    /// The operation that run() has not taken yet. Guarded by mutex_. No queue is needed, because
    /// status_ is BUSY from start() to the end of the operation.
    std::optional<Request> waiting_;
    std::atomic<bool> is_stopping_{false};
    std::atomic<vgpu_hw_op_status> status_{VGPU_OP_DONE};
    std::atomic<std::uint64_t> size_{0};
};

}  // namespace vgpu::softgpu::iov
