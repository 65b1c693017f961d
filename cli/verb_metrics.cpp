// SPDX-License-Identifier: MIT
//
// vgpuctl metrics: prints the current metrics once, in the OpenMetrics format. vgpu-exporter serves
// the same metrics. With --json, the document has the OpenMetrics text as a member.
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
