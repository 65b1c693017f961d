// SPDX-License-Identifier: MIT
//
// The interface of the blocks whose state is part of a saved VF (concept Block), and the streams
// that carry this state.
//
// A block has reset() drain() save(Writer&) load(Reader&) and functions for its work. A block's
// constants are in `struct Spec` and its state, trivially copyable and without pointers, in `struct
// State`, if the block has these. In true-copy mode a world switch drains and saves the blocks of
// the outgoing VF and loads those of the incoming VF (VfBlocks); in pointer mode the blocks stay as
// they are.
//   reset()   back to the state after power-on or FLR
//   drain()   on return no work is in flight inside the block; idempotent
//   save()    appends the whole state; allowed only after drain()
//   load()    the inverse: load(save(x)) == x, bit for bit; a stream that is truncated, or that the
//             block finds invalid, is an error and leaves the block in its reset state
// tests/contract/block_contract.hpp checks this contract.
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

/// A type that a stream carries as it lies in memory. Padding is excluded because it holds leftover
/// bytes: equal states would have different streams, and a guest's save area would show those
/// bytes.
template <typename T>
concept Saved = std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>;

/// Appends values to a byte vector as they lie in memory; for save(). A stream fits one version of
/// the program: it holds only the values of the blocks, and no description of their layout.
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

/// Reads the stream of a Writer; for load(). The bytes may come from a file or a guest's memory: a
/// Reader never reads beyond them and never allocates for a length that they cannot hold. The block
/// checks what the values mean.
class Reader {
public:
    explicit Reader(std::span<const std::byte> in) : in_(in) {}

    /// EPROTO if fewer bytes are left; nothing is consumed then.
    [[nodiscard]] Result<> bytes(std::span<std::byte> out) {
        if (out.size() > in_.size()) return fail(EPROTO, "state stream is truncated");
        if (!out.empty()) std::memcpy(out.data(), in_.data(), out.size());
        in_ = in_.subspan(out.size());
        return {};
    }
    template <Saved T> [[nodiscard]] Result<> value(T& v) { return bytes(bytes_of(v)); }
    /// EPROTO if the stream announces more than `limit` elements or more than it holds.
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
