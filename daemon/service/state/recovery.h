// SPDX-License-Identifier: MIT
//
// Recovery: from the two state files to Records, or to the reason why they cannot be trusted. The
// rules are a table in docs/durable-state.md; in short: checkpoint, then the journal's records
// after it, without a gap; a torn last record is dropped and said; anything else that does not fit
// is refused. Pure; called once by StateStore::load() and by the fuzzer.
#pragma once

#include "daemon/ports/result.h"
#include "daemon/service/state/records.h"

#include <cstdint>
#include <optional>
#include <string>

namespace vgpu::daemon {

/// The state files as they are on disk, with their paths for messages.
struct StateImage {
    std::optional<std::string> checkpoint{}, journal{}, copy{};
    std::string checkpoint_path, journal_path;
};

struct Recovered {
    Records records;
    std::uint64_t journal_end = 0;
    bool is_appendable = false;  ///< the journal may go on where it ends
    std::string note;            ///< what an administrator should know; empty: nothing
};

/// StateCorrupt or StateNewer with file, offset and what is missing. Whatever StateStore can leave
/// behind when it is killed, at any point, is accepted.
[[nodiscard]] Result<Recovered> recover(const StateImage& image);

/// The newest sound state in files that recover() refuses as damaged: the checkpoint or its copy,
/// and the journal up to its first damage. Nothing if both are damaged.
[[nodiscard]] std::optional<Records> salvage(const StateImage& image);

}  // namespace vgpu::daemon
