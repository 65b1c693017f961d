// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/kubelet_plugin.h"

#include "daemon/engines/kubernetes/grpc_server.h"
#include "daemon/engines/kubernetes/names.h"

#include "dra_v1.grpc.pb.h"
#include "dra_v1beta1.grpc.pb.h"
#include "registration.grpc.pb.h"

namespace vgpu::kubernetes {

namespace {

namespace v1 = k8s::io::kubelet::pkg::apis::dra::v1;
namespace v1beta1 = k8s::io::kubelet::pkg::apis::dra::v1beta1;

template <typename Claim> ClaimReference reference_of(const Claim& claim) {
    return {.name_space = claim.namespace_(), .name = claim.name(), .uid = claim.uid()};
}

template <typename Device>
void fill(Device& out, const std::string& node, const std::string& uid,
          const std::vector<PreparedDevice>& devices, std::size_t index) {
    const AllocatedDevice& allocated = devices[index].allocated;
    out.add_request_names(allocated.request);
    out.set_pool_name(node);
    out.set_device_name(allocated.device);
    for (const std::string& id : cdi_ids(uid, devices, index)) out.add_cdi_device_ids(id);
}

/// The service DRAPlugin in one version of the interface. The versions differ only in the types of
/// the messages. If one claim of a request fails, the other claims are still handled.
template <typename Service, typename PrepareRequest, typename PrepareResponse,
          typename UnprepareRequest, typename UnprepareResponse>
class DraService final : public Service {
public:
    DraService(Claims& claims, std::string node) : claims_(claims), node_(std::move(node)) {}

    grpc::Status NodePrepareResources(grpc::ServerContext*, const PrepareRequest* request,
                                      PrepareResponse* response) override {
        for (const auto& claim : request->claims()) {
            auto& answer = (*response->mutable_claims())[claim.uid()];
            const auto devices = claims_.prepare(reference_of(claim));
            if (!devices) {
                answer.set_error(text_of(devices.error()));
                continue;
            }
            for (std::size_t index = 0; index < devices->size(); ++index)
                fill(*answer.add_devices(), node_, claim.uid(), *devices, index);
        }
        return grpc::Status::OK;
    }

    grpc::Status NodeUnprepareResources(grpc::ServerContext*, const UnprepareRequest* request,
                                        UnprepareResponse* response) override {
        for (const auto& claim : request->claims()) {
            auto& answer = (*response->mutable_claims())[claim.uid()];
            if (const auto done = claims_.unprepare(reference_of(claim)); !done)
                answer.set_error(text_of(done.error()));
        }
        return grpc::Status::OK;
    }

private:
    Claims& claims_;
    std::string node_;
};

using ServiceV1 = DraService<v1::DRAPlugin::Service, v1::NodePrepareResourcesRequest,
                             v1::NodePrepareResourcesResponse, v1::NodeUnprepareResourcesRequest,
                             v1::NodeUnprepareResourcesResponse>;
using ServiceV1Beta1 =
    DraService<v1beta1::DRAPlugin::Service, v1beta1::NodePrepareResourcesRequest,
               v1beta1::NodePrepareResourcesResponse, v1beta1::NodeUnprepareResourcesRequest,
               v1beta1::NodeUnprepareResourcesResponse>;

class RegistrationService final : public pluginregistration::Registration::Service {
public:
    RegistrationService(std::string endpoint, std::function<void(const std::string&)> on_answer)
        : endpoint_(std::move(endpoint)), on_answer_(std::move(on_answer)) {}

    grpc::Status GetInfo(grpc::ServerContext*, const pluginregistration::InfoRequest*,
                         pluginregistration::PluginInfo* info) override {
        info->set_type("DRAPlugin");
        info->set_name(std::string(kDriver));
        info->set_endpoint(endpoint_);
        info->add_supported_versions("v1.DRAPlugin");
        info->add_supported_versions("v1beta1.DRAPlugin");
        return grpc::Status::OK;
    }

    grpc::Status NotifyRegistrationStatus(
        grpc::ServerContext*, const pluginregistration::RegistrationStatus* status,
        pluginregistration::RegistrationStatusResponse*) override {
        const bool is_refused = !status->plugin_registered();
        on_answer_(!is_refused               ? ""
                   : status->error().empty() ? "it gives no reason"
                                             : status->error());
        return grpc::Status::OK;
    }

private:
    std::string endpoint_;
    std::function<void(const std::string&)> on_answer_;
};

class Plugin final : public KubeletPlugin {
public:
    Plugin(SocketPaths paths, Claims& claims, const std::string& node,
           std::function<void(const std::string&)> on_registration)
        : paths_(std::move(paths)),
          v1_(claims, node),
          v1beta1_(claims, node),
          registration_(paths_.dra_socket, std::move(on_registration)) {}
    /// Ends the registration first, so that the kubelet sends no more requests to the DRA socket.
    ~Plugin() override {
        stop_serving(std::move(registration_server_), paths_.registration_socket);
        stop_serving(std::move(dra_server_), paths_.dra_socket);
    }

    /// Serves the DRA socket first, because the kubelet connects to it as soon as the kubelet finds
    /// the registration socket.
    Result<> start() {
        TRY(dra_server_, serve_at(paths_.dra_socket, {&v1_, &v1beta1_}));
        TRY(registration_server_, serve_at(paths_.registration_socket, {&registration_}));
        return {};
    }

private:
    SocketPaths paths_;
    ServiceV1 v1_;
    ServiceV1Beta1 v1beta1_;
    RegistrationService registration_;
    std::unique_ptr<grpc::Server> dra_server_;
    std::unique_ptr<grpc::Server> registration_server_;
};

}  // namespace

Result<std::unique_ptr<KubeletPlugin>> KubeletPlugin::start(
    const SocketPaths& paths, Claims& claims, const std::string& node,
    std::function<void(const std::string& refusal)> on_registration) {
    auto plugin = std::make_unique<Plugin>(paths, claims, node, std::move(on_registration));
    TRY_VOID(plugin->start());
    return plugin;
}

}  // namespace vgpu::kubernetes
