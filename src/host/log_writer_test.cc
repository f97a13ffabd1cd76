#include "host/log_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <string>
#include <utility>

namespace muster::host {
namespace {

std::string LostLine(uint64_t lost) { return fmt::format("lost {}", lost); }

std::string Line(int number) { return fmt::format("{:06} {}", number, std::string(90, 'x')); }

class Ends {
 public:
  explicit Ends(bool socket = false) {
    const int made =
        socket ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()) : pipe2(ends_.data(), O_CLOEXEC);
    EXPECT_EQ(made, 0);
  }
  ~Ends() {
    CloseReader();
    close(ends_[1]);
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;

  int writer() const { return ends_[1]; }
  void CloseReader() {
    if (ends_[0] >= 0) close(std::exchange(ends_[0], -1));
  }
  // Waits for it.
  std::string ReadLine() {
    while (text_.find('\n') == std::string::npos) {
      std::array<char, 4096> buffer;
      const ssize_t got = read(ends_[0], buffer.data(), buffer.size());
      if (got <= 0) return "the end";
      text_.append(buffer.data(), static_cast<size_t>(got));
    }
    const std::string line = text_.substr(0, text_.find('\n'));
    text_.erase(0, line.size() + 1);
    return line;
  }

 private:
  std::array<int, 2> ends_{};
  std::string text_;
};

TEST(LogWriter, WritesAtOnceWhatIsTaken) {
  Ends ends;
  LogWriter writer(ends.writer(), LostLine);
  writer.Write("a");
  writer.Write("b");
  EXPECT_EQ(ends.ReadLine(), "a");
  EXPECT_EQ(ends.ReadLine(), "b");
}

// More than a pipe holds and more than is kept; then the reader is back.
void ExpectNoWait(bool socket) {
  constexpr int kLines = 20'000;
  Ends ends(socket);
  LogWriter writer(ends.writer(), LostLine, 500'000);
  for (int i = 0; i < kLines; ++i) writer.Write(Line(i));
  int next = 0;
  std::string line = ends.ReadLine();
  for (; line == Line(next); line = ends.ReadLine()) ++next;
  EXPECT_GT(next, 5'000) << "what is kept comes too";
  EXPECT_EQ(line, LostLine(static_cast<uint64_t>(kLines - next))) << "and none is missing unsaid";
  writer.Write("after");
  EXPECT_EQ(ends.ReadLine(), "after");
}

TEST(LogWriter, AReaderThatHasStoppedStopsNobody) { ExpectNoWait(false); }

TEST(LogWriter, SocketsToo) { ExpectNoWait(true); }

TEST(LogWriter, ALineLongerThanAPipeComesWhole) {
  Ends ends;
  LogWriter writer(ends.writer(), LostLine);
  const std::string line(300'000, 'y');
  writer.Write(line);
  writer.Write("next");
  EXPECT_EQ(ends.ReadLine(), line);
  EXPECT_EQ(ends.ReadLine(), "next");
}

TEST(LogWriter, AReaderThatIsGoneIsNoTrouble) {
  const auto former = std::signal(SIGPIPE, SIG_IGN);
  Ends ends;
  LogWriter writer(ends.writer(), LostLine);
  ends.CloseReader();
  for (int i = 0; i < 1000; ++i) writer.Write(Line(i));
  std::signal(SIGPIPE, former);
}

TEST(LogWriter, LeavesTheOpenFileAsItIs) {
  Ends ends;
  const int before = fcntl(ends.writer(), F_GETFL);
  LogWriter writer(ends.writer(), LostLine);
  writer.Write("a");
  EXPECT_EQ(fcntl(ends.writer(), F_GETFL), before) << "other processes may share it";
}

}  // namespace
}  // namespace muster::host
