// SPDX-License-Identifier: MIT
//
// LibvirtClient: reads and writes definitions of domains. Loads libvirt on first use, because
// vgpuctl also works without libvirt, and because the hook must start fast.
#pragma once

#include <stdexcept>
#include <string>

namespace vgpu::cli {

class LibvirtError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// All calls block. Runs in one thread. Silences libvirt's messages in this process.
class LibvirtClient {
public:
    /// `uri`: for example "qemu:///system". Throws LibvirtError.
    explicit LibvirtClient(const std::string& uri);
    ~LibvirtClient();
    LibvirtClient(const LibvirtClient&) = delete;
    LibvirtClient& operator=(const LibvirtClient&) = delete;

    /// Whether the XML contains secrets, such as a VNC password. Defining a domain without its
    /// secrets deletes the secrets.
    enum class Secrets { No, Yes };
    /// The XML with which libvirt will start the domain the next time. `domain`: name or UUID.
    /// Throws LibvirtError.
    [[nodiscard]] std::string definition(const std::string& domain, Secrets secrets);
    /// Defines the domain that `xml` names. A running domain changes at its next start. Throws
    /// LibvirtError.
    void define(const std::string& xml);

private:
    struct Library;
    const Library& library_;
    void* connection_ = nullptr;  ///< a virConnectPtr; void*, so that users need no libvirt header
};

}  // namespace vgpu::cli
