// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/grpc_server.h"

#include <fmt/format.h>
#include <sys/un.h>
#include <chrono>
#include <filesystem>

namespace vgpu::kubernetes {

namespace fs = std::filesystem;

Result<std::unique_ptr<grpc::Server>> serve_at(const std::string& path,
                                               const std::vector<grpc::Service*>& services) {
    if (path.size() >= sizeof(sockaddr_un::sun_path))
        return fail(ErrorId::OutOfRange, fmt::format("the path {} is too long for a socket", path));
    std::error_code error;
    fs::create_directories(fs::path(path).parent_path(), error);
    if (!error) fs::remove(path, error);
    if (error) return fail_errno(ErrorId::System, error.value(), "cannot prepare " + path);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
    for (grpc::Service* service : services) builder.RegisterService(service);
    auto server = builder.BuildAndStart();
    if (!server) return fail(ErrorId::System, "cannot serve " + path);
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write, error);
    if (error) return fail_errno(ErrorId::System, error.value(), "cannot restrict " + path);
    return server;
}

void stop_serving(std::unique_ptr<grpc::Server> server, const std::string& path) {
    if (!server) return;
    constexpr std::chrono::seconds kGrace{5};
    server->Shutdown(std::chrono::system_clock::now() + kGrace);
    std::error_code ignored;
    fs::remove(path, ignored);
}

}  // namespace vgpu::kubernetes
