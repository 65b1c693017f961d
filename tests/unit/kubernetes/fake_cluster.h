// SPDX-License-Identifier: MIT
//
// The world of the Kubernetes bridge in memory, at its ports: FakeApi (an API server with
// ResourceSlices and ResourceClaims), FakeVgpud (the VFs of one host) and FakePci.
#pragma once

#include "daemon/engines/kubernetes/claim.h"
#include "daemon/engines/kubernetes/ports.h"

#include <fmt/format.h>
#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace vgpu::kubernetes::testing {

using nlohmann::json;

inline const std::string kNode = "worker-1";
inline const std::string kUid = "c7e7b22e-239b-4498-b27c-7f1344481e14";

inline json status_object(int code, const std::string& reason, const std::string& kind,
                          const std::string& name) {
    return {{"kind", "Status"},
            {"status", "Failure"},
            {"code", code},
            {"reason", reason},
            {"message", fmt::format("{} \"{}\": {}", kind, name, reason)},
            {"details", {{"kind", kind}, {"name", name}}}};
}

/// A ResourceClaim with one device for each of `devices`, of request "gpu".
inline json claim_object(const ClaimReference& reference, const std::vector<std::string>& devices) {
    json results = json::array();
    for (const std::string& device : devices)
        results.push_back(
            {{"request", "gpu"}, {"driver", "gpu.vgpu.org"}, {"pool", kNode}, {"device", device}});
    return {
        {"apiVersion", "resource.k8s.io/v1"},
        {"kind", "ResourceClaim"},
        {"metadata",
         {{"namespace", reference.name_space}, {"name", reference.name}, {"uid", reference.uid}}},
        {"status", {{"allocation", {{"devices", {{"results", results}}}}}}}};
}

class FakeApi final : public ApiPort {
public:
    Result<Response> call(Method method, const std::string& path,
                          const std::string& body) override {
        if (before_call) before_call(method);
        if (!outage.empty()) return fail(ErrorId::System, outage);
        if (canned) return *canned;
        if (path.starts_with("/apis/resource.k8s.io/v1/resourceslices"))
            return slice_call(method, path, body);
        if (path.starts_with("/api/v1/nodes/")) return node_call(path.substr(path.rfind('/') + 1));
        const auto claim = claims.find(path);
        if (claim != claims.end()) return Response{.status = 200, .body = claim->second.dump()};
        return refusal(404, "NotFound", "resourceclaims", path.substr(path.rfind('/') + 1));
    }

    void add(const ClaimReference& reference, const std::vector<std::string>& devices) {
        claims[path_of(reference)] = claim_object(reference, devices);
    }
    /// Somebody else changes a slice.
    void touch(json& slice) { slice["metadata"]["resourceVersion"] = std::to_string(++version_); }

    std::map<std::string, json> slices;  ///< by name
    std::map<std::string, json> claims;  ///< by path
    std::string node_uid = "uid-1";      ///< uid of each Node object
    int node_status = 200;               ///< HTTP status of the answer for a Node object
    std::string outage;                  ///< no answer, for this reason
    std::optional<Response> canned;      ///< every answer
    std::function<void(Method)> before_call;
    bool drops_taints = false;
    int writes = 0;

private:
    static Response refusal(int code, const std::string& reason, const std::string& kind,
                            const std::string& name) {
        return {.status = code, .body = status_object(code, reason, kind, name).dump()};
    }
    [[nodiscard]] Response node_call(const std::string& name) const {
        if (node_status == 200)
            return {.status = 200,
                    .body = fmt::format(R"({{"metadata":{{"uid":"{}"}}}})", node_uid)};
        return refusal(node_status, node_status == 404 ? "NotFound" : "Forbidden", "nodes", name);
    }
    Response slice_call(Method method, const std::string& path, const std::string& body) {
        if (method == Method::Get) return list();
        ++writes;
        if (method == Method::Delete) return remove(path.substr(path.rfind('/') + 1));
        json slice = json::parse(body);
        const std::string name = slice["metadata"]["name"];
        const auto old = slices.find(name);
        const bool is_there = old != slices.end();
        if (method == Method::Post && is_there)
            return refusal(409, "AlreadyExists", "resourceslices", name);
        if (method == Method::Put && !is_there)
            return refusal(404, "NotFound", "resourceslices", name);
        if (is_there && old->second["metadata"]["resourceVersion"] !=
                            slice["metadata"].value("resourceVersion", ""))
            return refusal(409, "Conflict", "resourceslices", name);
        touch(slice);
        for (json& device : slice["spec"]["devices"]) {
            if (drops_taints) device.erase("taints");
            if (device.contains("taints"))
                device["taints"][0]["timeAdded"] = "2026-01-01T00:00:00Z";
        }
        slices[name] = slice;
        return {.status = 200, .body = slice.dump()};
    }
    Response list() const {
        json items = json::array();
        for (const auto& [name, slice] : slices) items.push_back(slice);
        return {.status = 200,
                .body = json{{"kind", "ResourceSliceList"}, {"items", items}}.dump()};
    }
    Response remove(const std::string& name) {
        if (slices.erase(name) == 0) return refusal(404, "NotFound", "resourceslices", name);
        return {.status = 200, .body = "{}"};
    }

    int version_ = 100;
};

class FakeVgpud final : public VgpudPort {
public:
    /// 4 VFs gpu0/vf1 … of softgpu.
    FakeVgpud() {
        for (int n = 1; n <= 4; ++n)
            host.push_back({.target = fmt::format("gpu0/vf{}", n),
                            .name = fmt::format("small-{}", n),
                            .profile = "small",
                            .state = "ready",
                            .gpu_state = "ok",
                            .owner = "",
                            .address = "",
                            .socket = fmt::format("/run/vgpu/gpu0/vf{}.sock", n),
                            .vram_bytes = 64ull << 20,
                            .weight = 100,
                            .min_pct = 12.5});
    }

    Result<std::vector<HostVf>> vfs() override {
        if (is_away) return away();
        return host;
    }
    Result<> assign(const std::string& owner, const std::string&,
                    const std::vector<std::string>& names, const SocketUser&) override {
        if (is_away) return away();
        for (const std::string& name : names) {
            const HostVf& vf = *std::ranges::find(host, name, &HostVf::name);
            if (!vf.owner.empty() && vf.owner != owner && !vf.is_lease_over)
                return fail(ErrorId::Claimed, vf.name + " belongs to '" + vf.owner + "'");
        }
        for (const std::string& name : names)
            std::ranges::find(host, name, &HostVf::name)->owner = owner;
        return {};
    }
    Result<std::uint32_t> unassign(const std::string& owner) override {
        if (is_away) return away();
        unassigned.push_back(owner);
        std::uint32_t count = 0;
        for (HostVf& vf : host)
            if (vf.owner == owner) {
                vf.owner.clear();
                ++count;
            }
        return count;
    }

    std::vector<HostVf> host;
    std::vector<std::string> unassigned;  ///< owners, in the order of the calls
    bool is_away = false;

private:
    static tl::unexpected<Error> away() { return fail(ErrorId::System, "vgpud does not answer"); }
};

class FakePci final : public PciPort {
public:
    [[nodiscard]] std::optional<int> numa_node(const std::string& address) const override {
        return address == "0000:03:00.1" ? std::optional(1) : std::nullopt;
    }
    [[nodiscard]] std::string iommu_group(const std::string& address) const override {
        return address == "0000:03:00.1" ? "17" : "";
    }
};

}  // namespace vgpu::kubernetes::testing
