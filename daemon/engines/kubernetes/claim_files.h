// SPDX-License-Identifier: MIT
//
// ClaimFiles: writes and removes the files of the ResourceClaims of this host (claims.h). Each file
// is replaced atomically, by a rename. STATE and CDI are the directories that the constructor gets,
// and UID is the uid of the ResourceClaim.
//
//   STATE/claims/UID/claim.json             the record: namespace and name of the ResourceClaim
//   STATE/claims/UID/REQUEST-metadata.json  metadata, which containers read
//   CDI/vgpu.org-vf-UID.json                CDI specification, which the container runtime reads
//
// Thread-safe, except that only one thread at a time may make calls for the same ResourceClaim. All
// errors are System.
#pragma once

#include "daemon/engines/kubernetes/claim.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace vgpu::kubernetes {

class ClaimFiles {
public:
    /// `state_directory` must survive a reboot, because the claims in vgpud do.
    ClaimFiles(std::string state_directory, std::string cdi_directory)
        : state_(std::move(state_directory)), cdi_(std::move(cdi_directory)) {}

    /// Call it before the VFs are claimed, so that each claim in vgpud has a record.
    Result<> write_record(const ClaimReference& reference) const;
    /// Writes a metadata file for each element of `by_request`.
    Result<> write_metadata(const std::string& uid,
                            const std::map<std::string, nlohmann::json>& by_request) const;
    Result<> write_cdi(const std::string& uid, const nlohmann::json& spec) const;
    /// The paths to which write_metadata() writes, by request.
    [[nodiscard]] std::map<std::string, std::string> metadata_files(
        const std::string& uid, const std::map<std::string, nlohmann::json>& by_request) const;

    /// Removes all files of a ResourceClaim. Removes the CDI file first, because with this file a
    /// container could still start.
    Result<> remove(const std::string& uid) const;
    /// All records. Skips directories whose record cannot be read.
    [[nodiscard]] std::vector<ClaimReference> records() const;

private:
    [[nodiscard]] std::string directory_of(const std::string& uid) const;
    [[nodiscard]] std::string cdi_file(const std::string& uid) const;

    std::string state_;
    std::string cdi_;
};

}  // namespace vgpu::kubernetes
