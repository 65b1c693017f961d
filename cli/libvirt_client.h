// SPDX-License-Identifier: MIT
//
// LibvirtClient reads and writes a domain's definition through libvirt. It loads the library when
// first used, because vgpuctl also works on hosts without libvirt, and the hook must start fast.
#pragma once

#include <stdexcept>
#include <string>

namespace vgpu::cli {

/// libvirt is missing, or has returned an error.
class LibvirtError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// A connection to libvirt; synchronous, one thread. libvirt's own messages are silenced for the
/// whole process.
class LibvirtClient {
public:
    /// Throws LibvirtError.
    /// `uri` such as "qemu:///system". Loads libvirt.so.0, which then stays loaded.
    explicit LibvirtClient(const std::string& uri);
    ~LibvirtClient();
    LibvirtClient(const LibvirtClient&) = delete;
    LibvirtClient& operator=(const LibvirtClient&) = delete;

    /// The definition that the next start uses. `domain`: name or UUID. Throws LibvirtError.
    /// Contains secrets (a VNC password), since define() must write them back: do not print it
    /// without need.
    [[nodiscard]] std::string definition(const std::string& domain);
    /// Throws LibvirtError.
    /// A running domain does not change until its next start.
    void define(const std::string& xml);

private:
    struct Library;
    const Library& library_;
    void* connection_ = nullptr;
};

}  // namespace vgpu::cli
