// SPDX-License-Identifier: MIT
//
// KubeletPlugin: the gRPC services of a DRA driver, for the kubelet of this host.
//
//   PLUGINS_REGISTRY/gpu.vgpu.org-reg.sock   Registration: the kubelet finds it and asks GetInfo
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
    struct Place {
        std::string dra_socket;
        std::string registration_socket;
    };

    /// Serves until destruction. `on_registration`: the kubelet answered the registration, with an
    /// empty text or why it refused. It may be called by any thread.
    static Result<std::unique_ptr<KubeletPlugin>> start(
        const Place& place, Claims& claims, const std::string& node,
        std::function<void(const std::string& refusal)> on_registration);

    virtual ~KubeletPlugin() = default;
};

}  // namespace vgpu::kubernetes
