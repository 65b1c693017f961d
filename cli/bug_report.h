// SPDX-License-Identifier: MIT
//
// BugReport: collects the pieces of `vgpuctl report`. Each piece is a file of the archive;
// MISSING.txt names missing pieces with reasons. No piece contains the environment, VRAM, guest
// memory, guests' processes, names of host and users, or likely secrets (docs/vgpuctl.md).
#pragma once

#include "cli/archive.h"
#include "cli/host_facts.h"
#include "cli/redaction.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace vgpu::cli {

/// Sources of a report, which must outlive the BugReport.
struct ReportSources {
    /// Called once. Throws ServiceError. BugReport limits each call of the service to
    /// kServiceTimeout.
    std::function<std::unique_ptr<Service>()> connect;
    HostFacts facts;
    Identity identity;
    /// If the file is not JSON, it is missing in the report, because it cannot be redacted.
    std::string configuration;             ///< path of vgpud's configuration
    std::string kernel_log = "/dev/kmsg";  ///< or a file with such lines
};

class BugReport {
public:
    /// Waits up to kServiceTimeout per call of the service. Failed pieces become Missing.
    explicit BugReport(const ReportSources& sources);

    struct Missing {
        std::string piece, why;
    };

    /// All files, with README.txt, and with MISSING.txt if needed.
    [[nodiscard]] std::vector<ArchiveEntry> entries() const;
    [[nodiscard]] const std::vector<ArchiveEntry>& pieces() const { return pieces_; }
    [[nodiscard]] const std::vector<Missing>& missing() const { return missing_; }

private:
    void add(const std::string& name, const std::function<std::string()>& make);
    void add_piece(const std::string& name, const std::function<std::string()>& make);
    void leave_out(const std::string& name, const ServiceError& error);
    void add_service(Service& service);
    void add_gpu(Service& service, const Properties& gpu);

    const ReportSources& sources_;
    std::vector<ArchiveEntry> pieces_;
    std::vector<Missing> missing_;
};

}  // namespace vgpu::cli
