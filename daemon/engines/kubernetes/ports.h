// SPDX-License-Identifier: MIT
//
// Ports of the Kubernetes bridge: interfaces to vgpud, to the API server, and to the PCI functions
// of this host. Tests implement the ports with fakes. Implementations must be thread-safe.
#pragma once

#include "daemon/ports/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::kubernetes {

using daemon::Error;
using daemon::ErrorId;
using daemon::fail;
using daemon::fail_errno;
using daemon::Result;

/// A VF of this host, as vgpud lists it. A number is none if vgpud does not know it, which may
/// happen if a driver other than the PF core manages the GPU.
struct HostVf {
    std::string target;   ///< "gpu0/vf3"
    std::string name;     ///< unique over all GPUs of this host
    std::string profile;  ///< empty: none
    std::string state;    ///< the D-Bus property State of the VF: "ready"
    /// The D-Bus property State of its GPU: "ok"; "read-only": the GPU is in service, but vgpud
    /// cannot change it, because its state file is not trusted; empty: not known.
    std::string gpu_state;
    /// The D-Bus property Condition: why the VF differs from its definition; empty: it does not.
    std::string condition{};
    std::string owner;           ///< empty: none
    bool is_lease_over = false;  ///< true if the owner's claim had a lease, and the lease is over
    std::string address;         ///< PCI address of the function; empty: not known
    std::string socket;          ///< vfio-user socket; empty: the VF is a PCI function of this host
    std::string assignment_mode{};  ///< the D-Bus property AssignmentMode: "vfio-user"
    std::optional<std::uint64_t> vram_bytes;
    std::optional<std::uint32_t> weight;  ///< share of the engine relative to other VFs, 1 to 10000
    std::optional<double> min_pct;        ///< reserved share of the engine in percent, 0 to 100
    bool is_open = false;                 ///< true if a client has the VF open
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
    /// All VFs of this host.
    virtual Result<std::vector<HostVf>> vfs() = 0;
    /// Claims the VFs with the names `names` for `owner`, all or none. On success, also ends claims
    /// of `owner` on other VFs. A repeated call changes nothing. `owner_name`: the owner's name for
    /// people. `user` may then open the sockets of the VFs.
    virtual Result<> assign(const std::string& owner, const std::string& owner_name,
                            const std::vector<std::string>& names, const SocketUser& user) = 0;
    /// Ends the claims of `owner`. Returns the number of VFs whose claims ended.
    virtual Result<std::uint32_t> unassign(const std::string& owner) = 0;
};

/// HostVf::gpu_state of a GPU that is in service and can be changed.
inline constexpr std::string_view kGpuOk = "ok";

inline constexpr int kHttpOk = 200, kHttpNotFound = 404, kHttpConflict = 409;

enum class Method { Get, Post, Put, Delete };

/// A complete answer of the API server. An answer that refuses the request is also a Response.
struct Response {
    int status = 0;  ///< HTTP status
    std::string body;
};

class ApiPort {
public:
    virtual ~ApiPort() = default;
    /// Sends a request. `path`: path and query of the URL. `body`: JSON, or empty. System if the
    /// request cannot be sent or no complete answer arrives.
    virtual Result<Response> call(Method method, const std::string& path,
                                  const std::string& body) = 0;
};

class PciPort {
public:
    virtual ~PciPort() = default;
    /// `address`: "0000:03:00.1". None if the function has no NUMA node, or an unknown one.
    [[nodiscard]] virtual std::optional<int> numa_node(const std::string& address) const = 0;
    /// The number of the IOMMU group, such as "17"; empty if the function has no IOMMU group.
    [[nodiscard]] virtual std::string iommu_group(const std::string& address) const = 0;
};

}  // namespace vgpu::kubernetes
