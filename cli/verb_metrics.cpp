// SPDX-License-Identifier: MIT
//
// vgpuctl metrics: prints once the metrics that vgpu-exporter serves to scrapers. The format is
// OpenMetrics; with --json that text is a member of the document.
#include "cli/verbs.h"

namespace vgpu::cli {

namespace {

class MetricsVerb final : public Verb {
public:
    MetricsVerb()
        : Verb({Group::State, "metrics", "print the metrics in the OpenMetrics format",
                "metrics"}) {}

    ExitCode run(Invocation& invocation) override {
        const std::string text = invocation.service.metrics();
        invocation.print("vgpuctl-metrics-1", {{"openmetrics", text}}, text);
        return ExitCode::Ok;
    }
};

}  // namespace

const MakeVerb make_metrics_verb = make_verb<MetricsVerb>;

}  // namespace vgpu::cli
