// SPDX-License-Identifier: MIT
//
// Publisher: keeps the ResourceSlices of this host equal to its devices. publish() writes only if
// slices and devices differ, and then makes a new generation of the pool. If another program has
// written meanwhile (HTTP status 409 or 404), publish() reads again. Runs in one thread.
#pragma once

#include "daemon/engines/kubernetes/slices.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::kubernetes {

class Publisher {
public:
    /// Limit of the attempts of publish() while other programs write, too.
    static constexpr int kTries = 5;

    Publisher(ApiPort& api, std::string node) : api_(api), node_{std::move(node), ""} {}

    /// True if `devices` are the devices of the last successful publish().
    [[nodiscard]] bool knows(const std::vector<Device>& devices) const {
        return published_ == devices;
    }
    /// Reads the slices. If the slices differ from `devices`, writes all slices that `devices` need
    /// and removes surplus slices.
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
        bool is_conflict = false;  ///< true if another program wrote first, so read again
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
    /// The devices of the last successful publish(). If publish() gets the same devices again, and
    /// the slices still have versions_, it writes nothing, even if slices and devices differ. They
    /// may differ, because the API server may drop fields of features that are off.
    std::optional<std::vector<Device>> published_;
    /// The versions of the slices after the last successful publish().
    Versions versions_;
};

}  // namespace vgpu::kubernetes
