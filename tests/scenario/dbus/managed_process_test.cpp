// SPDX-License-Identifier: MIT
//
// vgpud and the programs that it starts: programs that cannot start, and a signal that vgpud
// ignores.
#include "tests/scenario/dbus/bus_fixture.h"

#include <gmock/gmock.h>
#include <csignal>

namespace vgpu::daemon::testing {
namespace {

using ::testing::HasSubstr;

class WithProgram : public BusFixture {
protected:
    explicit WithProgram(const std::string& program)
        : BusFixture(Setup{.gpus = R"([{"id": "gpu0", "softgpu": {}}], "programs": {"softgpu": ")" +
                                   program + "\"}"}) {
        wait_for_gpu_state("failed");
    }
    /// Checks every place where an operator looks.
    void expect_told(const std::string& words) {
        EXPECT_THAT(ctl({"show", "gpu0", "--json"}).out, HasSubstr(words));
        EXPECT_THAT(ctl({"list", "--gpus", "--json"}).out, HasSubstr(words));
        EXPECT_THAT(ctl({"events"}).out, HasSubstr("gpu0: failed: softgpu"));
        EXPECT_THAT(ctl({"events"}).out, HasSubstr(words));
        EXPECT_THAT(vgpud->output(), HasSubstr(words));
    }
};

class WithMissingProgram : public WithProgram {
protected:
    WithMissingProgram() : WithProgram("/nonexistent/softgpu") {}
};

class WithFailingProgram : public WithProgram {
protected:
    WithFailingProgram() : WithProgram("/bin/false") {}
};

TEST_F(WithMissingProgram, TheGpuHasFailedAndSaysWhatIsMissing) {
    expect_told("cannot run '/nonexistent/softgpu': No such file or directory");
}

TEST_F(WithFailingProgram, TheGpuHasFailedAndSaysHowItEnded) {
    expect_told("ended with exit status 1; see ");
}

TEST_F(BusFixture, SighupDoesNotEndVgpud) {
    wait_for_gpu_state("ok");
    vgpud->signal(SIGHUP);
    vgpud->wait_for_output("SIGHUP ignored: the configuration is read only at start");
    EXPECT_EQ(ctl({"list"}).status, 0);
}

}  // namespace
}  // namespace vgpu::daemon::testing
