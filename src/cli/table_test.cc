#include "cli/table.h"

#include <gtest/gtest.h>

#include "cli/printable_lines.h"

namespace muster::cli {
namespace {

TEST(Table, ShowsWhatWouldSteerATerminal) {
  EXPECT_EQ(Printable("web-1 \xc3\xa9"), "web-1 \xc3\xa9");
  EXPECT_EQ(Printable("a\x1b[2Jb\nc\x7f"), "a\\x1b[2Jb\\x0ac\\x7f");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m"),
            "\\u009b31m");
  EXPECT_EQ(Printable("\xe2\x80\xae"
                      "abc\xe2\x81\xa6"),
            "\\u202eabc\\u2066");
  EXPECT_EQ(Printable("\xd8\x9c|\xd8\xa7|\xf0\x9f\x9a\x80"), "\\u061c|\xd8\xa7|\xf0\x9f\x9a\x80");
  EXPECT_EQ(Printable("\x9b"
                      "2J\xff\xc3"),
            "\\x9b2J\\xff\\xc3")
      << "no UTF-8: C1 in eight bits";
  EXPECT_EQ(Printable("\xe0\x80\x9b[2J\xf0\x80\x82\x9b"), "\\xe0\\x80\\x9b[2J\\xf0\\x80\\x82\\x9b")
      << "more bytes than it needs: ESC and C1";
  EXPECT_EQ(PrintableLines("a\tb\x1b\n\rc"), "a\tb\\x1b\n\\x0dc");
  EXPECT_EQ(FormatTable({{"NAME", "X"}, {"a\nb", "y"}}), "NAME    X\na\\x0ab  y\n");
}

TEST(Table, AShellTakesAWordForOne) {
  EXPECT_EQ(ShellWord("/opt/muster_1.2/bin"), "/opt/muster_1.2/bin");
  EXPECT_EQ(ShellWord("/home/a b/muster"), "'/home/a b/muster'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord(""), "''");
}

}  // namespace
}  // namespace muster::cli
