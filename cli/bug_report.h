// SPDX-License-Identifier: MIT
//
// BugReport collects the pieces of `vgpuctl report`. Each is a file of the archive; MISSING.txt
// names each piece that is not available, with the reason. No piece contains the environment,
// contents of VRAM or of guests' memory, processes of guests, names of host and users, or possible
// secrets of the configuration. docs/vgpuctl.md tells the user the same.
#pragma once

#include "cli/archive.h"
#include "cli/host_facts.h"
#include "cli/redaction.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace vgpu::cli {

/// Sources of a report.
/// Must outlive the BugReport, which keeps a reference.
struct ReportSources {
    /// Called once. Each call of its service is limited to kServicePatience.
    std::function<std::unique_ptr<Service>()> connect;  ///< throws ServiceError
    HostFacts facts;
    Identity identity;
    /// If it cannot be read or is not JSON, the piece is missing: nothing goes out unredacted.
    std::string configuration;             ///< path of vgpud's configuration
    std::string kernel_log = "/dev/kmsg";  ///< or a file with such lines
};

/// For one thread; values do not change after construction.
class BugReport {
public:
    /// Collects everything.
    /// May take kServicePatience for each call of the service. Does not throw ServiceError: a piece
    /// that fails becomes a Missing.
    explicit BugReport(const ReportSources& sources);

    /// A piece that is not available, and the text of the error.
    struct Missing {
        std::string piece, why;
    };

    /// The pieces with README.txt, and with MISSING.txt if a piece is missing.
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
