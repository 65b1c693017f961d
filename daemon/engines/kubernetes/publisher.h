// SPDX-License-Identifier: MIT
//
// Publisher: makes the ResourceSlices of this host on the API server match the devices of the host.
// publish() reads the Node object and the slices. If slices and devices differ, or if the Node
// object does not own the slices, it writes a new generation of the pool (slices.h). If another
// program has written since the read (HTTP status 409 or 404), publish() starts again, up to kTries
// attempts in all. Not thread-safe.
#pragma once

#include "daemon/engines/kubernetes/slices.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::kubernetes {

class Publisher {
public:
    /// publish() fails after this many attempts if other programs write each time.
    static constexpr int kTries = 5;

    Publisher(ApiPort& api, std::string node) : api_(api), node_{std::move(node), ""} {}

    /// True if `devices` are the devices of the last successful publish().
    [[nodiscard]] bool knows(const std::vector<Device>& devices) const {
        return published_ == devices;
    }
    /// Reads the slices. If they do not match `devices`, or have another owner than the Node
    /// object, writes all slices and removes surplus slices. After an error the API server may have
    /// only some of the new slices. Kubernetes then does not use the pool until the next publish()
    /// succeeds. System if the API server refuses or does not answer, or if it has no Node object
    /// of this host; publish() then writes nothing.
    Result<> publish(const std::vector<Device>& devices);
    /// Removes all slices of this host.
    Result<> withdraw();

private:
    /// Resource versions of slices, by name.
    using Versions = std::map<std::string, std::string>;
    /// Why a slice was not written.
    struct Refusal {
        Error error;
        bool is_conflict = false;  ///< true if another program wrote first: read the slices again
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
    Result<> read_node();

    ApiPort& api_;
    NodeReference node_;
    /// The devices of the last successful publish(); none after a write that failed. If publish()
    /// gets the same devices again, and the slices still have versions_ and their owner, it writes
    /// nothing, even if the slices differ from the devices: the API server drops fields of features
    /// that are off.
    std::optional<std::vector<Device>> published_;
    /// The resource versions of the slices after the last successful publish().
    Versions versions_;
};

}  // namespace vgpu::kubernetes
