// SPDX-License-Identifier: MIT
//
// CodeMemory: memory for translated code. The pages of one memfd are mapped twice: once writable,
// once executable. No mapping is ever both, so code cannot be changed at the address at which it
// runs, and softgpu works under systemd's MemoryDenyWriteExecute. The seccomp filter that softgpu
// installs before it serves clients refuses executable mappings. So softgpu maps all of CodeMemory
// when it starts; the host provides a page when the page is first written.
//
// A CodeShare is one VF's part of CodeMemory. The translators of that VF's decode caches allocate
// whole chunks from the CodeShare up to a limit, so a guest with many kernels cannot use up the
// code memory of another VF. CodeMemory has room for the shares of all VFs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "pf-driver/softgpu/base/pi_mutex.h"
#include "pf-driver/softgpu/base/result.h"
#include "pf-driver/softgpu/base/units.h"

namespace vgpu::softgpu::isa {

/// CodeMemory::kChunk bytes of code memory, with their addresses in both mappings: `write` is not
/// executable, `run` is not writable.
struct CodeChunk {
    std::byte* write = nullptr;
    const std::byte* run = nullptr;
};

/// The chunks of all VFs. Any thread may use a CodeMemory, which must outlive its shares.
class CodeMemory {
public:
    /// Size of a chunk: room for about 20 blocks of 32 arithmetic instructions, or for fewer blocks
    /// with loads. Most decode caches need only one chunk.
    static constexpr Bytes kChunk = 256_KiB;

    /// Maps room for `chunks` chunks. Fails with ENOSYS if this processor lacks an extension that
    /// translated code uses, or with the errno of memfd_create, ftruncate or mmap.
    [[nodiscard]] static Result<std::unique_ptr<CodeMemory>> create(std::size_t chunks);
    ~CodeMemory();
    CodeMemory(const CodeMemory&) = delete;
    CodeMemory& operator=(const CodeMemory&) = delete;

    /// Allocates a chunk. If no chunk is free, returns a CodeChunk with two null pointers.
    [[nodiscard]] CodeChunk take();
    /// Frees a chunk that take() returned. No code in the chunk may be running.
    void release(const CodeChunk& chunk);

private:
    CodeMemory(std::byte* write, const std::byte* run, std::size_t chunks);

    std::byte* const write_;
    const std::byte* const run_;
    const std::size_t chunks_;
    PiMutex lock_;
    std::vector<std::size_t> free_;  ///< indices of free chunks
};

/// One VF's part of CodeMemory. Any thread may use a CodeShare, which must outlive the translators
/// that allocate chunks from it.
class CodeShare {
public:
    /// Default of hot_runs(). A translation costs as much as 100 to 180 runs of the block by the
    /// interpreter (translate_block in isa_bench). So a kernel that ends just after its
    /// translation, and a guest that changes its code all the time, lose at most a tenth of their
    /// speed.
    static constexpr std::uint32_t kHotRuns = 1800;
    /// Limit of one VF: 64 chunks (16 MiB), for example one chunk for each of 16 VMIDs on four
    /// workers. With more workers (up to 64), some decode caches may get no chunk.
    static constexpr std::size_t kVfChunks = 64;

    /// `limit` is the number of chunks that may be allocated at the same time.
    CodeShare(CodeMemory& memory, std::size_t limit, std::uint32_t hot_runs = kHotRuns)
        : memory_(memory), limit_(limit), hot_runs_(hot_runs) {}
    CodeShare(const CodeShare&) = delete;
    CodeShare& operator=(const CodeShare&) = delete;

    /// Allocates a chunk. If the limit is reached or code memory is full, returns a CodeChunk with
    /// two null pointers.
    [[nodiscard]] CodeChunk take();
    /// Frees a chunk that take() returned. No code in the chunk may be running.
    void release(const CodeChunk& chunk);
    /// Number of times that the interpreter runs a block before the block is translated.
    [[nodiscard]] std::uint32_t hot_runs() const { return hot_runs_; }
    /// Number of chunks that are allocated at present.
    [[nodiscard]] std::size_t allocated() const { return allocated_.load(); }

private:
    CodeMemory& memory_;
    const std::size_t limit_;
    const std::uint32_t hot_runs_;
    std::atomic<std::size_t> allocated_{0};
};

}  // namespace vgpu::softgpu::isa
