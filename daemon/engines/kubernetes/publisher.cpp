// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/publisher.h"

#include "daemon/engines/kubernetes/claim.h"
#include "daemon/engines/kubernetes/names.h"
#include "text/json_document.h"

#include <fmt/format.h>
#include <algorithm>

namespace vgpu::kubernetes {

namespace {

bool is_success(int status) {
    return status >= 200 && status < 300;
}

/// %3D is '=' in a URL.
std::string list_path(const std::string& node) {
    return fmt::format("{}?fieldSelector=spec.driver%3D{},spec.nodeName%3D{}", kSlicesPath, kDriver,
                       node);
}

std::string slice_path(const std::string& name) {
    return fmt::format("{}/{}", kSlicesPath, name);
}

std::int64_t next_generation(const std::vector<PublishedSlice>& slices) {
    std::int64_t last = 0;
    for (const PublishedSlice& slice : slices) last = std::max(last, slice.generation);
    return last + 1;
}

/// The string at a JSON pointer in `body`; empty if there is none.
std::string word_at(const std::string& body, const char* pointer) {
    const auto document = text::read_json(body);
    const nlohmann::json::json_pointer at(pointer);
    if (!document || !document->contains(at) || !document->at(at).is_string()) return "";
    return document->at(at).get<std::string>();
}

/// True if the API server answers that there is no such Node object. A 404 of a proxy does not say
/// so.
bool is_absent_node(const Response& response) {
    return response.status == kHttpNotFound && word_at(response.body, "/reason") == "NotFound" &&
           word_at(response.body, "/details/kind") == "nodes";
}

}  // namespace

Result<std::vector<PublishedSlice>> Publisher::read() {
    TRY(const Response response, api_.call(Method::Get, list_path(node_.name), ""));
    if (response.status == kHttpNotFound)
        return fail(ErrorId::System,
                    "the API server has no ResourceSlices of resource.k8s.io/v1: vgpu-dra needs "
                    "Kubernetes 1.34 or later; older ones need --mode device-plugin");
    if (!is_success(response.status))
        return fail(ErrorId::System, "cannot list ResourceSlices: " + refusal_text(response));
    return published_in(response.body, node_.name);
}

/// Calls the API server. Returns the body of the answer.
Publisher::Written<std::string> Publisher::call(Method method, const std::string& path,
                                                const std::string& body) {
    auto response = api_.call(method, path, body);
    if (!response)
        return tl::make_unexpected(Refusal{.error = response.error(), .is_conflict = false});
    if (is_success(response->status)) return std::move(response->body);
    return tl::make_unexpected(Refusal{
        .error = {ErrorId::System,
                  fmt::format("cannot write {}: {}", path, refusal_text(*response))},
        .is_conflict = response->status == kHttpConflict || response->status == kHttpNotFound});
}

/// Reads the uid of the Node object, which owns the slices. A node that was removed and registered
/// again has another uid. System if the node does not exist: Kubernetes would remove slices of an
/// owner that is gone. Ignores other failures, because slices work without an owner; but Kubernetes
/// then does not remove them together with the node.
Result<> Publisher::read_node() {
    const auto response = api_.call(Method::Get, "/api/v1/nodes/" + node_.name, "");
    if (!response) return {};
    if (is_absent_node(*response))
        return fail(ErrorId::System,
                    fmt::format("Kubernetes has no node '{}', so its devices are not published: "
                                "the node was removed, or --node is not its name (compare "
                                "'kubectl get nodes')",
                                node_.name));
    auto uid = is_success(response->status) ? word_at(response->body, "/metadata/uid") : "";
    if (!uid.empty()) node_.uid = std::move(uid);
    return {};
}

/// Creates the slice, or replaces it if `before` has a slice with its name. Returns the resource
/// version of the written slice.
Publisher::Written<std::string> Publisher::write_one(const std::vector<PublishedSlice>& before,
                                                     const nlohmann::json& slice) {
    const std::string name = slice["metadata"]["name"];
    const auto old = std::ranges::find(before, name, &PublishedSlice::name);
    auto body = slice;
    if (old != before.end()) body["metadata"]["resourceVersion"] = old->resource_version;
    auto answer = old == before.end() ? call(Method::Post, std::string(kSlicesPath), body.dump())
                                      : call(Method::Put, slice_path(name), body.dump());
    if (!answer) return answer;
    return word_at(*answer, "/metadata/resourceVersion");
}

/// Succeeds if the slice is already gone.
Publisher::Written<std::string> Publisher::remove(const PublishedSlice& slice) {
    auto gone = call(Method::Delete, slice_path(slice.name), "");
    if (!gone && gone.error().is_conflict) return std::string();
    return gone;
}

Publisher::Written<Publisher::Versions> Publisher::write(
    const std::vector<PublishedSlice>& before, const std::vector<std::vector<Device>>& desired) {
    const std::int64_t generation = next_generation(before);
    Versions versions;
    for (std::size_t index = 0; index < desired.size(); ++index) {
        auto version =
            write_one(before, slice_json(node_, index, desired.size(), generation, desired[index]));
        if (!version) return tl::make_unexpected(std::move(version).error());
        versions[slice_name(node_.name, index)] = *version;
    }
    for (const PublishedSlice& slice : before) {
        if (versions.contains(slice.name)) continue;
        if (auto gone = remove(slice); !gone) return tl::make_unexpected(std::move(gone).error());
    }
    return versions;
}

Publisher::Versions Publisher::versions_of(const std::vector<PublishedSlice>& slices) {
    Versions versions;
    for (const PublishedSlice& slice : slices) versions[slice.name] = slice.resource_version;
    return versions;
}

bool Publisher::is_current(const std::vector<PublishedSlice>& slices,
                           const std::vector<Device>& devices) const {
    const auto is_of_other_node = [this](const PublishedSlice& slice) {
        return slice.owner_uid != node_.uid;
    };
    if (!node_.uid.empty() && std::ranges::any_of(slices, is_of_other_node)) return false;
    return (published_ == devices && versions_of(slices) == versions_) ||
           is_published(slices, split(devices), node_.name);
}

Result<> Publisher::publish(const std::vector<Device>& devices) {
    TRY_VOID(read_node());
    Error error;
    for (int attempt = 0; attempt < kTries; ++attempt) {
        TRY(const std::vector<PublishedSlice> before, read());
        auto written =
            is_current(before, devices) ? versions_of(before) : write(before, split(devices));
        published_.reset();
        if (written) {
            published_ = devices;
            versions_ = *std::move(written);
            return {};
        }
        error = written.error().error;
        if (!written.error().is_conflict) break;
    }
    return tl::make_unexpected(std::move(error));
}

Result<> Publisher::withdraw() {
    published_.reset();
    TRY(const std::vector<PublishedSlice> before, read());
    for (const PublishedSlice& slice : before)
        if (auto gone = remove(slice); !gone)
            return tl::make_unexpected(std::move(gone).error().error);
    return {};
}

}  // namespace vgpu::kubernetes
