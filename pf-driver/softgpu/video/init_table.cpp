// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/video/init_table.h"

#include <algorithm>

#include "pf-driver/hw/fields.h"
#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::softgpu::video {

namespace {

/// A complete command, as its handler sees it. `first` and `second` are dwords 1 and 2; 0 if there
/// is no dword 2. run_list() has checked `reg` if the command's row has names_register.
struct Command {
    RegisterIndex reg;
    std::uint32_t first;
    std::uint32_t second;
};

mmsch_response write(const Command& command, regs::RegisterFile& regs) {
    regs.write(command.reg, command.first);
    return MMSCH_RESPONSE_DONE;
}

mmsch_response poll(const Command& command, regs::RegisterFile& regs) {
    const bool holds = (regs.read(command.reg) & command.first) == command.second;
    return holds ? MMSCH_RESPONSE_DONE : MMSCH_RESPONSE_NOT_READY;
}

/// Keeps only the bits in `second`, then sets the bits in `first` (DIRECT_READ_MODIFY_WRITE in
/// hw/mmsch.def).
mmsch_response modify(const Command& command, regs::RegisterFile& regs) {
    regs.write(command.reg, (regs.read(command.reg) & command.second) | command.first);
    return MMSCH_RESPONSE_DONE;
}

/// Does nothing, because softgpu models no encoder register behind an index.
mmsch_response write_indirect(const Command&, regs::RegisterFile&) {
    return MMSCH_RESPONSE_DONE;
}

constexpr std::uint32_t dwords_of(mmsch_command code) {
    switch (code) {
#define MMSCH(name, code, dwords, doc) \
    case MMSCH_COMMAND_##name:         \
        return (dwords);
#include "pf-driver/hw/mmsch.def"
#undef MMSCH
    }
    return 0;
}

struct CommandRow {
    mmsch_command code;
    bool names_register;  ///< true: the command's register must be in the encoder's own range
    mmsch_response (*run)(const Command&, regs::RegisterFile&);
};

/// All commands except END, which run_list() handles.
constexpr std::array<CommandRow, 4> kCommands = {{
    {MMSCH_COMMAND_DIRECT_WRITE, true, write},
    {MMSCH_COMMAND_DIRECT_POLLING, true, poll},
    {MMSCH_COMMAND_DIRECT_READ_MODIFY_WRITE, true, modify},
    {MMSCH_COMMAND_INDIRECT_WRITE, false, write_indirect},
}};

const CommandRow* find_command(std::uint32_t code) {
    const auto row = std::ranges::find_if(
        kCommands, [&](const CommandRow& r) { return static_cast<std::uint32_t>(r.code) == code; });
    return row == kCommands.end() ? nullptr : &*row;
}

/// The list of `dwords` dwords at `offset` of `table`; empty if both numbers are 0. nullopt if only
/// the length is 0, or if the list leaves the table or overlaps the header. A guest chose both
/// numbers, so the checks avoid an addition that could wrap.
std::optional<CommandList> list_at(std::span<const std::uint32_t> table, std::uint32_t header,
                                   std::uint32_t offset, std::uint32_t dwords) {
    if (offset == 0 && dwords == 0) return CommandList{};
    if (offset < header || offset > table.size() || dwords == 0 || dwords > table.size() - offset)
        return std::nullopt;
    return table.subspan(offset, dwords);
}

}  // namespace

std::optional<std::array<CommandList, kEncoders.size()>> find_lists(
    std::span<const std::uint32_t> table) {
    if (table.size() < MMSCH_HEADER_DWORDS) return std::nullopt;
    const auto header = load<mmsch_init_header>(std::as_bytes(table));
    const std::uint32_t size = header.header_dwords;
    const bool is_good = header.version == MMSCH_VERSION && size >= MMSCH_HEADER_DWORDS;
    const auto uvd = list_at(table, size, header.uvd_table_offset, header.uvd_table_dwords);
    const auto vce = list_at(table, size, header.vce_table_offset, header.vce_table_dwords);
    if (!is_good || !uvd || !vce) return std::nullopt;
    return std::array{*uvd, *vce};
}

mmsch_response run_list(const EncoderRow& row, CommandList list, regs::RegisterFile& regs) {
    while (!list.empty()) {
        const std::uint32_t header = list[0];
        const std::uint32_t code = HW_GET(MMSCH_HEADER, COMMAND, header);
        if (code == MMSCH_COMMAND_END) return MMSCH_RESPONSE_DONE;
        const CommandRow* command = find_command(code);
        const std::uint32_t dwords = command == nullptr ? 0 : dwords_of(command->code);
        if (command == nullptr || dwords > list.size()) return MMSCH_RESPONSE_BAD_COMMAND;
        const std::uint32_t reg = HW_GET(MMSCH_DIRECT, REGISTER, header);
        const bool is_own = reg >= row.first_register && reg < row.end_register;
        if (command->names_register && !is_own) return MMSCH_RESPONSE_BAD_REGISTER;
        const mmsch_response response =
            command->run({RegisterIndex{reg}, list[1], dwords > 2 ? list[2] : 0}, regs);
        if (response != MMSCH_RESPONSE_DONE) return response;
        list = list.subspan(dwords);
    }
    return MMSCH_RESPONSE_BAD_COMMAND;
}

}  // namespace vgpu::softgpu::video
