// SPDX-License-Identifier: MIT
//
// KubeletPlugin: the gRPC services that the kubelet of this host expects of a DRA driver (dynamic
// resource allocation). Their sockets are below /var/lib/kubelet or another --kubelet-dir:
//
//   plugins_registry/gpu.vgpu.org-reg.sock   Registration: the kubelet finds this socket, calls
//                                            GetInfo, which returns the path of dra.sock, and then
//                                            calls NotifyRegistrationStatus with the result
//   plugins/gpu.vgpu.org/dra.sock            DRAPlugin v1 and v1beta1: prepare and unprepare claims
//
// The services run in threads of gRPC, which call Claims.
#pragma once

#include "daemon/engines/kubernetes/claims.h"

#include <functional>
#include <memory>
#include <string>

namespace vgpu::kubernetes {

class KubeletPlugin {
public:
    struct SocketPaths {
        std::string dra_socket;
        std::string registration_socket;
    };

    /// Serves until destruction. `node`: the name of this host in Kubernetes; the DRA pool of its
    /// devices has the same name. When the kubelet calls NotifyRegistrationStatus, calls
    /// `on_registration` in a thread of gRPC. `refusal`: why the kubelet did not register the
    /// driver; empty if it did. Errors as serve_at() (grpc_server.h).
    static Result<std::unique_ptr<KubeletPlugin>> start(
        const SocketPaths& paths, Claims& claims, const std::string& node,
        std::function<void(const std::string& refusal)> on_registration);

    virtual ~KubeletPlugin() = default;
};

}  // namespace vgpu::kubernetes
