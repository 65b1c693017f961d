// SPDX-License-Identifier: MIT
//
// Answers: caches vgpud's latest answer, as HTTP responses for all scrapers. Asks vgpud only when a
// scraper asks, and at most once per kFresh. Runs in one thread.
#pragma once

#include "daemon/exporter/http_request.h"
#include "daemon/exporter/metrics.h"
#include "daemon/ports/clock.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace vgpu::exporter {

/// A whole HTTP response, shared by the connections that send it.
using Response = std::shared_ptr<const std::string>;

class Answers {
public:
    /// Time for which an answer of vgpud, or the error instead of an answer, is reused.
    static constexpr daemon::Nanoseconds kFresh = std::chrono::seconds(1);
    /// Asks vgpud, and waits for its answer.
    using Source = std::function<Readings()>;

    Answers(Source source, const daemon::Clock& clock)
        : source_(std::move(source)), clock_(clock) {}

    /// The response to a request for /metrics in this format. Its values arrived from vgpud at most
    /// kFresh ago. May wait for vgpud.
    [[nodiscard]] Response response(MetricsFormat format) {
        if (clock_.now() >= fresh_until_) {
            readings_ = source_();
            responses_.clear();
            fresh_until_ = clock_.now() + kFresh;
        }
        Response& response = responses_[format];
        if (!response)
            response = std::make_shared<const std::string>(http_response(
                Page::Metrics, media_type_of(format), metrics_text(readings_, format)));
        return response;
    }

private:
    Source source_;
    const daemon::Clock& clock_;
    Readings readings_;
    std::map<MetricsFormat, Response> responses_;  ///< made from readings_
    daemon::Nanoseconds fresh_until_{0};
};

}  // namespace vgpu::exporter
