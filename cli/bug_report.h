// SPDX-License-Identifier: MIT
//
// BugReport: collects the pieces of `vgpuctl report`. Each piece is a file of the archive. The file
// MISSING.txt names each missing piece with the reason. No piece contains environment variables,
// VRAM, guest memory, guests' processes, likely secrets, or the names of the host and its users
// (docs/vgpuctl.md).
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
    /// Connects to vgpud, or throws ServiceError. BugReport calls it once, and limits each call of
    /// the returned service to kServiceTimeout.
    std::function<std::unique_ptr<Service>()> connect;
    HostFacts facts;
    Identity identity;  ///< names that the report hides
    /// Path of vgpud's configuration. The report leaves the configuration out if it is not JSON,
    /// because vgpuctl cannot find secrets in other text.
    std::string configuration;
    std::string kernel_log = "/dev/kmsg";  ///< or a file with records in the format of /dev/kmsg
};

class BugReport {
public:
    /// Collects the pieces. Each call of vgpud takes at most kServiceTimeout. A piece that cannot
    /// be collected is in missing().
    explicit BugReport(const ReportSources& sources);

    /// A missing piece, and the reason. If vgpud does not answer, one entry, "vgpud's data", stands
    /// for all of vgpud's pieces.
    struct Missing {
        std::string piece, why;
    };

    /// All files of the archive: README.txt, the pieces, and MISSING.txt if pieces are missing.
    [[nodiscard]] std::vector<ArchiveEntry> entries() const;
    [[nodiscard]] const std::vector<ArchiveEntry>& pieces() const { return pieces_; }
    [[nodiscard]] const std::vector<Missing>& missing() const { return missing_; }

private:
    void add_without_names(const std::string& name, const std::function<std::string()>& make);
    void add_unchanged(const std::string& name, const std::function<std::string()>& make);
    void leave_out(const std::string& name, const ServiceError& error);
    void add_vgpud_pieces(Service& service);
    void add_gpu(Service& service, const Properties& gpu);

    const ReportSources& sources_;
    std::vector<ArchiveEntry> pieces_;
    std::vector<Missing> missing_;
};

}  // namespace vgpu::cli
