// SPDX-License-Identifier: MIT
//
// Fuzzes vgpud's state files. Bit 0 of the first byte of the input chooses the file of the apply
// instead of that of a GPU. The rest is the file, which gets a valid checksum; with bit 1 it is
// damage (offset and value) to a sound file. For any input, a state that is read can be written and
// read again. A GPU whose file is refused is read-only, reports a condition and can be recovered;
// the other GPU is not affected. A damaged file gives the former state or an error.
#include "daemon/service/state/crc32c.h"
#include "daemon/service/state/record_json.h"
#include "daemon/service/state/store.h"

#include <fmt/format.h>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace {

using namespace vgpu::daemon;

constexpr const char* kMain = "gpus/gpu0.json";
constexpr const char* kApply = "apply.json";

void require(bool is_true) {
    if (!is_true) std::abort();
}

class Memory final : public StatePort {
public:
    Result<std::vector<std::string>> list() override {
        std::vector<std::string> names;
        for (const auto& [name, content] : files) names.push_back(name);
        return names;
    }
    Result<std::optional<std::string>> read(const std::string& name) override {
        const auto at = files.find(name);
        return at == files.end() ? std::nullopt : std::optional(at->second);
    }
    Result<> replace(const std::string& name, std::string_view content,
                     const std::string& backup_name) override {
        if (!backup_name.empty() && files.contains(name)) files[backup_name] = files[name];
        files[name] = content;
        return {};
    }
    Result<> remove(const std::string& name, const std::string& backup_name) override {
        if (!backup_name.empty() && files.contains(name)) files[backup_name] = files[name];
        files.erase(name);
        return {};
    }
    [[nodiscard]] std::string where(const std::string& name) const override { return name; }

    std::map<std::string, std::string> files;
};

GpuRecord weighing(std::uint32_t weight) {
    GpuRecord record;
    record.vfs[1] = {.vf = 1, .spec = {.name = "a", .weight = weight}};
    return record;
}

ApplyIntent some_apply() {
    return {.label = "x", .after = {{.gpu = "gpu0"}}, .before = {}};
}

/// Valid files of two GPUs and an apply; the copy of gpu0 is one change older.
Memory sound() {
    Memory memory;
    memory.files = {
        {kMain, encode_gpu({.gpu = "gpu0", .generation = 2, .record = weighing(2)})},
        {"gpus/gpu0.json.bak", encode_gpu({.gpu = "gpu0", .generation = 1, .record = weighing(1)})},
        {"gpus/gpu1.json", encode_gpu({.gpu = "gpu1", .generation = 1, .record = weighing(3)})},
        {kApply, encode_apply(some_apply())}};
    return memory;
}

void check_codec(const std::string& bytes) {
    if (const auto gpu = decode_gpu(bytes)) {
        const auto again = decode_gpu(encode_gpu(*gpu));
        require(again && *again == *gpu);
    } else {
        require(!gpu.error().cause.empty());
    }
    if (const auto apply = decode_apply(bytes)) {
        const auto again = decode_apply(encode_apply(*apply));
        require(again && *again == *apply);
    }
}

void check_recovery(Memory memory) {
    StateStore damaged(memory);
    damaged.load();
    require(damaged.recover().has_value());
    StateStore store(memory);
    store.load();
    for (const auto& [id, problem] : store.problems()) require(problem.id == ErrorId::StateNewer);
}

/// `is_damage`: the file has no valid checksum, so the state must be the former one, or an error.
void check(Memory memory, bool is_damage) {
    StateStore store(memory);
    store.load();
    const bool is_all = store.problems().contains(StateStore::kAllGpus);
    require(store.gpu("gpu1") == weighing(3));
    require(store.is_read_only("gpu1") == is_all);
    const GpuRecord found = store.gpu("gpu0");
    const bool is_read_only = store.is_read_only("gpu0");
    if (is_damage) require(found == weighing(is_read_only && !is_all ? 1 : 2));
    if (is_damage) require(is_all != (store.apply() == some_apply()));
    const GpuRecord next = weighing(99);
    const auto done = store.commit("gpu0", next);
    require(done.has_value() != is_read_only);
    require(store.gpu("gpu0") == (is_read_only ? found : next));
    require(is_read_only == !store.condition().empty());
    check_recovery(std::move(memory));
}

std::string damaged(std::string file, std::string_view bytes) {
    for (; bytes.size() >= 3; bytes.remove_prefix(3)) {
        const auto byte = [&bytes](std::size_t at) {
            return static_cast<unsigned char>(bytes[at]);
        };
        const std::size_t at = (std::size_t{byte(0)} << 8 | byte(1)) % (file.size() + 1);
        if (at == file.size())
            file.resize(file.size() / 2 + byte(2));
        else
            file[at] = bytes[2];
        if (file.empty()) file.resize(1);
    }
    return file;
}

/// `bytes` with the right checksum, if they are a JSON object.
std::string sealed(const std::string& bytes) {
    auto json = nlohmann::json::parse(bytes, nullptr, false);
    if (!json.is_object()) return bytes;
    json.erase("checksum");
    json["checksum"] = fmt::format("crc32c:{:08x}", crc32c(json.dump()));
    return json.dump();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    std::string bytes;
    bytes.assign(data + 1, data + size);
    Memory memory = sound();
    std::string& file = memory.files[data[0] & 1 ? kApply : kMain];
    const bool is_damage = (data[0] & 2) != 0;
    file = is_damage ? damaged(file, bytes) : sealed(bytes);
    check_codec(file);
    check(std::move(memory), is_damage);
    return 0;
}
