// SPDX-License-Identifier: MIT
//
// Packets that move data. The handler of such a packet computes a total of units (bytes, dwords or
// entries). Its loop continues from Queue::progress until the total is done, the StepBudget of this
// step is spent, or a memory access fails.
#include <algorithm>
#include <array>
#include <cstring>

#include "pf-driver/hw/fields.h"
#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/sdma/engine.h"

namespace vgpu::softgpu::sdma {

namespace {

constexpr std::uint64_t kPage = mem::Port::kPageBytes;
constexpr std::uint64_t kChunkDwords = kPage / sizeof(std::uint32_t);
constexpr std::uint64_t kChunkEntries = kPage / sizeof(std::uint64_t);
/// Elements of a sub-window have 1 to 16 bytes.
constexpr std::uint32_t kMaxElementLog2 = 4;

std::uint64_t left_in_page(std::uint64_t address) {
    return kPage - address % kPage;
}

/// One side (source or destination) of a sub-window copy. y counts rows, z counts slices (layers of
/// a 3D window), all other values count elements.
struct Side {
    std::uint64_t x, y, z, row_pitch, slice_pitch;

    [[nodiscard]] std::uint64_t element(std::uint64_t row, std::uint64_t slice) const {
        return (z + slice) * slice_pitch + (y + row) * row_pitch + x;
    }
};

/// Reads a side from the three dwords after its address.
Side side_of(const std::uint32_t* dwords) {
    return {HW_GET(SDMA_SUBWIN_XY, X, dwords[0]), HW_GET(SDMA_SUBWIN_XY, Y, dwords[0]),
            HW_GET(SDMA_SUBWIN_ZP, Z, dwords[1]),
            HW_GET(SDMA_SUBWIN_ZP, PITCH, dwords[1]) + std::uint64_t{1},
            HW_GET(SDMA_SUBWIN_SLICE, PITCH, dwords[2]) + std::uint64_t{1}};
}

/// Copies between host addresses, inside one source page and one target page. False on a fault
/// (has_fault() is then true), or if a page has no host address.
bool copy_direct(mem::Port& memory, std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
    const mem::Port::Hold hold(memory);
    const std::byte* const source = memory.at(GpuVa{from}, mem::Access::Read);
    if (source == nullptr && memory.has_fault()) return false;
    std::byte* const target = memory.at(GpuVa{to}, mem::Access::Write);
    if (source == nullptr || target == nullptr) return false;
    std::memmove(target, source, bytes);
    return true;
}

}  // namespace

/// Allows at least one unit, so that a StepBudget below one unit still makes progress.
std::uint64_t Engine::next_units(std::uint64_t total, std::uint64_t unit_bytes,
                                 std::uint64_t limit) const {
    const std::uint64_t left = total - std::min(total, queue_->progress);
    const std::uint64_t affordable = std::max<std::uint64_t>(1, budget_.bytes / unit_bytes);
    return std::min({left, affordable, limit});
}

void Engine::account(std::uint64_t units, std::uint64_t unit_bytes) {
    const std::uint64_t bytes = units * unit_bytes;
    queue_->progress += units;
    state_.bytes += bytes;
    budget_.bytes -= std::min(bytes, budget_.bytes);
}

std::uint64_t Engine::copy_piece(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
    const std::uint64_t piece = std::min({bytes, left_in_page(to), left_in_page(from)});
    mem::Port& memory = port();
    if (copy_direct(memory, to, from, piece)) return piece;
    if (memory.has_fault()) return 0;
    std::array<std::byte, kPage> buffer;
    const auto part = std::span(buffer).first(piece);
    const bool is_copied = memory.read(GpuVa{from}, part) && memory.write(GpuVa{to}, part);
    return is_copied ? piece : 0;
}

/// Copies from low to high addresses, piece by piece. The result for overlapping ranges is
/// undefined, as on hardware.
Engine::Outcome Engine::copy_linear() {
    const std::uint64_t total = HW_GET(SDMA_COPY_LINEAR_1, COUNT, packet_[1]) + std::uint64_t{1};
    const std::uint64_t from = pair(3);
    const std::uint64_t to = pair(5);
    while (queue_->progress < total) {
        if (budget_.bytes == 0) return Outcome::Partial;
        const std::uint64_t done = queue_->progress;
        const std::uint64_t piece = copy_piece(to + done, from + done, next_units(total, 1, kPage));
        if (piece == 0) return Outcome::Fault;
        account(piece, 1);
    }
    return Outcome::Done;
}

/// Copies to the first destination, then to the second. Progress counts the bytes of both copies.
Engine::Outcome Engine::copy_broadcast() {
    const std::uint64_t bytes = HW_GET(SDMA_COPY_LINEAR_1, COUNT, packet_[1]) + std::uint64_t{1};
    while (queue_->progress < 2 * bytes) {
        if (budget_.bytes == 0) return Outcome::Partial;
        const bool is_second = queue_->progress >= bytes;
        const std::uint64_t done = queue_->progress % bytes;
        const std::uint64_t limit = std::min(bytes - done, kPage);
        const std::uint64_t to = pair(is_second ? 7 : 5) + done;
        const std::uint64_t piece = copy_piece(to, pair(3) + done, next_units(2 * bytes, 1, limit));
        if (piece == 0) return Outcome::Fault;
        account(piece, 1);
    }
    return Outcome::Done;
}

/// Progress counts bytes of the window, row after row.
Engine::Outcome Engine::copy_window() {
    const std::uint32_t log2 = HW_GET(SDMA_SUBWIN, ELEMENT_SIZE, packet_[0]);
    if (log2 > kMaxElementLog2) return Outcome::Bad;
    const std::uint64_t rows = HW_GET(SDMA_SUBWIN_11, HEIGHT, packet_[11]) + std::uint64_t{1};
    const std::uint64_t slices = HW_GET(SDMA_SUBWIN_12, DEPTH, packet_[12]) + std::uint64_t{1};
    const std::uint64_t row_bytes = (HW_GET(SDMA_SUBWIN_11, WIDTH, packet_[11]) + std::uint64_t{1})
                                    << log2;
    const Side from = side_of(&packet_[3]);
    const Side to = side_of(&packet_[8]);
    const std::uint64_t total = row_bytes * rows * slices;
    while (queue_->progress < total) {
        if (budget_.bytes == 0) return Outcome::Partial;
        const std::uint64_t line = queue_->progress / row_bytes;
        const std::uint64_t column = queue_->progress % row_bytes;
        const auto address = [&](std::uint64_t base, const Side& side) {
            return base + (side.element(line % rows, line / rows) << log2) + column;
        };
        const std::uint64_t piece = copy_piece(address(pair(6), to), address(pair(1), from),
                                               next_units(total, 1, row_bytes - column));
        if (piece == 0) return Outcome::Fault;
        account(piece, 1);
    }
    return Outcome::Done;
}

/// The payload is part of the packet, so length_ includes the payload. If the stream does not hold
/// all of it, truncation_outcome() decides whether the packet is Starved or Bad.
Engine::Outcome Engine::write_linear() {
    const std::uint64_t header = length_;
    const std::uint64_t total = HW_GET(SDMA_WRITE_LINEAR_3, COUNT, packet_[3]) + std::uint64_t{1};
    length_ = header + total;
    if (available() < length_) return truncation_outcome();
    std::array<std::uint32_t, kChunkDwords> chunk;
    while (queue_->progress < total) {
        if (budget_.bytes == 0) return Outcome::Partial;
        const std::uint64_t units = next_units(total, sizeof(std::uint32_t), chunk.size());
        const auto part = std::span(chunk).first(units);
        const std::uint64_t to = pair(1) + queue_->progress * sizeof(std::uint32_t);
        if (!fetch(header + queue_->progress, part) ||
            !port().write(GpuVa{to}, std::as_bytes(part)))
            return Outcome::Fault;
        account(units, sizeof(std::uint32_t));
    }
    return Outcome::Done;
}

/// COUNT encodes n units of 2^size bytes as (n - 1) << size.
Engine::Outcome Engine::fill() {
    const std::uint32_t size = HW_GET(SDMA_CONST_FILL, FILL_SIZE, packet_[0]);
    const std::uint64_t count = HW_GET(SDMA_CONST_FILL_4, COUNT, packet_[4]);
    const std::uint64_t total = ((count >> size) + 1) << size;
    std::array<std::uint32_t, kChunkDwords> chunk;
    chunk.fill(packet_[3]);
    while (queue_->progress < total) {
        if (budget_.bytes == 0) return Outcome::Partial;
        // The pattern is a dword, so every write except the last must write whole copies of the
        // pattern.
        std::uint64_t units = next_units(total, 1, kPage);
        if (queue_->progress + units < total)
            units = std::min(total - queue_->progress, std::max<std::uint64_t>(4, units & ~3ull));
        const auto part = std::as_bytes(std::span(chunk)).first(units);
        if (!port().write(GpuVa{pair(1) + queue_->progress}, part)) return Outcome::Fault;
        account(units, 1);
    }
    return Outcome::Done;
}

/// PTEPDE: entry i = flags | (address + i * increment). The 64-bit flags start at dword 3, address
/// at dword 5, increment at dword 7. amdgpu fills page tables with this packet.
Engine::Outcome Engine::generate_entries() {
    const std::uint64_t total = HW_GET(SDMA_PTEPDE_9, COUNT, packet_[9]) + std::uint64_t{1};
    std::array<std::uint64_t, kChunkEntries> chunk;
    while (queue_->progress < total) {
        if (budget_.bytes == 0) return Outcome::Partial;
        const std::uint64_t first = queue_->progress;
        const std::uint64_t units = next_units(total, sizeof(std::uint64_t), chunk.size());
        for (std::uint64_t i = 0; i < units; ++i)
            chunk[i] = pair(3) | (pair(5) + (first + i) * pair(7));
        const auto part = std::as_bytes(std::span(chunk).first(units));
        if (!port().write(GpuVa{pair(1) + first * sizeof(std::uint64_t)}, part))
            return Outcome::Fault;
        account(units, sizeof(std::uint64_t));
    }
    return Outcome::Done;
}

}  // namespace vgpu::softgpu::sdma
