// SPDX-License-Identifier: MIT
//
// Fuzzes machine code from a guest; the input is a program. Any program may change only its own
// waves, their LDS and mapped memory, and both tiers must give the same result. The decoder and the
// disassembler must accept any words.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "pf-driver/softgpu/isa/dispatch.h"
#include "pf-driver/softgpu/isa/execute.h"
#include "pf-driver/softgpu/isa/translate/code_memory.h"
#include "tests/support/isa/disassemble.h"
#include "tests/support/virtual_clock.h"

namespace {

using namespace vgpu::softgpu;

constexpr std::uint64_t kBase = 0x10000;
constexpr std::size_t kArena = 64 * 1024;

/// 64 KiB at kBase, readable, writable and executable.
class ArenaPort final : public mem::Port {
public:
    explicit ArenaPort(const std::atomic<std::uint64_t>& epoch) : Port(epoch), arena_(kArena) {}
    std::vector<std::byte>& arena() { return arena_; }

protected:
    Translation walk(GpuVa va, mem::Access access) override {
        const std::uint64_t page = raw(va) / kPageBytes * kPageBytes;
        Translation out;
        if (page < kBase || page >= kBase + kArena) {
            out.fault = {mem::FaultKind::NotPresent, access, va};
            return out;
        }
        out.host = arena_.data() + (page - kBase);
        out.access = 0x70;
        return out;
    }
    bool read_indirect(GpuVa, std::span<std::byte>) override { return false; }
    bool write_indirect(GpuVa, std::span<const std::byte>) override { return false; }

private:
    std::vector<std::byte> arena_;
};

class NoMessages final : public isa::MessageSink {
public:
    void interrupt(std::uint32_t) override {}
};

isa::DispatchSpec spec_of(std::uint8_t choice) {
    isa::DispatchSpec spec;
    spec.entry = kBase;
    spec.pgm_rsrc1 = (choice & 0x3f) | (0xf0u << 12) | (1u << 23);
    spec.pgm_rsrc2 = 16u << 1;
    spec.has_user_data = 1;
    for (std::uint32_t& word : spec.user_data)
        word = static_cast<std::uint32_t>(kBase) + choice * 16u;
    spec.group_size = {96, 1, 1};
    spec.grid_size = {96, 1, 1};
    spec.lds_bytes = choice * 8u;
    return spec;
}

/// Memory that holds a program. With `code`, every block is translated before its first run.
struct World {
    World(std::span<const std::byte> program, isa::CodeShare* code)
        : port(epoch), cache(epoch, code) {
        std::ranges::copy(program, port.arena().begin());
    }
    isa::RunResult run(isa::Workgroup& group) {
        return isa::run(group, {port, cache, clock, messages, stop, 500});
    }

    std::atomic<std::uint64_t> epoch{1};
    ArenaPort port;
    isa::DecodeCache cache;
    const VirtualClock clock;
    NoMessages messages;
    const std::atomic<bool> stop{false};
};

/// nullptr if this processor cannot translate.
isa::CodeShare* translator() {
    constexpr std::size_t chunks = 16;
    static const auto memory = isa::CodeMemory::create(chunks);
    if (!memory) return nullptr;
    static isa::CodeShare share(**memory, chunks, 0);
    return &share;
}

std::vector<std::byte> saved(const isa::Workgroup& group) {
    std::vector<std::byte> stream;
    Writer writer(stream);
    group.save(writer);
    return stream;
}

/// Checks that the translator ends like the interpreter, with the same registers, LDS and memory.
void check_translator(const isa::DispatchSpec& spec, std::span<const std::byte> program,
                      const isa::RunResult& want, const std::vector<std::byte>& state,
                      const std::vector<std::byte>& memory) {
    isa::CodeShare* const code = translator();
    if (code == nullptr) return;
    World world(program, code);
    isa::Workgroup group;
    isa::start_workgroup(group, spec, {});
    const isa::RunResult got = world.run(group);
    if (got.reason != want.reason || got.retired != want.retired || got.pc != want.pc)
        __builtin_trap();
    if (saved(group) != state || world.port.arena() != memory) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 5 || size > 4096) return 0;
    const auto program = std::as_bytes(std::span(data + 1, size - 1));
    std::uint32_t words[2] = {};
    std::memcpy(words, data + 1, size - 1 < sizeof words ? size - 1 : sizeof words);
    (void)isa::disassemble(isa::decode(words));

    const isa::DispatchSpec spec = spec_of(data[0]);
    if (isa::check(spec) != isa::DispatchError::None) return 0;
    World world(program, nullptr);
    isa::Workgroup group;
    isa::start_workgroup(group, spec, {});
    const isa::RunResult result = world.run(group);
    const std::vector<std::byte> stream = saved(group);
    check_translator(spec, program, result, stream, world.port.arena());
    isa::Workgroup restored;
    Reader reader(stream);
    if (!restored.load(reader).has_value()) __builtin_trap();
    (void)world.run(restored);
    return 0;
}
