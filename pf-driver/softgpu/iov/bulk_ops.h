// SPDX-License-Identifier: MIT
//
// BulkOps: the operations of VGPU_OP_COMMAND (hw/gpuiov.h): fill, copy, DMA, scrub, verify, save
// and load of device state. The PF starts one by a register write and polls OP_STATUS; it is
// executed on the op thread, because moving VRAM takes longer than a register access may. One
// operation at a time; a start while one is busy is refused and counted.
//
// Ranges are checked here: an operation that leaves the memory it names is refused as a whole
// before its first byte. Work is cut into pieces, so stop() is quick.
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
    struct Request {
        std::uint32_t opcode = VGPU_OP_NONE;
        VfId vf = kPf;  ///< whose VRAM or state; kPf: device VRAM
        std::uint64_t source = 0;
        std::uint64_t destination = 0;
        std::uint64_t size = 0;
        std::uint32_t pattern = 0;
    };
    /// Largest state stream LOAD_STATE accepts.
    static constexpr std::uint64_t kMaxStateBytes = 256ull << 20;

    /// `bus` is the PF's memory.
    BulkOps(std::uint32_t total_vfs, mem::DeviceVram& vram, mem::SystemMemory& bus, VfPanel& vfs);

    void start(const Request& request);
    [[nodiscard]] vgpu_hw_op_status status() const { return status_.load(); }
    /// OP_SIZE as the device changed it: the length of a saved state.
    [[nodiscard]] std::uint64_t size() const { return size_.load(); }

    /// Executes operations until stop().
    void run();
    void stop();
    /// Executes the operation that waits, if any (tests; what run() loops over).
    void run_pending();

private:
    struct Row;
    static const Row kRows[];

    [[nodiscard]] Result<> execute(const Request& request);
    [[nodiscard]] Result<> check(const Request& request, const Row& row) const;
    Result<> fill(const Request& request);
    Result<> copy(const Request& request);
    Result<> dma_in(const Request& request);
    Result<> dma_out(const Request& request);
    Result<> scrub_vram(const Request& request);
    Result<> scrub_state(const Request& request);
    Result<> verify_zero(const Request& request);
    Result<> save_state(const Request& request);
    Result<> load_state(const Request& request);

    [[nodiscard]] Result<> read(VfId vf, std::uint64_t offset, std::span<std::byte> out);
    [[nodiscard]] Result<> write(VfId vf, std::uint64_t offset, std::span<const std::byte> data);
    template <typename Piece> Result<> in_pieces(std::uint64_t size, Piece piece);

    const std::uint32_t total_vfs_;
    mem::DeviceVram& vram_;
    mem::SystemMemory& bus_;
    VfPanel& vfs_;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<Request> waiting_;
    std::atomic<bool> is_stopping_{false};
    std::atomic<vgpu_hw_op_status> status_{VGPU_OP_DONE};
    std::atomic<std::uint64_t> size_{0};
};

}  // namespace vgpu::softgpu::iov
