// SPDX-License-Identifier: MIT
//
// Configuration: what an operator wants of the GPUs, as one document (JSON with comments,
// schemas/vgpu-config.schema.json, docs/profiles.md): profiles, and under labels which VFs of which
// profile each GPU is to have. parse_configuration() checks the document by itself, want() one
// label of it against the GPUs there are; plans are made from what want() returns.
// encode_configuration() writes a document that reads back the same. Pure.
#pragma once

#include "daemon/service/vf/gpu_inventory.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

/// What VFs have in common; a VF made from it may be changed later and keeps its name as a remark.
struct Profile {
    VfShape shape{};
    std::uint32_t weight = scheduler::kDefaultWeight;
    std::uint32_t quantum_us = 0;  ///< 0: the GPU's
    VfQos qos{};
    VfCustody custody{};

    bool operator==(const Profile&) const = default;
};

/// `count` VFs of one profile; "{n}" in the names is 1..count, "{gpu}" the GPU.
/// Names that result are checked when it is expanded (want()).
struct VfGroup {
    std::string profile;
    std::uint32_t count = 1;
    std::string name;
    std::string was{};  ///< the name under which it may still be there; may be empty

    bool operator==(const VfGroup&) const = default;
};

/// What is not given stays as the GPU has it.
struct GpuSection {
    std::string gpu;  ///< "*": all that have no section of their own
    std::optional<std::uint32_t> quantum_us{};
    std::optional<std::uint32_t> max_gap_ms{};
    std::vector<VfGroup> vfs{};

    bool operator==(const GpuSection&) const = default;
};

/// `configs`: by label, each with at most one section for a GPU.
struct Configuration {
    std::map<std::string, Profile> profiles;
    std::map<std::string, std::vector<GpuSection>> configs;

    bool operator==(const Configuration&) const = default;
};

/// `was`: as in VfGroup, expanded; empty: none.
/// Documents give no more than that. A VF that was there before and is to be so again (ApplyIntent)
/// has its UUID too, by which it is found whatever its name, and what follows.
struct WantedVf {
    VfDefinition definition{};
    std::string was{};
    std::uint32_t vf = 0;  ///< its number, if it has to be made again; 0: any
    OwnerRecord owner{};   ///< whose it is then
    bool is_open = false;  ///< a client had it open

    bool operator==(const WantedVf&) const = default;
};

/// All VFs that the GPU is to have, not only those to be added: what is not named here goes.
struct WantedGpu {
    std::string gpu;
    std::optional<std::uint32_t> quantum_us{};
    std::optional<std::uint32_t> max_gap_ms{};
    std::vector<WantedVf> vfs{};

    bool operator==(const WantedGpu&) const = default;
};

/// A document may come from anybody who may speak on the bus. More VFs than any GPU has are read:
/// what a GPU has is said when it is known ("18 VFs wanted, 16 exist").
inline constexpr std::size_t kMaxConfigurationBytes = 256 * 1024;
inline constexpr std::size_t kMaxProfiles = 1024;
inline constexpr std::size_t kMaxLabels = 64;
inline constexpr std::size_t kMaxGpuSections = 64;
inline constexpr std::size_t kMaxVfsPerGpu = 64;

/// BadConfiguration with the path of the first mistake; nothing behind it is read.
Result<Configuration> parse_configuration(std::string_view text);
/// Members that are as by default are left out.
std::string encode_configuration(const Configuration& configuration);

/// What the config `label` ("": the only one) wants of the GPUs `gpus`. NoSuchLabel, NoSuchGpu,
/// or BadConfiguration if a name would be given twice.
Result<std::vector<WantedGpu>> want(const Configuration& configuration, const std::string& label,
                                    std::span<const std::string> gpus);
inline constexpr std::size_t kMostLabelBytes = 62;
/// Labels and names of profiles: 1 to kMostLabelBytes of [A-Za-z0-9._-], first a letter or digit.
bool is_valid_label(std::string_view label);
/// The label that want() would take, for messages.
std::string chosen_label(const Configuration& configuration, const std::string& label);

}  // namespace vgpu::daemon
