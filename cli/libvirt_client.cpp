// SPDX-License-Identifier: MIT
#include "cli/libvirt_client.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <bit>
#include <cstdlib>

namespace vgpu::cli {

/// The functions of libvirt that vgpuctl calls, with their types from <libvirt/libvirt.h>.
struct LibvirtClient::Library {
    decltype(&::virConnectOpen) open = nullptr;
    decltype(&::virConnectClose) close = nullptr;
    decltype(&::virDomainLookupByName) by_name = nullptr;
    decltype(&::virDomainLookupByUUIDString) by_uuid = nullptr;
    decltype(&::virDomainGetXMLDesc) xml_of = nullptr;
    decltype(&::virDomainDefineXML) define = nullptr;
    decltype(&::virDomainFree) free = nullptr;
    decltype(&::virGetLastErrorMessage) last_error = nullptr;
    decltype(&::virSetErrorFunc) set_error_func = nullptr;

    static const Library& get();

private:
    template <typename Function>
    static void load(void* library, const char* name, Function& function) {
        function = std::bit_cast<Function>(::dlsym(library, name));
        if (function == nullptr)
            throw LibvirtError(fmt::format("libvirt.so.0 has no function {}", name));
    }
};

namespace {

/// Keeps libvirt from printing errors.
void ignore_error(void*, virErrorPtr) {}

}  // namespace

/// Loads libvirt at the first call, and does not unload it, because libvirt runs threads. Throws
/// LibvirtError.
const LibvirtClient::Library& LibvirtClient::Library::get() {
    static const Library loaded = [] {
        void* library = ::dlopen("libvirt.so.0", RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr)
            throw LibvirtError(
                "libvirt is not installed (no libvirt.so.0; Debian: libvirt0); give "
                "the domain's XML as a file instead of its name");
        Library functions;
        load(library, "virConnectOpen", functions.open);
        load(library, "virConnectClose", functions.close);
        load(library, "virDomainLookupByName", functions.by_name);
        load(library, "virDomainLookupByUUIDString", functions.by_uuid);
        load(library, "virDomainGetXMLDesc", functions.xml_of);
        load(library, "virDomainDefineXML", functions.define);
        load(library, "virDomainFree", functions.free);
        load(library, "virGetLastErrorMessage", functions.last_error);
        load(library, "virSetErrorFunc", functions.set_error_func);
        return functions;
    }();
    return loaded;
}

LibvirtClient::LibvirtClient(const std::string& uri) : library_(Library::get()) {
    library_.set_error_func(nullptr, ignore_error);
    connection_ = library_.open(uri.c_str());
    if (connection_ == nullptr)
        throw LibvirtError(fmt::format("no connection to {}: {}", uri, library_.last_error()));
}

LibvirtClient::~LibvirtClient() {
    library_.close(static_cast<virConnectPtr>(connection_));
}

std::string LibvirtClient::definition(const std::string& domain, Secrets secrets) {
    auto* connection = static_cast<virConnectPtr>(connection_);
    virDomainPtr found = library_.by_name(connection, domain.c_str());
    // a name wins over an equal UUID of another domain
    if (found == nullptr) found = library_.by_uuid(connection, domain.c_str());
    if (found == nullptr)
        throw LibvirtError(fmt::format(
            "there is no domain '{}'; 'virsh list --all' lists all domains", domain.substr(0, 64)));
    const unsigned secure =
        secrets == Secrets::Yes ? static_cast<unsigned>(VIR_DOMAIN_XML_SECURE) : 0u;
    char* xml = library_.xml_of(found, VIR_DOMAIN_XML_INACTIVE | secure);
    library_.free(found);
    if (xml == nullptr)
        throw LibvirtError(fmt::format("domain '{}': {}", domain, library_.last_error()));
    std::string text = xml;
    std::free(xml);
    return text;
}

void LibvirtClient::define(const std::string& xml) {
    virDomainPtr defined = library_.define(static_cast<virConnectPtr>(connection_), xml.c_str());
    if (defined == nullptr)
        throw LibvirtError(fmt::format("libvirt refuses the domain: {}", library_.last_error()));
    library_.free(defined);
}

}  // namespace vgpu::cli
