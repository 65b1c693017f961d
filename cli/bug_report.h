// SPDX-License-Identifier: MIT
//
// BugReport: the pieces of `vgpuctl report`. Each is a file of the archive; one that cannot be had
// is named with the reason in MISSING.txt instead. In no piece: the environment, contents of VRAM
// or of guests' memory, processes of guests, names of host and users, what may be a secret of the
// configuration. docs/vgpuctl.md tells the user the same.
#pragma once

#include "cli/archive.h"
#include "cli/host_facts.h"
#include "cli/redaction.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace vgpu::cli {

/// What a report is made of.
/// Must outlive the BugReport, which keeps a reference.
struct ReportSources {
    /// Called once. Its service is limited to kServicePatience for each call.
    std::function<std::unique_ptr<Service>()> connect;  ///< throws ServiceError
    HostFacts facts;
    Identity identity;
    /// If it cannot be read or is no JSON, the piece is missing: nothing goes out unredacted.
    std::string configuration;             ///< path of vgpud's
    std::string kernel_log = "/dev/kmsg";  ///< or a file with such lines
};

/// Made and read in one thread; values do not change after construction.
class BugReport {
public:
    /// Collects everything.
    /// May take as long as every call of the service its kServicePatience. Throws only what is no
    /// ServiceError: a piece that fails becomes a Missing.
    explicit BugReport(const ReportSources& sources);

    /// A piece that could not be had, and the words of the error.
    struct Missing {
        std::string piece, why;
    };

    /// With README.txt, and MISSING.txt if something is missing.
    [[nodiscard]] std::vector<ArchiveEntry> entries() const;
    [[nodiscard]] const std::vector<ArchiveEntry>& pieces() const { return pieces_; }
    [[nodiscard]] const std::vector<Missing>& missing() const { return missing_; }

private:
    void add(const std::string& name, const std::function<std::string()>& make);
    void keep(const std::string& name, const std::function<std::string()>& make);
    void leave_out(const std::string& name, const ServiceError& error);
    void add_service(Service& service);
    void add_gpu(Service& service, const Properties& gpu);

    const ReportSources& sources_;
    std::vector<ArchiveEntry> pieces_;
    std::vector<Missing> missing_;
};

}  // namespace vgpu::cli
