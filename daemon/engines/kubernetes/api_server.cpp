// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/api_server.h"

#include "text/whole_file.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <array>
#include <cstdlib>

namespace vgpu::kubernetes {

namespace {

constexpr const char* kAccount = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Limit of an answer, in bytes: far more than a ResourceClaim or the slices of one node need.
constexpr std::size_t kMaxBody = 16u << 20;

const char* verb_of(Method method) {
    switch (method) {
        case Method::Get:
            return "GET";
        case Method::Post:
            return "POST";
        case Method::Put:
            return "PUT";
        case Method::Delete:
            return "DELETE";
    }
    return "GET";
}

/// The write callback of libcurl. A result of 0 makes libcurl end the transfer with an error.
std::size_t append(char* data, std::size_t size, std::size_t count, void* body) {
    auto& text = *static_cast<std::string*>(body);
    if (text.size() + size * count > kMaxBody) return 0;
    text.append(data, size * count);
    return size * count;
}

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

class Headers {
public:
    Headers() = default;
    ~Headers() { curl_slist_free_all(list_); }
    Headers(const Headers&) = delete;
    Headers& operator=(const Headers&) = delete;

    void add(const std::string& header) { list_ = curl_slist_append(list_, header.c_str()); }
    [[nodiscard]] curl_slist* get() const { return list_; }

private:
    curl_slist* list_ = nullptr;
};

Result<std::string> token_in(const std::string& path) {
    auto token = text::whole_file(path);
    if (!token) return fail_errno(ErrorId::System, token.error(), "cannot read the token " + path);
    while (!token->empty() && (token->back() == '\n' || token->back() == '\r')) token->pop_back();
    return *std::move(token);
}

}  // namespace

Result<ApiAddress> address_in_cluster() {
    const std::string host = variable("KUBERNETES_SERVICE_HOST");
    const std::string port = variable("KUBERNETES_SERVICE_PORT");
    if (host.empty() || port.empty())
        return fail(ErrorId::BadConfiguration,
                    "this is not a pod of Kubernetes (KUBERNETES_SERVICE_HOST is not set): name "
                    "the API server with --server");
    const bool is_ipv6 = host.find(':') != std::string::npos;
    return ApiAddress{
        .server = fmt::format("https://{}:{}", is_ipv6 ? fmt::format("[{}]", host) : host, port),
        .token_file = fmt::format("{}/token", kAccount),
        .ca_file = fmt::format("{}/ca.crt", kAccount)};
}

struct ApiServer::Connection {
    Connection() : curl(curl_easy_init()) {}
    ~Connection() { curl_easy_cleanup(curl); }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    CURL* curl;
    std::array<char, CURL_ERROR_SIZE> error{};
};

ApiServer::ApiServer(ApiAddress address, std::chrono::milliseconds max_wait)
    : address_(std::move(address)), max_wait_(max_wait) {
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

ApiServer::~ApiServer() = default;

std::unique_ptr<ApiServer::Connection> ApiServer::take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<Connection>();
    auto connection = std::move(idle_.back());
    idle_.pop_back();
    curl_easy_reset(connection->curl);  // keeps the TCP connection to the server
    return connection;
}

void ApiServer::keep(std::unique_ptr<Connection> connection) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(connection));
}

Result<Response> ApiServer::call(Method method, const std::string& path, const std::string& body) {
    Headers headers;
    headers.add("Accept: application/json");
    headers.add("Content-Type: application/json");
    if (!address_.token_file.empty()) {
        TRY(const std::string token, token_in(address_.token_file));
        headers.add("Authorization: Bearer " + token);
    }
    auto connection = take();
    CURL* const curl = connection->curl;
    const std::string url = address_.server + path;
    Response response;
    curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, verb_of(method));
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
    if (!body.empty()) curl_easy_setopt(curl, CURLOPT_COPYPOSTFIELDS, body.c_str());
    if (!address_.ca_file.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, address_.ca_file.c_str());
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &append);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &response.body);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, connection->error.data());
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(max_wait_.count()));
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    const CURLcode done = curl_easy_perform(curl);
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (done != CURLE_OK)  // discards the connection, which may be broken
        return fail(ErrorId::System,
                    fmt::format("the API server {} does not answer: {}", address_.server,
                                connection->error[0] != '\0' ? connection->error.data()
                                                             : curl_easy_strerror(done)));
    keep(std::move(connection));
    response.status = static_cast<int>(status);
    return response;
}

}  // namespace vgpu::kubernetes
