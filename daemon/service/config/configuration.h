// SPDX-License-Identifier: MIT
//
// Configuration: the VFs that an operator requests, as one document (JSON with comments,
// schemas/vgpu-config.schema.json, docs/profiles.md). The document has named profiles and, by
// label, one or more configs. A config lists the VFs of GPUs. parse_configuration() checks the
// document. desired_gpus() checks one config against the existing GPUs, for a plan.
// encode_configuration() writes a document that parse_configuration() reads back unchanged. Pure.
#pragma once

#include "daemon/service/vf/gpu_inventory.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

/// `count` VFs of one profile. In `name` and `was`, desired_gpus() replaces "{n}" by 1..count and
/// "{gpu}" by the id of the GPU.
struct VfGroup {
    std::string profile;
    std::uint32_t count = 1;
    std::string name;
    std::string was{};          ///< former name of the VF; empty: none
    std::string description{};  ///< description of these VFs; empty: the profile's description

    bool operator==(const VfGroup&) const = default;
};

/// One GPU's part of a config.
struct GpuSection {
    std::string gpu;             ///< id; "*": all GPUs without a separate section
    GpuChange scheduler{};       ///< settings of the GPU; absent values stay as they are
    std::vector<VfGroup> vfs{};  ///< all VFs of the GPU

    bool operator==(const GpuSection&) const = default;
};

/// A document.
struct Configuration {
    /// By name: the properties that the VFs of a profile have in common. A VF that is changed later
    /// keeps the profile's name.
    std::map<std::string, VfSpec> profiles;
    /// By label: sections, at most one for each GPU.
    std::map<std::string, std::vector<GpuSection>> configs;

    bool operator==(const Configuration&) const = default;
};

/// A desired VF of a GPU. `spec.uuid`, `vf`, `owner` and `is_open` are set only in an ApplyIntent
/// (apply_intent.h).
struct DesiredVf {
    VfSpec spec{};         ///< with a UUID: describes the VF with this UUID, whatever its name
    std::string was{};     ///< former name of the VF; empty: none
    std::uint32_t vf = 0;  ///< number, if the VF must be created; 0: any
    OwnerRecord owner{};   ///< the VF's owner when the apply began
    bool is_open = false;  ///< true if a client had the VF open when the apply began

    bool operator==(const DesiredVf&) const = default;
};

/// The desired state of a GPU.
struct DesiredGpu {
    std::string gpu;               ///< id
    GpuChange scheduler{};         ///< settings of the GPU; absent values stay as they are
    std::vector<DesiredVf> vfs{};  ///< all VFs; the plan destroys other VFs

    bool operator==(const DesiredGpu&) const = default;
};

/// Limits of a document, because any caller on the bus may send one. In addition, a section may
/// request at most kMaxVfsPerGpu VFs (backend/vf_limit.h). If the GPU can have fewer VFs,
/// check_capacity() refuses the request later and reports how many.
inline constexpr std::size_t kMaxConfigurationBytes = 256 * 1024;
inline constexpr std::size_t kMaxProfiles = 1024;
inline constexpr std::size_t kMaxLabels = 64;
inline constexpr std::size_t kMaxGpuSections = 64;  ///< per label

/// Reads a document. Fails with BadConfiguration, which names the place of a mistake.
Result<Configuration> parse_configuration(std::string_view text);
/// Writes a document as JSON. Omits optional members with default values, except weights.
std::string encode_configuration(const Configuration& configuration);

/// The desired state of each GPU for which the config `label` has a section. `label` may be empty
/// if the document has only one config. `gpus`: ids of all GPUs. Fails with NoSuchLabel, NoSuchGpu
/// or InvalidName, or with BadConfiguration for duplicate names.
Result<std::vector<DesiredGpu>> desired_gpus(const Configuration& configuration,
                                             const std::string& label,
                                             std::span<const std::string> gpus);
/// Maximum length of labels and profile names.
inline constexpr std::size_t kMaxLabelBytes = 62;
/// True for a valid label or profile name: 1 to kMaxLabelBytes characters of [A-Za-z0-9._-], the
/// first a letter or digit.
bool is_valid_label(std::string_view label);
/// The label that desired_gpus() uses: `label` or, if `label` is empty and the document has only
/// one config, the label of this config.
std::string chosen_label(const Configuration& configuration, const std::string& label);

}  // namespace vgpu::daemon
