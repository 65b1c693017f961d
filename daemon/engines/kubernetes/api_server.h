// SPDX-License-Identifier: MIT
//
// ApiServer: implements ApiPort with libcurl. Reads the token file before each call, because the
// kubelet replaces the token from time to time. Reuses connections. Thread-safe.
#pragma once

#include "daemon/engines/kubernetes/ports.h"

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace vgpu::kubernetes {

/// Where the API server is, and how to authenticate.
struct ApiAddress {
    std::string server;      ///< "https://10.0.0.1:443"
    std::string token_file;  ///< empty: no token
    std::string ca_file;     ///< empty: the certificates of the system
};

/// The address from the environment of a pod. BadConfiguration outside of a pod.
[[nodiscard]] Result<ApiAddress> address_in_cluster();

class ApiServer final : public ApiPort {
public:
    /// `max_wait`: time limit of one call.
    ApiServer(ApiAddress address, std::chrono::milliseconds max_wait);
    ~ApiServer() override;
    ApiServer(const ApiServer&) = delete;
    ApiServer& operator=(const ApiServer&) = delete;

    Result<Response> call(Method method, const std::string& path, const std::string& body) override;

private:
    struct Connection;

    /// Returns a connection that is not in use, or a new one.
    std::unique_ptr<Connection> take();
    /// Keeps the connection for a later call.
    void keep(std::unique_ptr<Connection> connection);

    ApiAddress address_;
    std::chrono::milliseconds max_wait_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Connection>> idle_;  ///< connections that no call uses
};

}  // namespace vgpu::kubernetes
