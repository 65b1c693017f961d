// SPDX-License-Identifier: MIT
//
// LibvirtClient reads and writes domain definitions. Loads libvirt on first use, because vgpuctl
// also works without it and the hook must start fast.
#pragma once

#include <stdexcept>
#include <string>

namespace vgpu::cli {

class LibvirtError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Synchronous, one thread. Silences libvirt's messages for the process.
class LibvirtClient {
public:
    /// `uri`: such as "qemu:///system". Throws LibvirtError.
    explicit LibvirtClient(const std::string& uri);
    ~LibvirtClient();
    LibvirtClient(const LibvirtClient&) = delete;
    LibvirtClient& operator=(const LibvirtClient&) = delete;

    /// The definition for the next start; `domain`: name or UUID. Contains secrets (a VNC
    /// password), for define(): do not print it. Throws LibvirtError.
    [[nodiscard]] std::string definition(const std::string& domain);
    /// A running domain changes at its next start. Throws LibvirtError.
    void define(const std::string& xml);

private:
    struct Library;
    const Library& library_;
    void* connection_ = nullptr;
};

}  // namespace vgpu::cli
