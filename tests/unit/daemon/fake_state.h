// SPDX-License-Identifier: MIT
//
// FakeState: a disk in memory at the StatePort seam. It can be full, read-only, or fail to sync
// (what was written is there, but nobody can be sure); `on_point` is called before, in the middle
// of and after every write, and may throw: what is in the files then is what the next vgpud finds.
// `document` is the state as one checkpoint, for tests that look at it or put another in its place.
#pragma once

#include "daemon/ports/state_port.h"
#include "daemon/service/state/journal.h"
#include "daemon/service/state/record_json.h"
#include "daemon/service/state/recovery.h"

#include <functional>

namespace vgpu::daemon::testing {

class FakeState final : public StatePort {
public:
    Result<std::optional<std::string>> read(StateFile file) override {
        take_document();
        return of(file);
    }
    Result<> replace(StateFile file, std::string_view content) override {
        point();
        if (is_full || is_read_only) return refusal();
        of(file) = std::string(content);
        note_document();
        point();
        return is_sync_failing ? refusal() : Result<>{};
    }
    Result<> append(std::uint64_t end, std::string_view bytes) override {
        point();
        if (is_read_only) return refusal();
        journal->resize(end);
        const std::size_t half = bytes.size() / 2;
        write(bytes.substr(0, 1));
        write(bytes.substr(1, half - 1));
        if (is_full) return refusal();
        write(bytes.substr(half, bytes.size() - half - 1));
        write(bytes.substr(bytes.size() - 1));
        ++appends;
        note_document();
        return is_sync_failing ? refusal() : Result<>{};
    }
    Result<> cut(std::uint64_t end) override {
        point();
        if (is_read_only || is_cut_failing) return refusal();
        journal->resize(end);
        note_document();
        point();
        return is_sync_failing ? refusal() : Result<>{};
    }
    [[nodiscard]] std::string where(StateFile file) const override {
        if (file == StateFile::Copy) return "memory.bak";
        return file == StateFile::Journal ? "memory.journal" : "memory";
    }
    [[nodiscard]] StateImage image() const {
        return {.checkpoint = checkpoint,
                .journal = journal,
                .copy = copy,
                .checkpoint_path = where(StateFile::Checkpoint),
                .journal_path = where(StateFile::Journal)};
    }

    std::optional<std::string> checkpoint, journal, copy;
    std::optional<std::string> document;
    bool notes_document = true;  ///< reads all of the files after each write
    bool is_full = false;
    bool is_read_only = false;
    bool is_sync_failing = false;
    bool is_cut_failing = false;
    int stores = 0;  ///< times that `document` changed
    int appends = 0;
    std::function<void()> on_point;

private:
    std::optional<std::string>& of(StateFile file) {
        if (file == StateFile::Copy) return copy;
        return file == StateFile::Journal ? journal : checkpoint;
    }
    void point() const {
        if (on_point) on_point();
    }
    void write(std::string_view bytes) {
        *journal += bytes;
        point();
    }
    [[nodiscard]] Result<> refusal() const {
        return fail(ErrorId::StateNotWritten, is_full ? "no space left" : "as the test wants");
    }
    void note_document() {
        if (!notes_document) return;
        const auto recovered = recover(image());
        if (!recovered || (!checkpoint && recovered->records == Records{})) return;
        const std::string now = encode_records(recovered->records);
        if (document && *document == now) return;
        document = noted_ = now;
        ++stores;
    }
    /// What a test has put in the place of the document.
    void take_document() {
        if (document == noted_) return;
        noted_ = checkpoint = document;
        journal.reset();
        copy.reset();
        if (!document) return;
        const auto records = decode_records(*document);
        journal = encode_journal_head(records ? records->generation : 0);
    }

    std::optional<std::string> noted_;
};

}  // namespace vgpu::daemon::testing
