// SPDX-License-Identifier: MIT
//
// Fuzzes AgentSession, which reads what a guest's agent sends. The input is the bytes of a
// connection; its bytes also choose the lengths of the pieces. A request is pending. For any input,
// texts are printable and bounded, the request is answered at most once, and an agent that broke
// the protocol is disconnected.
#include "daemon/service/agents/session.h"
#include "daemon/service/words.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace {

using namespace vgpu::daemon;

void require(bool is_true) {
    if (!is_true) std::abort();
}

class StillClock final : public Clock {
public:
    [[nodiscard]] Nanoseconds now() const override { return std::chrono::seconds(100); }
};

class Sink final : public AgentPort {
public:
    Result<> listen(const std::string&) override { return {}; }
    void close(const std::string&) override {}
    void accept_clients(const std::string&, bool) override {}
    bool send(const std::string&, std::string_view) override { return true; }
    void disconnect(const std::string&) override { is_cut = true; }
    std::vector<AgentInput> take() override { return {}; }

    bool is_cut = false;
};

void check_text(const std::string& text) {
    require(text.size() <= 512);
    require(printable(text) == text);
}

void check(const AgentView& view, const Sink& sink) {
    for (const std::string* text : {&view.version, &view.kernel, &view.driver, &view.rocr,
                                    &view.pci_address, &view.unique_id, &view.last_error})
        check_text(*text);
    for (const std::string& one : view.process_list) check_text(one);
    require(view.process_list.size() <= 32);
    require(sink.is_cut == (view.misbehaved != 0));
    require(!(sink.is_cut && view.is_connected));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const StillClock clock;
    Sink sink;
    int answers = 0;
    {
        AgentSession session("gpu0/vf1", "/x", sink, clock);
        session.on_input({.path = "/x", .kind = AgentInput::Kind::Connected});
        bool is_asked = false;
        for (std::size_t at = 0; at < size;) {
            const std::size_t piece = std::min(size - at, std::size_t{1} + data[at] * 8u);
            AgentInput input{.path = "/x"};
            input.bytes.assign(data + at, data + at + piece);
            session.on_input(input);
            at += piece;
            if (!is_asked && session.view().is_connected) {
                is_asked = true;
                session.ask(AgentRequest::SelfTest, std::chrono::seconds(1),
                            [&answers](const Result<AgentReport>& report) {
                                ++answers;
                                if (report) check_text(report->text);
                            });
            }
            check(session.view(), sink);
        }
        require(answers <= 1);
    }
    require(answers <= 1);
    return 0;
}
