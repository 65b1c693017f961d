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

class LibvirtClient {
public:
    /// Throws LibvirtError.
    explicit LibvirtClient(const std::string& uri);
    ~LibvirtClient();
    LibvirtClient(const LibvirtClient&) = delete;
    LibvirtClient& operator=(const LibvirtClient&) = delete;

    /// The definition that the next start uses. `domain`: name or UUID. Throws LibvirtError.
    [[nodiscard]] std::string definition(const std::string& domain);
    /// Throws LibvirtError.
    void define(const std::string& xml);

private:
    struct Library;
    const Library& library_;
    void* connection_ = nullptr;
};

}  // namespace vgpu::cli
