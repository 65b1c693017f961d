// SPDX-License-Identifier: MIT
//
// The interface of the blocks whose state is part of a saved VF (concept Block), and the streams
// that carry this state. A block is a part of the device, such as the register file or an SDMA
// engine.
//
// A block has reset(), drain(), save(Writer&), load(Reader&) and functions for its work. A block
// may have a `struct Spec` with its constants and a `struct State` with its state; a State is
// trivially copyable and holds no pointers. Below, "state" means what save() writes; a block may
// leave out counters and settings of the PF. Each VF has its own blocks. In true-copy mode
// (SwitchMode in iov/vf_control.h), a world switch drains and saves the VfBlocks (gpu_vf_blocks.h)
// of the outgoing VF. GpuVf loads the saved state before the blocks are used again, at the latest
// when the VF returns to the engine. In pointer mode, the default, a world switch does not touch
// the blocks.
//   reset()   returns to the state after power-on or FLR
//   drain()   returns when no work is in flight inside the block; idempotent
//   save()    appends the whole state to the stream; allowed only after drain()
//   load()    restores the state that save() wrote, bit for bit. If the stream is truncated, or
//             invalid for the block, load() returns an error and leaves the block in reset state
// tests/contract/block_contract.hpp checks these rules.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/base/result.h"

namespace vgpu::softgpu {

/// A type that a stream carries as a plain copy of its bytes. Types with padding are excluded,
/// because padding holds leftover bytes: equal states would have different streams, and a guest
/// could read leftover bytes in the save area of a queue (cp/transition.cpp).
template <typename T>
concept Saved = std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>;

/// Appends copies of values to a byte vector; for save(). A stream holds only values and no
/// description of their layout, so only a program with the same layout can read the stream.
class Writer {
public:
    explicit Writer(std::vector<std::byte>& out) : out_(out) {}

    void bytes(std::span<const std::byte> data) {
        out_.insert(out_.end(), data.begin(), data.end());
    }
    template <Saved T> void value(const T& v) { bytes(bytes_of(v)); }
    /// Writes the number of elements (64 bits), then the elements.
    template <Saved T> void vector(const std::vector<T>& values) {
        value(static_cast<std::uint64_t>(values.size()));
        bytes(std::as_bytes(std::span<const T>(values)));
    }

private:
    std::vector<std::byte>& out_;
};

/// Reads the stream of a Writer; for load(). The bytes are untrusted, because they may come from a
/// file or a guest's memory. A Reader never reads beyond the stream, and never allocates room for
/// more elements than the stream can hold. The block itself must check that the values are valid.
class Reader {
public:
    explicit Reader(std::span<const std::byte> in) : in_(in) {}

    /// Fills `out`. EPROTO if fewer bytes are left; then nothing is consumed.
    [[nodiscard]] Result<> bytes(std::span<std::byte> out) {
        if (out.size() > in_.size()) return fail(EPROTO, "state stream is truncated");
        if (!out.empty()) std::memcpy(out.data(), in_.data(), out.size());
        in_ = in_.subspan(out.size());
        return {};
    }
    template <Saved T> [[nodiscard]] Result<> value(T& v) { return bytes(bytes_of(v)); }
    /// EPROTO if the vector has more than `limit` elements, or is not wholly in the stream.
    template <Saved T> [[nodiscard]] Result<> vector(std::vector<T>& values, std::uint64_t limit) {
        std::uint64_t count = 0;
        TRY_VOID(value(count));
        if (count > limit || count * sizeof(T) > in_.size())
            return fail(EPROTO, "state stream holds a vector longer than its block allows");
        values.resize(count);
        return bytes(std::as_writable_bytes(std::span<T>(values)));
    }
    /// Bytes left. If bytes are left after the last block has loaded, the stream is invalid.
    [[nodiscard]] std::size_t remaining() const { return in_.size(); }

private:
    std::span<const std::byte> in_;
};

/// A type with reset(), drain(), save() and load(). The contract suite does not compile for a type
/// that lacks one of them.
template <typename B>
concept Block = requires(B block, const B constant, Writer& writer, Reader& reader) {
    block.reset();
    block.drain();
    constant.save(writer);
    { block.load(reader) } -> std::same_as<Result<>>;
};

}  // namespace vgpu::softgpu
