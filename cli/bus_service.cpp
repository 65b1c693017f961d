// SPDX-License-Identifier: MIT
//
// BusService: the generated proxies, their variants turned into plain values and their errors into
// ServiceError.
#include "cli/service.h"

#include <sdbus-c++/sdbus-c++.h>
#include <chrono>
#include <type_traits>

#include "vgpu1/gpu_proxy.h"
#include "vgpu1/manager_proxy.h"
#include "vgpu1/vf_proxy.h"

namespace vgpu::cli {

namespace {

constexpr const char* kService = "org.vgpu1";
/// Destroying waits for a scrub, polkit may ask a person.
constexpr std::chrono::seconds kTimeout{150};
/// A self-test may be given 300 s, and polkit may ask a person.
constexpr std::chrono::seconds kAgentTimeout{450};

using Dict = std::map<std::string, sdbus::Variant>;

template <typename Interface> class Proxy final : public sdbus::ProxyInterfaces<Interface> {
public:
    Proxy(sdbus::IConnection& bus, const std::string& path)
        : sdbus::ProxyInterfaces<Interface>(bus, kService, path) {
        this->registerProxy();
    }
    ~Proxy() { this->unregisterProxy(); }
};

class ManagerProxy final : public sdbus::ProxyInterfaces<org::vgpu1::Manager_proxy> {
public:
    explicit ManagerProxy(sdbus::IConnection& bus) : ProxyInterfaces(bus, kService, "/org/vgpu1") {
        registerProxy();
    }
    ~ManagerProxy() { unregisterProxy(); }

private:
    void onEvent(const std::string&, const std::uint32_t&, const std::string&,
                 const std::string&) override {}
};

template <typename T> bool take(const sdbus::Variant& from, Value& to) {
    if (!from.containsValueOfType<T>()) return false;
    if constexpr (std::is_same_v<T, sdbus::ObjectPath>)
        to = std::string(from.get<T>());
    else if constexpr (std::is_same_v<T, std::uint32_t>)
        to = static_cast<std::uint64_t>(from.get<T>());
    else
        to = from.get<T>();
    return true;
}

template <typename... Types> Value value_of(const sdbus::Variant& variant) {
    Value value = std::string("?");
    static_cast<void>((take<Types>(variant, value) || ...));
    return value;
}

Properties properties_of(const Dict& dict) {
    Properties properties;
    for (const auto& [name, variant] : dict) {
        if (variant.containsValueOfType<Dict>()) {
            for (auto& [member, value] : properties_of(variant.get<Dict>()))
                properties[name + "." + member] = std::move(value);
            continue;
        }
        properties[name] = value_of<bool, std::uint32_t, std::int64_t, std::uint64_t, double,
                                    std::string, sdbus::ObjectPath, Words>(variant);
    }
    return properties;
}

std::vector<Properties> properties_of(const std::vector<Dict>& dicts) {
    std::vector<Properties> all;
    for (const Dict& dict : dicts) all.push_back(properties_of(dict));
    return all;
}

Dict dict_of(const Options& options) {
    Dict dict;
    for (const auto& [name, value] : options)
        dict[name] = std::visit([](const auto& one) { return sdbus::Variant{one}; }, value);
    return dict;
}

/// Runs `work`; what sdbus-c++ throws becomes a ServiceError.
template <typename Work> auto guarded(Work work) {
    try {
        return work();
    } catch (const sdbus::Error& error) {
        throw ServiceError(error.getName(), error.getMessage());
    }
}

std::unique_ptr<sdbus::IConnection> open_bus(const std::string& bus) {
    if (bus == "system") return sdbus::createSystemBusConnection();
    if (bus == "session") return sdbus::createSessionBusConnection();
    return sdbus::createSessionBusConnectionWithAddress(bus);
}

class BusService final : public Service {
public:
    explicit BusService(std::unique_ptr<sdbus::IConnection> bus)
        : bus_(std::move(bus)), manager_(*bus_) {
        bus_->setMethodCallTimeout(kTimeout);
    }

    Properties manager() override {
        return guarded([this] {
            return Properties{{"Version", manager_.Version()},
                              {"ApiVersion", std::uint64_t{manager_.ApiVersion()}},
                              {"ReadOnly", manager_.ReadOnly()},
                              {"StateMessage", manager_.StateMessage()},
                              {"StateGeneration", manager_.StateGeneration()}};
        });
    }
    std::vector<Properties> list_gpus() override {
        return guarded([this] { return properties_of(manager_.ListGpus({})); });
    }
    std::vector<Properties> list_vfs() override {
        return guarded([this] { return properties_of(manager_.ListVfs({})); });
    }
    std::string resolve(const std::string& target) override {
        return guarded([&] { return std::string(manager_.Resolve(target, {})); });
    }
    std::string create_vf(const std::string& gpu, const Options& options) override {
        return guarded([&] { return std::string(manager_.CreateVf(gpu, dict_of(options))); });
    }
    void set_gpu(const std::string& path, const Options& options) override {
        guarded([&] { Proxy<org::vgpu1::Gpu_proxy>(*bus_, path).Set(dict_of(options)); });
    }
    void set_vf(const std::string& path, const Options& options) override {
        guarded([&] { Proxy<org::vgpu1::Vf_proxy>(*bus_, path).Set(dict_of(options)); });
    }
    void destroy_vf(const std::string& path, const Options& options) override {
        guarded([&] { Proxy<org::vgpu1::Vf_proxy>(*bus_, path).Destroy(dict_of(options)); });
    }
    void act(const std::string& path, VfAction action, const Options& options) override {
        using Method = void (org::vgpu1::Vf_proxy::*)(const Dict&);
        static const std::map<VfAction, Method> kMethods{
            {VfAction::Reset, &org::vgpu1::Vf_proxy::Reset},
            {VfAction::Pause, &org::vgpu1::Vf_proxy::Pause},
            {VfAction::Resume, &org::vgpu1::Vf_proxy::Resume},
            {VfAction::Stop, &org::vgpu1::Vf_proxy::Stop},
            {VfAction::ClearQuarantine, &org::vgpu1::Vf_proxy::ClearQuarantine}};
        guarded([&] {
            Proxy<org::vgpu1::Vf_proxy> vf(*bus_, path);
            (vf.*kMethods.at(action))(dict_of(options));
        });
    }
    Properties ask_agent(const std::string& path, AgentAct act, const Options& options) override {
        using Method = Dict (org::vgpu1::Vf_proxy::*)(const Dict&);
        static const std::map<AgentAct, Method> kMethods{
            {AgentAct::SelfTest, &org::vgpu1::Vf_proxy::SelfTest},
            {AgentAct::Quiesce, &org::vgpu1::Vf_proxy::Quiesce},
            {AgentAct::Thaw, &org::vgpu1::Vf_proxy::Thaw}};
        bus_->setMethodCallTimeout(kAgentTimeout);
        return guarded([&] {
            Proxy<org::vgpu1::Vf_proxy> vf(*bus_, path);
            return properties_of((vf.*kMethods.at(act))(dict_of(options)));
        });
    }

private:
    std::unique_ptr<sdbus::IConnection> bus_;
    ManagerProxy manager_;
};

}  // namespace

std::unique_ptr<Service> connect_service(const std::string& bus) {
    try {
        return std::make_unique<BusService>(open_bus(bus));
    } catch (const sdbus::Error& error) {
        throw ServiceError("org.freedesktop.DBus.Error.FileNotFound",
                           "cannot connect to the bus '" + bus + "': " + error.getMessage());
    }
}

}  // namespace vgpu::cli
