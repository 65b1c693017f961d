// SPDX-License-Identifier: MIT
//
// Ports of the Kubernetes bridge: interfaces to vgpud, to the API server, and to the PCI functions
// of this host. Tests implement the ports with fakes. Any thread may call a port.
#pragma once

#include "daemon/ports/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::kubernetes {

using daemon::Error;
using daemon::ErrorId;
using daemon::fail;
using daemon::fail_errno;
using daemon::Result;

/// A VF as vgpud lists it. A driver other than the PF core may leave numbers unknown.
struct HostVf {
    std::string target;  ///< "gpu0/vf3"
    std::string name;
    std::string profile;    ///< empty: none
    std::string state;      ///< as the property State of the VF
    std::string gpu_state;  ///< as the property State of its GPU
    std::string owner;      ///< empty: none
    std::string address;    ///< PCI address of the function; empty: not known
    std::string socket;     ///< vfio-user socket; empty: the VF is a PCI function of this host
    std::optional<std::uint64_t> vram_bytes;  ///< none: not known
    std::optional<std::uint32_t> weight;
    std::optional<double> min_pct;
    bool is_open = false;  ///< true if a client has the VF open
};

/// The user who may open the sockets of a claim's VFs.
struct SocketUser {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
};

/// Errors of vgpud keep their ids. System: vgpud does not answer.
class VgpudPort {
public:
    virtual ~VgpudPort() = default;
    virtual Result<std::vector<HostVf>> vfs() = 0;
    /// Gives `owner` the VFs named `names`, all or none; a repeated call changes nothing.
    virtual Result<> assign(const std::string& owner, const std::string& owner_name,
                            const std::vector<std::string>& names, const SocketUser& user) = 0;
    /// Ends the claims of `owner`. Returns the number of VFs whose claims ended.
    virtual Result<std::uint32_t> unassign(const std::string& owner) = 0;
};

inline constexpr int kHttpOk = 200, kHttpNotFound = 404, kHttpConflict = 409;

enum class Method { Get, Post, Put, Delete };

/// A complete answer of the API server, even if the API server refuses the request.
struct Response {
    int status = 0;
    std::string body;
};

class ApiPort {
public:
    virtual ~ApiPort() = default;
    /// `path`: with its query. `body`: JSON, or empty. System if there is no complete answer.
    virtual Result<Response> call(Method method, const std::string& path,
                                  const std::string& body) = 0;
};

class PciPort {
public:
    virtual ~PciPort() = default;
    /// None if the function has no NUMA node.
    [[nodiscard]] virtual std::optional<int> numa_node(const std::string& address) const = 0;
    /// "17"; empty if the function has no IOMMU group.
    [[nodiscard]] virtual std::string iommu_group(const std::string& address) const = 0;
};

}  // namespace vgpu::kubernetes
