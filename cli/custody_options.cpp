// SPDX-License-Identifier: MIT
#include "cli/custody_options.h"

namespace vgpu::cli {

void CustodyOptions::describe(CLI::App& command) {
    command.add_option("--handover", handover_, "who gets it: none, vfio-user, vfio-pci, host");
    command.add_option("--scrub", scrub_, "request or release (emptied after each claim)");
}

void CustodyOptions::put(Options& options) const {
    if (handover_) options["handover"] = *handover_;
    if (scrub_) options["scrub"] = *scrub_;
}

}  // namespace vgpu::cli
