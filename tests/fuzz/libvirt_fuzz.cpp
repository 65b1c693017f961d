// SPDX-License-Identifier: MIT
//
// Fuzzes the lines that vgpud reads from vgpu-libvirt. For any lines, names of domains are
// printable and not longer than the input, and only libvirt's owners are described.
#include "daemon/service/owners/domains.h"
#include "daemon/service/words.h"
#include "tests/unit/daemon/fake_vm_sockets.h"
#include "tests/unit/daemon/world.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace {

using namespace vgpu::daemon;

constexpr const char* kOwners[] = {"libvirt:4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10",
                                   "libvirt:00000000-0000-4000-8000-000000000001", "slurm:lab:7.0"};

void require(bool is_true) {
    if (!is_true) std::abort();
}

void check(const Domains& domains, const Assignments& assignments, std::size_t bytes) {
    for (const std::string owner : kOwners) {
        const std::string name = assignments.domain_name_of(owner);
        const std::string why = domains.describe(owner);
        require(name.size() <= bytes && printable(name) == name);
        require(printable(why) == why);
        require(why.empty() || owner.starts_with("libvirt:"));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static testing::World world;
    testing::FakeVmSockets sockets;
    Assignments assignments(*world.manager, sockets, world.clock);
    Domains domains(assignments);
    std::string text;
    text.assign(data, data + size);
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        domains.take(std::string_view(text).substr(at, end - at));
        check(domains, assignments, size);
        at = end + 1;
    }
    domains.forget();
    for (const std::string owner : kOwners) require(domains.describe(owner).empty());
    return 0;
}
