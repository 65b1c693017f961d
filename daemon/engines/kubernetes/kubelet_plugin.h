// SPDX-License-Identifier: MIT
//
// KubeletPlugin: the gRPC services of a DRA driver, for the kubelet of this host.
//
//   PLUGINS_REGISTRY/gpu.vgpu.org-reg.sock   Registration: the kubelet finds this socket and calls
//                                            GetInfo
//   PLUGINS/gpu.vgpu.org/dra.sock            DRAPlugin v1 and v1beta1: prepare and unprepare claims
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

    /// Serves until destruction. Calls `on_registration`, in any thread, when the kubelet answers
    /// the registration; `refusal` is the kubelet's reason, or empty if the kubelet accepts.
    static Result<std::unique_ptr<KubeletPlugin>> start(
        const SocketPaths& paths, Claims& claims, const std::string& node,
        std::function<void(const std::string& refusal)> on_registration);

    virtual ~KubeletPlugin() = default;
};

}  // namespace vgpu::kubernetes
