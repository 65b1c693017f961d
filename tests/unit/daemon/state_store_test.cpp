// SPDX-License-Identifier: MIT
#include "daemon/service/state_store.h"

#include "daemon/adapters/file_state.h"
#include "tests/unit/daemon/fake_state.h"

#include <gmock/gmock.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>

namespace vgpu::daemon {
namespace {

using testing::FakeState;
using ::testing::HasSubstr;

GpuRecord some_record() {
    GpuRecord record;
    record.quantum_us = 5000;
    record.max_gap_ms = 100;
    record.vfs[3] = {.vf = 3,
                     .name = "train",
                     .uuid = *parse_uuid("00112233-4455-6677-8899-aabbccddeeff"),
                     .weight = 7,
                     .vram_bytes = 64u << 20,
                     .cu_mask = ~0ull};
    record.scrubs[2] = 9;
    return record;
}

/// A directory of its own that goes with the test.
class Directory {
public:
    Directory() {
        std::string pattern = (std::filesystem::temp_directory_path() / "vgpu-XXXXXX").string();
        path_ = ::mkdtemp(pattern.data());
    }
    ~Directory() { std::filesystem::remove_all(path_); }
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_;
};

TEST(StateStore, WhatIsWrittenIsReadBack) {
    FakeState state;
    StateStore writer(state);
    writer.load();
    ASSERT_TRUE(writer.commit("gpu0", some_record()));
    StateStore reader(state);
    reader.load();
    EXPECT_FALSE(reader.is_read_only());
    EXPECT_EQ(reader.gpu("gpu0"), some_record());
    EXPECT_EQ(reader.records().generation, 1u);
}

TEST(StateStore, UnchangedRecordIsNotWrittenAgain) {
    FakeState state;
    StateStore store(state);
    ASSERT_TRUE(store.commit("gpu0", some_record()));
    ASSERT_TRUE(store.commit("gpu0", some_record()));
    EXPECT_EQ(state.stores, 1);
}

TEST(StateStore, FailedWriteChangesNothing) {
    FakeState state;
    StateStore store(state);
    state.is_full = true;
    EXPECT_EQ(store.commit("gpu0", some_record()).error().id, ErrorId::StateNotWritten);
    EXPECT_EQ(store.gpu("gpu0"), GpuRecord{});
}

TEST(StateStore, DocumentCutAnywhereIsReadOnly) {
    Records records;
    records.gpus["gpu0"] = some_record();
    const std::string whole = encode_records(records);
    for (std::size_t length = 0; length + 2 < whole.size(); ++length) {
        FakeState state;
        state.document = whole.substr(0, length);
        StateStore store(state);
        store.load();
        ASSERT_TRUE(store.is_read_only()) << length;
        ASSERT_EQ(store.commit("gpu0", {}).error().id, ErrorId::StateReadOnly);
    }
}

TEST(StateStore, EveryFlippedBitIsFoundOrHarmless) {
    Records records;
    records.gpus["gpu0"] = some_record();
    const std::string whole = encode_records(records);
    for (std::size_t at = 0; at < whole.size(); ++at)
        for (int bit = 0; bit < 8; ++bit) {
            std::string damaged = whole;
            damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
            const auto decoded = decode_records(damaged);
            ASSERT_EQ(decoded.value_or(records), records) << at << " " << bit;
        }
}

TEST(StateStore, NewerVersionIsRefusedClearly) {
    std::string document = encode_records({});
    const std::size_t at = document.find("\"version\": 1");
    ASSERT_NE(at, std::string::npos);
    document.replace(at, 12, "\"version\": 2");
    FakeState state;
    state.document = document;
    StateStore store(state);
    store.load();
    EXPECT_TRUE(store.is_read_only());
    EXPECT_THAT(store.message(), HasSubstr("it has version 2; this vgpud knows version 1"));
}

TEST(FileState, StoresAndLoadsAndLeavesNoTemporary) {
    const Directory directory;
    adapters::FileState file(directory.path(), "state.json");
    EXPECT_FALSE(file.load()->has_value());
    ASSERT_TRUE(file.store("one"));
    ASSERT_TRUE(file.store("two"));
    EXPECT_EQ(**file.load(), "two");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
}

TEST(FileState, FailureLeavesTheOldDocument) {
    const Directory directory;
    adapters::FileState file(directory.path(), "state.json");
    ASSERT_TRUE(file.store("one"));
    std::filesystem::create_directory(directory.path() + "/state.json.new");
    const auto stored = file.store("two");
    ASSERT_FALSE(stored);
    EXPECT_EQ(stored.error().id, ErrorId::StateNotWritten);
    EXPECT_THAT(stored.error().cause, HasSubstr("state.json.new"));
    EXPECT_EQ(**file.load(), "one");
}

TEST(FileState, HugeFileIsRefused) {
    const Directory directory;
    adapters::FileState file(directory.path(), "state.json");
    std::ofstream(file.where()) << "x";
    std::filesystem::resize_file(file.where(), adapters::FileState::kMaxBytes + 1);
    EXPECT_EQ(file.load().error().id, ErrorId::StateCorrupt);
}

}  // namespace
}  // namespace vgpu::daemon
