// SPDX-License-Identifier: MIT
//
// FakeAssignment: a platform of the PF core at the AssignmentPort seam: whom its VFs go to, what it
// can do and whom it obeys now. Notes what is set in the log of its FakePf, in order with what that
// does. Outlives the ports made from it, as a platform outlives vgpud.
#pragma once

#include "daemon/ports/assignment_port.h"
#include "tests/unit/daemon/fake_pf.h"

#include <map>
#include <set>
#include <string>

namespace vgpu::daemon::testing {

class FakeAssignment {
public:
    explicit FakeAssignment(FakePf& pf) : pf_(pf) {}

    [[nodiscard]] AssignmentMode of(std::uint32_t vf) const {
        const auto at = now.find(vf);
        return at == now.end() ? standard : at->second;
    }
    Result<> set(std::uint32_t vf, AssignmentMode wanted) {
        const AssignmentMode mode = wanted == AssignmentMode::Default ? standard : wanted;
        if (!can.contains(mode)) return fail(ErrorId::AssignmentRefused, "as the test wants");
        if (busy.contains(vf)) return fail(ErrorId::WrongState, "its function is in use");
        if (of(vf) == mode) return {};
        now[vf] = mode;
        pf_.log.push_back("assignment mode " + std::to_string(vf) + " " +
                          std::string(name_of(mode)));
        return {};
    }

    AssignmentMode standard = AssignmentMode::VfioUser;
    std::set<AssignmentMode> can{AssignmentMode::None, AssignmentMode::VfioUser};
    std::set<std::uint32_t> busy;
    std::map<std::uint32_t, AssignmentMode> now;

private:
    FakePf& pf_;
};

class FakeAssignmentPort final : public AssignmentPort {
public:
    explicit FakeAssignmentPort(FakeAssignment& platform) : platform_(platform) {}
    Result<AssignmentMode> get(std::uint32_t vf) override { return platform_.of(vf); }
    Result<> set(std::uint32_t vf, AssignmentMode assignment_mode, TakeFromHost) override {
        return platform_.set(vf, assignment_mode);
    }

private:
    FakeAssignment& platform_;
};

}  // namespace vgpu::daemon::testing
