// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/device_plugin.h"

#include "daemon/engines/kubernetes/grpc_server.h"
#include "daemon/engines/kubernetes/names.h"

#include <fmt/format.h>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "deviceplugin.grpc.pb.h"

namespace vgpu::kubernetes {

namespace {

constexpr const char* kVersion = "v1beta1";

v1beta1::ListAndWatchResponse list_of(const std::vector<PluginDevice>& devices) {
    v1beta1::ListAndWatchResponse list;
    for (const PluginDevice& one : devices) {
        v1beta1::Device& device = *list.add_devices();
        device.set_id(one.id);
        device.set_health(one.is_healthy ? "Healthy" : "Unhealthy");
        if (one.numa_node) device.mutable_topology()->add_nodes()->set_id(*one.numa_node);
    }
    return list;
}

void fill(v1beta1::ContainerAllocateResponse& out, const ContainerEdits& edits) {
    out.mutable_envs()->insert(edits.variables.begin(), edits.variables.end());
    for (const auto& [host_path, container_path] : edits.mounts) {
        v1beta1::Mount& mount = *out.add_mounts();
        mount.set_host_path(host_path);
        mount.set_container_path(container_path);
    }
    for (const std::string& path : edits.device_nodes) {
        v1beta1::DeviceSpec& node = *out.add_devices();
        node.set_host_path(path);
        node.set_container_path(path);
        node.set_permissions("rw");
    }
}

}  // namespace

/// The gRPC service for one profile.
class DevicePlugin::Resource final : public v1beta1::DevicePlugin::Service {
public:
    Resource(const std::string& directory, const std::string& profile, Allocations& allocations)
        : name(fmt::format("{}/{}", kDomain, profile)),
          endpoint(fmt::format("vgpu-{}.sock", profile)),
          socket(fmt::format("{}/{}", directory, endpoint)),
          allocations_(allocations) {}
    ~Resource() override { stop(); }

    Result<> serve() {
        stop();
        const std::lock_guard lock(mutex_);
        is_stopping_ = false;
        TRY(server_, serve_at(socket, {this}));
        return {};
    }
    void stop() {
        {
            const std::lock_guard lock(mutex_);
            is_stopping_ = true;
        }
        changed_.notify_all();
        stop_serving(std::move(server_), socket);
    }
    void set(const std::vector<PluginDevice>& devices) {
        {
            const std::lock_guard lock(mutex_);
            if (devices == devices_) return;
            devices_ = devices;
            ++generation_;
        }
        changed_.notify_all();
    }

    grpc::Status GetDevicePluginOptions(grpc::ServerContext*, const v1beta1::Empty*,
                                        v1beta1::DevicePluginOptions*) override {
        return grpc::Status::OK;
    }

    /// Sends the devices at once and after each change, until stop() or until the kubelet cancels
    /// the call. Polls for the cancellation once a second, because gRPC does not notify changed_.
    grpc::Status ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty*,
                              grpc::ServerWriter<v1beta1::ListAndWatchResponse>* out) override {
        constexpr std::chrono::seconds kPollInterval{1};
        std::unique_lock lock(mutex_);
        std::uint64_t sent = 0;
        while (!is_stopping_ && !context->IsCancelled()) {
            if (sent == generation_) {
                changed_.wait_for(lock, kPollInterval);
                continue;
            }
            sent = generation_;
            const auto list = list_of(devices_);
            lock.unlock();
            const bool is_sent = out->Write(list);
            lock.lock();
            if (!is_sent) break;
        }
        return grpc::Status::OK;
    }

    grpc::Status Allocate(grpc::ServerContext*, const v1beta1::AllocateRequest* request,
                          v1beta1::AllocateResponse* response) override {
        for (const auto& container : request->container_requests()) {
            const auto edits = allocations_.allocate(
                {container.devices_ids().begin(), container.devices_ids().end()});
            if (!edits) return {grpc::StatusCode::UNAVAILABLE, text_of(edits.error())};
            fill(*response->add_container_responses(), *edits);
        }
        return grpc::Status::OK;
    }

    const std::string name;
    const std::string endpoint;
    const std::string socket;

private:
    Allocations& allocations_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<PluginDevice> devices_;
    /// Counts the changes of devices_. Begins at 1, so that ListAndWatch sends the first list at
    /// once.
    std::uint64_t generation_ = 1;
    bool is_stopping_ = false;
    std::unique_ptr<grpc::Server> server_;
};

DevicePlugin::DevicePlugin(std::string directory, Allocations& allocations)
    : directory_(std::move(directory)), allocations_(allocations) {}

DevicePlugin::~DevicePlugin() = default;

Result<> DevicePlugin::start(Resource& resource) {
    constexpr std::chrono::seconds kLimit{5};
    TRY_VOID(resource.serve());
    const auto channel = grpc::CreateChannel(fmt::format("unix:{}/kubelet.sock", directory_),
                                             grpc::InsecureChannelCredentials());
    v1beta1::RegisterRequest request;
    request.set_version(kVersion);
    request.set_endpoint(resource.endpoint);
    request.set_resource_name(resource.name);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLimit);
    v1beta1::Empty answer;
    const auto status =
        v1beta1::Registration::NewStub(channel)->Register(&context, request, &answer);
    if (status.ok()) return {};
    return fail(ErrorId::System, fmt::format("the kubelet does not register {}: {}", resource.name,
                                             status.error_message()));
}

Result<> DevicePlugin::update(const DevicesByProfile& devices) {
    for (const auto& [profile, resource] : resources_)
        if (!devices.contains(profile)) resource->set({});
    Result<> first;  // the first error; the loop continues for other profiles
    for (const auto& [profile, list] : devices) {
        const auto known = resources_.find(profile);
        if (known != resources_.end()) {
            known->second->set(list);
            continue;
        }
        auto resource = std::make_unique<Resource>(directory_, profile, allocations_);
        resource->set(list);
        if (const Result<> started = start(*resource))
            resources_[profile] = std::move(resource);
        else if (first)
            first = started;
    }
    return first;
}

Result<> DevicePlugin::serve_again() {
    Result<> first;
    for (const auto& [profile, resource] : resources_)
        if (const Result<> started = start(*resource); !started && first) first = started;
    return first;
}

}  // namespace vgpu::kubernetes
