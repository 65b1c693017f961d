// SPDX-License-Identifier: MIT
//
// Publisher: keeps the ResourceSlices of this host equal to its devices. Writes only if slices and
// devices differ; each write makes a new generation of the pool. If another program writes at the
// same time (HTTP status 409 or 404), publish() reads again. Runs in one thread.
#pragma once

#include "daemon/engines/kubernetes/slices.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::kubernetes {

class Publisher {
public:
    /// Limit of attempts when others write at the same time.
    static constexpr int kTries = 5;

    Publisher(ApiPort& api, std::string node) : api_(api), node_{std::move(node), ""} {}

    /// True if `devices` are those of the last successful publish().
    [[nodiscard]] bool knows(const std::vector<Device>& devices) const {
        return published_ == devices;
    }
    /// Reads the slices. If they differ from `devices`, writes all slices and removes surplus ones.
    /// After an error the API server may have some of the new slices; Kubernetes does not use the
    /// pool until the next publish() succeeds.
    Result<> publish(const std::vector<Device>& devices);
    /// Removes all slices of this host.
    Result<> withdraw();

private:
    /// Resource versions of slices, by name.
    using Versions = std::map<std::string, std::string>;
    struct Refusal {
        Error error;
        bool is_conflict = false;  ///< true if another program wrote first: read again
    };
    template <typename T> using Written = tl::expected<T, Refusal>;

    Result<std::vector<PublishedSlice>> read();
    [[nodiscard]] static Versions versions_of(const std::vector<PublishedSlice>& slices);
    [[nodiscard]] bool is_current(const std::vector<PublishedSlice>& slices,
                                  const std::vector<Device>& devices) const;
    Written<Versions> write(const std::vector<PublishedSlice>& before,
                            const std::vector<std::vector<Device>>& desired);
    Written<std::string> write_one(const std::vector<PublishedSlice>& before,
                                   const nlohmann::json& slice);
    Written<std::string> remove(const PublishedSlice& slice);
    Written<std::string> call(Method method, const std::string& path, const std::string& body);
    void read_node();

    ApiPort& api_;
    NodeReference node_;
    /// The devices as last written to the API server, and the versions of its objects. The API
    /// server may drop fields of features that are off; writing them again would not help.
    std::optional<std::vector<Device>> published_;
    Versions versions_;
};

}  // namespace vgpu::kubernetes
