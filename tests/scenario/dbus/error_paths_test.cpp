// SPDX-License-Identifier: MIT
//
// Raises every row of errors.def with the real vgpud. Checks the name on the bus, number, cause,
// fix and vgpuctl's exit status, which docs/dbus-api.md must have. Then runs the commands that the
// error recommends, which must work.
#include "cli/service.h"
#include "tests/scenario/dbus/error_path.h"

#include <gmock/gmock.h>
#include <algorithm>
#include <regex>

namespace vgpu::daemon {
namespace {

using testing::ErrorPath;
using ::testing::HasSubstr;
using testing::text_of_file;
using testing::Told;

struct Raised {
    ErrorRow row;
    Told (ErrorPath::*raise)();
};

const std::vector<Raised>& all_rows() {
    static const std::vector<Raised> kAll{
#define DAEMON_ERROR(name, number, fix) {row_of(ErrorId::name), &ErrorPath::raise_##name},
#define DRIVER_ERROR(name, number, fix)
#include "daemon/ports/errors.def"
#undef DAEMON_ERROR
    };
    return kAll;
}

std::vector<ErrorRow> rows() {
    std::vector<ErrorRow> all;
    for (const Raised& one : all_rows()) all.push_back(one.row);
    return all;
}

/// vgpuctl's exit status in docs/dbus-api.md; none for errors that no call is answered with.
std::optional<int> documented_exit(const ErrorRow& row) {
    const std::string page = text_of_file(VGPU_DOCS_DIR "/dbus-api.md");
    std::smatch found;
    const std::regex pattern(fmt::format("\\| {} \\| `{}` \\| ([^ ]+) \\|", row.number, row.name));
    if (!std::regex_search(page, found, pattern)) {
        ADD_FAILURE() << row.name << " has no line in docs/dbus-api.md";
        return {};
    }
    if (found[1] == "–") return {};
    return std::stoi(found[1]);
}

TEST_P(ErrorPath, TellsNumberCauseAndWhatMendsItAndExitsAsDocumented) {
    const ErrorRow& row = GetParam();
    const auto at = std::find_if(all_rows().begin(), all_rows().end(), [&row](const Raised& one) {
        return one.row.number == row.number;
    });
    const Told told = (this->*at->raise)();
    const std::string number = fmt::format("VGPU-{}: ", row.number);
    const std::string fix = fmt::format(". {}", row.fix);
    const std::size_t begin = told.text.find(number);
    ASSERT_NE(begin, std::string::npos) << told.name << ": " << told.text;
    const std::size_t end = told.text.find(fix, begin);
    ASSERT_NE(end, std::string::npos) << told.text;
    EXPECT_GT(end - begin, number.size() + 5) << "a cause: " << told.text;

    do_as_told(told.text);
    const auto exit = documented_exit(row);
    EXPECT_EQ(told.name, exit ? dbus_name_of(row.id) : "");
    if (!exit) return;
    EXPECT_EQ(static_cast<int>(cli::ServiceError(told.name, "").exit_code()), *exit);
    if (!told.ctl) return;
    EXPECT_EQ(told.ctl->status, *exit) << told.ctl->out;
    EXPECT_THAT(told.ctl->out, HasSubstr(number));
    EXPECT_THAT(told.ctl->out, HasSubstr(fix));
}

INSTANTIATE_TEST_SUITE_P(Rows, ErrorPath, ::testing::ValuesIn(rows()),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace vgpu::daemon
