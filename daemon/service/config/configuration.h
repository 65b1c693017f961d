// SPDX-License-Identifier: MIT
//
// Configuration: the VFs that an operator requests, as one document (JSON with comments,
// schemas/vgpu-config.schema.json, docs/profiles.md). The document has profiles and, under labels,
// the VFs of each GPU. parse_configuration() checks the document, desired_gpus() checks one label
// against the GPUs for a plan, and encode_configuration() writes a document that reads back the
// same. Pure.
#pragma once

#include "daemon/service/vf/gpu_inventory.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

/// `count` VFs of one profile. In names, desired_gpus() replaces "{n}" by 1..count, and "{gpu}" by
/// the id of the GPU.
struct VfGroup {
    std::string profile;
    std::uint32_t count = 1;
    std::string name;
    std::string was{};          ///< former name of the VF; may be empty
    std::string description{};  ///< description of these VFs; empty: the profile's description

    bool operator==(const VfGroup&) const = default;
};

/// One GPU's part of a config. Values that are not given stay as they are.
struct GpuSection {
    std::string gpu;  ///< "*": all GPUs without a separate section
    GpuChange scheduler{};
    std::vector<VfGroup> vfs{};

    bool operator==(const GpuSection&) const = default;
};

/// `profiles`: common properties of VFs. A VF that is changed later still shows the name of its
/// profile. `configs`: by label, the sections of GPUs, at most one section per GPU.
struct Configuration {
    std::map<std::string, VfSpec> profiles;
    std::map<std::string, std::vector<GpuSection>> configs;

    bool operator==(const Configuration&) const = default;
};

/// A VF that a GPU has after the plan. `was`: as in VfGroup, expanded; may be empty. `vf`, `owner`
/// and `is_open` are for VFs that an ApplyIntent restores. The planner finds such a VF by its UUID,
/// even under another name.
struct DesiredVf {
    VfSpec spec{};
    std::string was{};
    std::uint32_t vf = 0;  ///< number of a VF that must be recreated; 0: any
    OwnerRecord owner{};   ///< the VF's owner when the apply began
    bool is_open = false;  ///< true if a client had the VF open when the apply began

    bool operator==(const DesiredVf&) const = default;
};

/// All VFs that a GPU has after the plan. The plan destroys other VFs.
struct DesiredGpu {
    std::string gpu;
    GpuChange scheduler{};
    std::vector<DesiredVf> vfs{};

    bool operator==(const DesiredGpu&) const = default;
};

/// Limits of documents, because any caller on the bus may send a document. A section may request up
/// to kMaxVfsPerGpu VFs (backend/vf_limit.h). If the GPU has fewer, the plan's error says how many.
inline constexpr std::size_t kMaxConfigurationBytes = 256 * 1024;
inline constexpr std::size_t kMaxProfiles = 1024;
inline constexpr std::size_t kMaxLabels = 64;
inline constexpr std::size_t kMaxGpuSections = 64;

/// Reads a document. BadConfiguration with the path of the first mistake; reading stops there.
Result<Configuration> parse_configuration(std::string_view text);
/// Writes a document. Omits members with default values, except weights.
std::string encode_configuration(const Configuration& configuration);

/// The desired VFs of one label, without GPUs that have no section. `label` may be empty if the
/// document has a single label. `gpus`: ids of all GPUs. Fails with NoSuchLabel, NoSuchGpu or
/// InvalidName, or with BadConfiguration for duplicate names.
Result<std::vector<DesiredGpu>> desired_gpus(const Configuration& configuration,
                                             const std::string& label,
                                             std::span<const std::string> gpus);
/// Limit of labels and profile names.
inline constexpr std::size_t kMaxLabelBytes = 62;
/// True for a valid label or profile name: 1 to kMaxLabelBytes characters of [A-Za-z0-9._-], the
/// first a letter or digit.
bool is_valid_label(std::string_view label);
/// The label that desired_gpus() uses: `label`, or the document's single label if `label` is empty.
std::string chosen_label(const Configuration& configuration, const std::string& label);

}  // namespace vgpu::daemon
