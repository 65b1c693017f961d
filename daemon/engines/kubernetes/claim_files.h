// SPDX-License-Identifier: MIT
//
// ClaimFiles: the files of prepared claims on this host. Every file is written atomically, by a
// rename.
//
//   STATE/claims/UID/claim.json             the claim's namespace and name; outlives a reboot
//   STATE/claims/UID/REQUEST-metadata.json  read by containers
//   CDI/vgpu.org-vf-UID.json                read by the container runtime
//
// Any thread may call a ClaimFiles; callers serialize the calls for one claim.
#pragma once

#include "daemon/engines/kubernetes/claim.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace vgpu::kubernetes {

class ClaimFiles {
public:
    ClaimFiles(std::string state_directory, std::string cdi_directory)
        : state_(std::move(state_directory)), cdi_(std::move(cdi_directory)) {}

    /// Call write_record() before the VFs are claimed, so that a claimed VF always has a record.
    Result<> write_record(const ClaimReference& reference) const;
    Result<> write_metadata(const std::string& uid,
                            const std::map<std::string, nlohmann::json>& by_request) const;
    Result<> write_cdi(const std::string& uid, const nlohmann::json& spec) const;
    /// Paths of the metadata files, by request.
    [[nodiscard]] std::map<std::string, std::string> metadata_files(
        const std::string& uid, const std::map<std::string, nlohmann::json>& by_request) const;

    /// Removes the CDI file first, so that no container starts with a VF whose claim has ended.
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
