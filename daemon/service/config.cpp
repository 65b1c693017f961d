// SPDX-License-Identifier: MIT
#include "daemon/service/config.h"

#include "daemon/service/words.h"
#include "pf-driver/uapi/vgpu_pf.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace vgpu::daemon {

namespace {

using Json = nlohmann::json;

struct Bounds {
    std::uint32_t least;
    std::uint32_t most;
};

/// One JSON object being read: knows its path, remembers the first mistake.
class Section {
public:
    Section(const Json& json, std::string path, Error& error)
        : json_(json), path_(std::move(path)), error_(error) {
        if (!json_.is_object()) complain("", "is no object");
    }

    /// Every key must be one of `known`.
    void only(std::initializer_list<std::string_view> known) {
        if (!json_.is_object()) return;
        const std::vector<std::string_view> names(known);
        for (const auto& [key, value] : json_.items())
            if (std::find(names.begin(), names.end(), key) == names.end())
                complain(key, fmt::format("is not known{}", did_you_mean(key, names)));
    }

    void number(const std::string& key, Bounds bounds, std::uint32_t& to) {
        const Json* value = find(key);
        if (value == nullptr) return;
        if (!value->is_number_unsigned() || value->get<std::uint64_t>() < bounds.least ||
            value->get<std::uint64_t>() > bounds.most)
            complain(key, fmt::format("wants a whole number within {}..{}, not {}", bounds.least,
                                      bounds.most, value->dump()));
        else
            to = value->get<std::uint32_t>();
    }

    void text(const std::string& key, std::string& to) {
        const Json* value = find(key);
        if (value == nullptr) return;
        if (!value->is_string() || value->get<std::string>().empty())
            complain(key, fmt::format("wants a text, not {}", value->dump()));
        else
            to = value->get<std::string>();
    }

    void flag(const std::string& key, bool& to) {
        const Json* value = find(key);
        if (value == nullptr) return;
        if (!value->is_boolean())
            complain(key, fmt::format("wants true or false, not {}", value->dump()));
        else
            to = value->get<bool>();
    }

    void texts(const std::string& key, std::vector<std::string>& to) {
        const Json* value = find(key);
        if (value == nullptr) return;
        const bool is_right =
            value->is_array() && std::all_of(value->begin(), value->end(),
                                             [](const Json& one) { return one.is_string(); });
        if (!is_right)
            complain(key, "wants a list of texts");
        else
            to = value->get<std::vector<std::string>>();
    }

    [[nodiscard]] const Json* find(const std::string& key) const {
        if (!json_.is_object()) return nullptr;
        const auto at = json_.find(key);
        return at == json_.end() ? nullptr : &*at;
    }
    [[nodiscard]] std::string path_of(const std::string& key) const { return path_ + "/" + key; }

    void complain(const std::string& key, const std::string& what) {
        if (error_.cause.empty())
            error_ = {ErrorId::ConfigInvalid,
                      fmt::format("{} {}", key.empty() ? path_ : path_of(key), what)};
    }

private:
    const Json& json_;
    std::string path_;
    Error& error_;
};

SoftgpuConfig softgpu_of(const Json& json, const std::string& path, Error& error) {
    constexpr std::uint32_t kMaxVramMb = 1u << 20, kMaxCus = 64, kMaxThreads = 256;
    constexpr std::array<std::string_view, 2> kDoorbellModes{"trap", "poll"};
    SoftgpuConfig config;
    Section section(json, path, error);
    section.only({"vfs", "vram_mb", "aperture_mb", "cus", "threads", "true_copy", "doorbell_mode",
                  "args", "pf_args"});
    section.number("vfs", {1, VGPU_PF_MAX_VFS}, config.vfs);
    section.number("vram_mb", {64, kMaxVramMb}, config.vram_mb);
    section.number("aperture_mb", {16, kMaxVramMb}, config.aperture_mb);
    section.number("cus", {1, kMaxCus}, config.cus);
    section.number("threads", {1, kMaxThreads}, config.threads);
    section.flag("true_copy", config.is_true_copy);
    section.text("doorbell_mode", config.doorbell_mode);
    section.texts("args", config.args);
    section.texts("pf_args", config.pf_args);
    if (std::find(kDoorbellModes.begin(), kDoorbellModes.end(), config.doorbell_mode) ==
        kDoorbellModes.end())
        section.complain("doorbell_mode", "is neither 'trap' nor 'poll'");
    return config;
}

AttachConfig attach_of(const Json& json, const std::string& path, Error& error) {
    AttachConfig config;
    Section section(json, path, error);
    section.only({"uapi", "vf_socket_dir"});
    section.text("uapi", config.uapi_socket);
    section.text("vf_socket_dir", config.vf_socket_dir);
    if (config.uapi_socket.empty()) section.complain("uapi", "is missing");
    return config;
}

GpuConfig gpu_of(const Json& json, const std::string& path, Error& error) {
    GpuConfig config;
    Section section(json, path, error);
    section.only({"id", "quantum_us", "max_gap_ms", "softgpu", "attach"});
    section.text("id", config.id);
    section.number("quantum_us", {scheduler::kMinQuantumUs, scheduler::kMaxQuantumUs},
                   config.quantum_us);
    section.number("max_gap_ms", {kMinGapMs, kMaxGapMs}, config.max_gap_ms);
    if (!is_valid_name(config.id)) section.complain("id", "is missing or no valid name");
    const Json* softgpu = section.find("softgpu");
    const Json* attach = section.find("attach");
    if ((softgpu == nullptr) == (attach == nullptr))
        section.complain("", "wants either 'softgpu' or 'attach'");
    if (softgpu != nullptr)
        config.softgpu = softgpu_of(*softgpu, section.path_of("softgpu"), error);
    if (attach != nullptr) config.attach = attach_of(*attach, section.path_of("attach"), error);
    return config;
}

/// What "auto" finds.
std::vector<GpuConfig> gpus_present(const std::vector<std::string>& pf_devices) {
    if (pf_devices.empty()) return {{.id = "gpu0", .softgpu = SoftgpuConfig{}, .attach = {}}};
    std::vector<GpuConfig> gpus;
    for (const std::string& device : pf_devices) {
        const std::size_t name = device.find_last_not_of("0123456789") + 1;
        gpus.push_back({.id = "gpu" + device.substr(name),
                        .softgpu = {},
                        .attach = AttachConfig{.uapi_socket = device, .vf_socket_dir = ""}});
    }
    return gpus;
}

void read_gpus(Section& root, const std::vector<std::string>& pf_devices, Config& config,
               Error& error) {
    const Json* gpus = root.find("gpus");
    if (gpus != nullptr && *gpus == "auto") {
        config.gpus = gpus_present(pf_devices);
        return;
    }
    if (gpus == nullptr || !gpus->is_array() || gpus->empty()) {
        root.complain("gpus", "wants a list of at least one GPU, or \"auto\"");
        return;
    }
    for (std::size_t i = 0; i < gpus->size(); ++i) {
        GpuConfig gpu = gpu_of((*gpus)[i], root.path_of(fmt::format("gpus/{}", i)), error);
        for (const GpuConfig& other : config.gpus)
            if (other.id == gpu.id)
                root.complain(fmt::format("gpus/{}/id", i),
                              fmt::format("'{}' is used twice", gpu.id));
        config.gpus.push_back(std::move(gpu));
    }
}

Config config_of(const Json& json, const std::string& name,
                 const std::vector<std::string>& pf_devices, Error& error) {
    Config config;
    Section root(json, name + ":", error);
    root.only({"$schema", "state_dir", "run_dir", "programs", "gpus"});
    root.text("state_dir", config.state_dir);
    root.text("run_dir", config.run_dir);
    if (const Json* programs = root.find("programs")) {
        Section section(*programs, root.path_of("programs"), error);
        section.only({"softgpu", "vgpu_pf"});
        section.text("softgpu", config.softgpu_program);
        section.text("vgpu_pf", config.pf_program);
    }
    read_gpus(root, pf_devices, config, error);
    return config;
}

}  // namespace

Result<Config> parse_config(const std::string& text, const std::string& name,
                            const std::vector<std::string>& pf_devices) {
    try {
        constexpr bool kThrows = true, kHasComments = true;
        const Json json = Json::parse(text, nullptr, kThrows, kHasComments);
        Error error{.id = ErrorId::ConfigInvalid, .cause = ""};
        Config config = config_of(json, name, pf_devices, error);
        if (!error.cause.empty()) return tl::make_unexpected(error);
        return config;
    } catch (const Json::exception& error) {
        return fail(ErrorId::ConfigInvalid, fmt::format("{}: {}", name, error.what()));
    }
}

}  // namespace vgpu::daemon
