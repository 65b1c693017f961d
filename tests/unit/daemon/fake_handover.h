// SPDX-License-Identifier: MIT
//
// FakeHandover: a home of the PF core at the HandoverPort seam: whom its VFs go to, what it can do
// and whom it obeys now. Notes what is set in the log of its FakePf, in order with what that does.
// Outlives the ports made from it, as a home outlives vgpud.
#pragma once

#include "daemon/ports/handover_port.h"
#include "tests/unit/daemon/fake_pf.h"

#include <map>
#include <set>
#include <string>

namespace vgpu::daemon::testing {

class FakeHandover {
public:
    explicit FakeHandover(FakePf& pf) : pf_(pf) {}

    [[nodiscard]] Handover of(std::uint32_t vf) const {
        const auto at = now.find(vf);
        return at == now.end() ? standard : at->second;
    }
    Result<> set(std::uint32_t vf, Handover wanted) {
        const Handover mode = wanted == Handover::Default ? standard : wanted;
        if (!can.contains(mode)) return fail(ErrorId::HandoverRefused, "as the test wants");
        if (busy.contains(vf)) return fail(ErrorId::WrongState, "its function is in use");
        if (of(vf) == mode) return {};
        now[vf] = mode;
        pf_.log.push_back("handover " + std::to_string(vf) + " " + std::string(name_of(mode)));
        return {};
    }

    Handover standard = Handover::VfioUser;
    std::set<Handover> can{Handover::None, Handover::VfioUser};
    std::set<std::uint32_t> busy;
    std::map<std::uint32_t, Handover> now;

private:
    FakePf& pf_;
};

class FakeHandoverPort final : public HandoverPort {
public:
    explicit FakeHandoverPort(FakeHandover& home) : home_(home) {}
    Result<Handover> get(std::uint32_t vf) override { return home_.of(vf); }
    Result<> set(std::uint32_t vf, Handover handover) override { return home_.set(vf, handover); }

private:
    FakeHandover& home_;
};

}  // namespace vgpu::daemon::testing
