// SPDX-License-Identifier: MIT
#include "daemon/service/state/recovery.h"

#include "daemon/service/state/journal.h"
#include "daemon/service/state/record_json.h"

#include <fmt/format.h>

namespace vgpu::daemon {

namespace {

/// No checkpoint is one of version 0.
Result<Checkpoint> read_checkpoint(const StateImage& image) {
    if (!image.checkpoint) return Checkpoint{};
    auto checkpoint = decode_checkpoint(*image.checkpoint);
    if (!checkpoint)
        checkpoint.error().cause = fmt::format("the state file {} cannot be trusted: {}",
                                               image.checkpoint_path, checkpoint.error().cause);
    return checkpoint;
}

Result<> replay(const JournalText& journal, const StateImage& image, Records& records) {
    for (const JournalRecord& record : journal.records) {
        // A crash between the new checkpoint and the new journal leaves the old journal beside it:
        // what the checkpoint holds already is passed over.
        if (record.sequence <= records.generation) continue;
        const auto applied = apply_changes(record.payload, journal.version, records);
        if (!applied)
            return fail(ErrorId::StateCorrupt,
                        fmt::format("the journal {} is damaged at offset {}: {}",
                                    image.journal_path, record.offset, applied.error().cause));
        records.generation = record.sequence;
    }
    return {};
}

/// Before its first change vgpud makes an empty journal and only then a checkpoint of this version.
Result<Recovered> begin_again(const Checkpoint& checkpoint, const JournalText& journal,
                              const StateImage& image) {
    // All that a vgpud killed before its first checkpoint can have left.
    const bool is_untouched = journal.base == checkpoint.records.generation &&
                              journal.records.empty() && journal.torn_bytes == 0;
    if (is_untouched)
        return Recovered{.records = checkpoint.records,
                         .journal_end = journal.end,
                         .is_appendable = false,
                         .note = ""};
    const std::string what =
        image.checkpoint
            ? fmt::format("the state file {} is of version {}, older than the journal {} beside it",
                          image.checkpoint_path, checkpoint.version, image.journal_path)
            : fmt::format("the state file {} is missing, but there is the journal {}",
                          image.checkpoint_path, image.journal_path);
    return fail(ErrorId::StateCorrupt, fmt::format("{} with generations {} to {}", what,
                                                   journal.base, journal.last_sequence()));
}

/// Changes of the journal that go on from `records`, as far as they make sense.
void replay_sound(const JournalText& journal, Records& records) {
    for (const JournalRecord& record : journal.records) {
        if (record.sequence <= records.generation) continue;
        const bool follows = record.sequence == records.generation + 1;
        if (!follows || !apply_changes(record.payload, journal.version, records)) return;
        records.generation = record.sequence;
    }
}

}  // namespace

std::optional<Records> salvage(const StateImage& image) {
    std::optional<Records> best;
    const auto journal = image.journal ? read_sound_part(*image.journal) : std::nullopt;
    for (const auto& text : {image.checkpoint, image.copy}) {
        if (!text) continue;
        auto checkpoint = decode_checkpoint(*text);
        if (!checkpoint) continue;
        if (journal) replay_sound(*journal, checkpoint->records);
        if (!best || checkpoint->records.generation > best->generation)
            best = std::move(checkpoint->records);
    }
    return best;
}

Result<Recovered> recover(const StateImage& image) {
    TRY(Checkpoint checkpoint, read_checkpoint(image));
    const bool has_journal = checkpoint.version >= kFirstWithJournal;
    const std::uint64_t generation = checkpoint.records.generation;
    if (!image.journal && has_journal)
        return fail(ErrorId::StateCorrupt,
                    fmt::format("the journal {} is missing; what changed after generation {} of {} "
                                "is not known",
                                image.journal_path, generation, image.checkpoint_path));
    if (!image.journal) return Recovered{.records = std::move(checkpoint.records), .note = ""};
    TRY(const JournalText journal, read_journal(*image.journal, image.journal_path));
    if (!has_journal) return begin_again(checkpoint, journal, image);
    if (journal.base > generation)
        return fail(
            ErrorId::StateCorrupt,
            fmt::format("the journal {} begins after generation {}, but the state file {} "
                        "ends with generation {}: what changed in between is missing",
                        image.journal_path, journal.base, image.checkpoint_path, generation));
    Recovered recovered{
        .records = std::move(checkpoint.records),
        .journal_end = journal.end,
        // an older vgpud would not understand what this one may write behind its records
        .is_appendable = journal.torn_bytes == 0 && journal.last_sequence() >= generation &&
                         checkpoint.version == kCheckpointVersion &&
                         journal.version == kJournalVersion,
        .note = ""};
    TRY_VOID(replay(journal, image, recovered.records));
    if (journal.torn_bytes > 0)
        recovered.note = fmt::format(
            "the last {} bytes of the journal {}, from offset {} on, are a change that was never "
            "finished; it is dropped, generation {} is in force",
            journal.torn_bytes, image.journal_path, journal.end, recovered.records.generation);
    return recovered;
}

}  // namespace vgpu::daemon
