// SPDX-License-Identifier: MIT
#include "tests/support/doc_commands.h"

#include <gtest/gtest.h>

#include "tests/support/deadline.h"

namespace vgpu::test {
namespace {

TEST(DocCommands, AreTheCommandsOfConsoleBlocksAndTheNamedFiles) {
    const auto steps = doc_steps(R"(# A document

<!-- file: a.json -->
```json
{}
```
Type:
```console
$ first --long \
    option
printed
$ second
```
```sh
not for running
```
)");
    ASSERT_EQ(steps.size(), 3u);
    EXPECT_EQ(steps[0].kind, DocStep::Kind::File);
    EXPECT_EQ(steps[0].text, "a.json");
    EXPECT_EQ(steps[0].expected, "{}\n");
    EXPECT_EQ(steps[1].text, "first --long \\\n    option");
    EXPECT_EQ(steps[1].expected, "printed\n");
    EXPECT_EQ(steps[1].line, 9);
    EXPECT_EQ(steps[2].text, "second");
    EXPECT_EQ(steps[2].expected, "");
}

TEST(DocCommands, MistakesInADocumentAreFound) {
    EXPECT_THROW(static_cast<void>(doc_steps("```console\n$ a\n")), VfError);
    EXPECT_THROW(static_cast<void>(doc_steps("```console\nb\n```\n")), VfError);
}

TEST(DocCommands, EllipsesStandForAnythingAndNothingElseDoes) {
    EXPECT_TRUE(matches_doc("a\n", "a\n"));
    EXPECT_FALSE(matches_doc("a\n", "a\nb\n"));
    EXPECT_TRUE(matches_doc("a...\n", "abc\nd\n"));
    EXPECT_TRUE(matches_doc("...b...d\n", "a b c d\n"));
    EXPECT_FALSE(matches_doc("...b...d\n", "a d c b\n"));
    EXPECT_FALSE(matches_doc("ab...bc", "abc"));
}

}  // namespace
}  // namespace vgpu::test
