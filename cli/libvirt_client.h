// SPDX-License-Identifier: MIT
//
// LibvirtClient: reads and writes definitions of domains. Loads libvirt on first use, because
// vgpuctl also works without it, and because the hook must start fast.
#pragma once

#include <stdexcept>
#include <string>

namespace vgpu::cli {

class LibvirtError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// All calls block; one thread makes them. Silences libvirt's messages in this process.
class LibvirtClient {
public:
    /// `uri`: for example "qemu:///system". Throws LibvirtError.
    explicit LibvirtClient(const std::string& uri);
    ~LibvirtClient();
    LibvirtClient(const LibvirtClient&) = delete;
    LibvirtClient& operator=(const LibvirtClient&) = delete;

    /// The definition for the next start. `domain`: name or UUID. The text contains secrets (a VNC
    /// password), because define() needs them: do not print it. Throws LibvirtError.
    [[nodiscard]] std::string definition(const std::string& domain);
    /// Sets the definition. A running domain changes at its next start. Throws LibvirtError.
    void define(const std::string& xml);

private:
    struct Library;
    const Library& library_;
    void* connection_ = nullptr;
};

}  // namespace vgpu::cli
