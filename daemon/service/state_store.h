// SPDX-License-Identifier: MIT
//
// StateStore: Records on disk (StatePort) and in memory, never different: commit() changes what
// records() returns only after the new document is durable. The document is JSON with a checksum
// over its content (schemas/vgpud-state.schema.json). A document that is damaged, or of a newer
// version, makes the store read-only with a message; it is never reset silently. After load() any
// thread may call it: readers never wait for the disk.
#pragma once

#include "daemon/ports/state_port.h"
#include "daemon/service/records.h"

#include <mutex>
#include <string>

namespace vgpu::daemon {

class StateStore {
public:
    explicit StateStore(StatePort& port) : port_(port) {}

    /// Reads the document; afterwards either records() are its content or is_read_only().
    void load();

    [[nodiscard]] Records records() const;
    /// The record of one GPU; a new one has defaults.
    [[nodiscard]] GpuRecord gpu(const std::string& id) const;
    [[nodiscard]] bool is_read_only() const { return !message_.empty(); }
    /// Why it is read-only; empty if it is not.
    [[nodiscard]] const std::string& message() const { return message_; }

    /// Replaces the record of one GPU. StateReadOnly or StateNotWritten leave everything as it was.
    Result<> commit(const std::string& gpu_id, const GpuRecord& record);

private:
    StatePort& port_;
    std::mutex commit_mutex_;           ///< one commit at a time
    mutable std::mutex records_mutex_;  ///< of records_
    Records records_;
    std::string message_;
};

/// The document for `records` and back; StateCorrupt or VersionMismatch with the reason.
std::string encode_records(const Records& records);
Result<Records> decode_records(const std::string& document);

}  // namespace vgpu::daemon
