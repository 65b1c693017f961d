// SPDX-License-Identifier: MIT
//
// LibvirtClient: a domain's definition, read and written through libvirt. The library is loaded
// when it is first needed: vgpuctl works on hosts without libvirt, and the hook, which is a vgpuctl
// too, does not pay for it.
#pragma once

#include <stdexcept>
#include <string>

namespace vgpu::cli {

/// No libvirt, or what it said.
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
    /// Secrets (a VNC password) are in it, since define() must give them back: do not print it
    /// without need.
    [[nodiscard]] std::string definition(const std::string& domain);
    /// Throws LibvirtError.
    /// A running domain goes on as it is; the change is in force with its next start.
    void define(const std::string& xml);

private:
    struct Library;
    const Library& library_;
    void* connection_ = nullptr;
};

}  // namespace vgpu::cli
