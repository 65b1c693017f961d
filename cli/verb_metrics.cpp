// SPDX-License-Identifier: MIT
//
// vgpuctl metrics: prints once the metrics that vgpud serves to scrapers. The format is
// OpenMetrics; with --json that text is a member of the document.
#include "cli/verbs.h"

namespace vgpu::cli {

namespace {

class MetricsVerb final : public Verb {
public:
    [[nodiscard]] std::string name() const override { return "metrics"; }
    [[nodiscard]] std::string summary() const override { return "OpenMetrics text, for scrapers"; }
    void describe(CLI::App&) override {}

    ExitCode run(Invocation& invocation) override {
        const std::string text = invocation.service.metrics();
        if (invocation.output == Output::Json)
            invocation.out << document_text("vgpuctl-metrics-1", {{"openmetrics", text}});
        else
            invocation.out << text;
        return ExitCode::Ok;
    }
};

}  // namespace

std::unique_ptr<Verb> make_metrics_verb() {
    return std::make_unique<MetricsVerb>();
}

}  // namespace vgpu::cli
