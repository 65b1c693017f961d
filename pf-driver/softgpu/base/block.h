// SPDX-License-Identifier: MIT
//
// The shape of every block of the GPU, and the streams its state travels in.
//
// A block is `struct Spec` (constant after build), `struct State` (flat, no pointers) and a class
// with reset() drain() save(Writer&) load(Reader&) and its own work. The world switch of one VF is:
// drain() and save() every block of the outgoing VF, load() every block of the incoming one, run.
//   reset()   back to the state after power-on or FLR
//   drain()   no work in flight inside the block when it returns; idempotent
//   save()    append the whole State; allowed only after drain()
//   load()    the inverse: load(save(x)) == x, bit for bit; a truncated or foreign stream is an
//             error and leaves the block in its reset state
// tests/contract/block_contract.hpp runs this contract over every block.
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

/// What goes through a stream as it lies in memory. Padding would hold whatever was there before:
/// equal states would not have equal streams, and a guest's save area would show it.
template <typename T>
concept Saved = std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>;

/// For save(): appends values to a byte vector as they lie in memory. A stream is of one version of
/// the program and says nothing about itself but what its blocks write.
class Writer {
public:
    explicit Writer(std::vector<std::byte>& out) : out_(out) {}

    void bytes(std::span<const std::byte> data) {
        out_.insert(out_.end(), data.begin(), data.end());
    }
    template <Saved T> void value(const T& v) { bytes(bytes_of(v)); }
    /// Length first, in elements, 64 bits.
    template <Saved T> void vector(const std::vector<T>& values) {
        value(static_cast<std::uint64_t>(values.size()));
        bytes(std::as_bytes(std::span<const T>(values)));
    }

private:
    std::vector<std::byte>& out_;
};

/// Reads what Writer wrote, for load(). The bytes may come from a file or a guest's memory: a
/// Reader never reads beyond them and never allocates for a length they cannot hold. What the
/// values mean is for the block to check.
class Reader {
public:
    explicit Reader(std::span<const std::byte> in) : in_(in) {}

    /// EPROTO: fewer are left; nothing is taken then.
    [[nodiscard]] Result<> bytes(std::span<std::byte> out) {
        if (out.size() > in_.size()) return fail(EPROTO, "state stream is truncated");
        if (!out.empty()) std::memcpy(out.data(), in_.data(), out.size());
        in_ = in_.subspan(out.size());
        return {};
    }
    template <Saved T> [[nodiscard]] Result<> value(T& v) { return bytes(bytes_of(v)); }
    /// EPROTO: more than `limit` elements, or more than the stream holds.
    template <Saved T> [[nodiscard]] Result<> vector(std::vector<T>& values, std::uint64_t limit) {
        std::uint64_t count = 0;
        TRY_VOID(value(count));
        if (count > limit || count * sizeof(T) > in_.size())
            return fail(EPROTO, "state stream holds a vector longer than its block allows");
        values.resize(count);
        return bytes(std::as_writable_bytes(std::span<T>(values)));
    }
    /// Bytes; a whole stream that leaves some is one of another kind.
    [[nodiscard]] std::size_t remaining() const { return in_.size(); }

private:
    std::span<const std::byte> in_;
};

/// The verbs above, so that a block that lacks one does not compile in the contract suite.
template <typename B>
concept Block = requires(B block, const B constant, Writer& writer, Reader& reader) {
    block.reset();
    block.drain();
    constant.save(writer);
    { block.load(reader) } -> std::same_as<Result<>>;
};

}  // namespace vgpu::softgpu
