#include "runtime/log_stream.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/log_reader.h"

namespace muster::runtime {
namespace {

constexpr Duration kPause = 100ms;  // between two looks at a file that is followed
constexpr size_t kLargestChunk = 32 << 10;

// Writes entries, those of one stream put together.
class Writer {
 public:
  Writer(const contract::ReadLogs& request, contract::LogsSink& sink) : request_(request), sink_(sink) {}

  bool Write(contract::LogChunk chunk) {
    if (request_.since && chunk.at < *request_.since) return true;
    const bool joins = pending_ && pending_->stream == chunk.stream && pending_->data.size() < kLargestChunk;
    if (joins) {
      pending_->data += chunk.data;
      return true;
    }
    if (!Flush()) return false;
    pending_ = std::move(chunk);
    return true;
  }
  bool Flush() {
    if (!pending_) return true;
    return sink_.Write(*std::exchange(pending_, std::nullopt));
  }

 private:
  const contract::ReadLogs& request_;
  contract::LogsSink& sink_;
  std::optional<contract::LogChunk> pending_;
};

// The last lines of what there is.
std::deque<contract::LogChunk> ReadTail(LogReader& reader, size_t lines) {
  std::deque<contract::LogChunk> last;
  size_t whole = 0;
  const auto ends_line = [](const contract::LogChunk& chunk) { return chunk.data.ends_with('\n'); };
  for (auto chunks = reader.Read(); !chunks.empty(); chunks = reader.Read()) {
    for (contract::LogChunk& chunk : chunks) {
      if (ends_line(chunk)) ++whole;
      last.push_back(std::move(chunk));
      while (whole > lines) {
        if (ends_line(last.front())) --whole;
        last.pop_front();
      }
    }
  }
  return last;
}

}  // namespace

void StreamLogs(const std::string& directory, const contract::ReadLogs& request, contract::LogsSink& sink,
                const std::function<bool()>& closing) {
  LogReader reader(directory);
  Writer writer(request, sink);
  bool there = true;
  if (request.tail) {
    for (contract::LogChunk& chunk : ReadTail(reader, static_cast<size_t>(std::max(*request.tail, 0)))) {
      there = there && writer.Write(std::move(chunk));
    }
  }
  while (there && !sink.Gone()) {
    std::vector<contract::LogChunk> chunks = reader.Read();
    for (contract::LogChunk& chunk : chunks) there = there && writer.Write(std::move(chunk));
    there = there && writer.Flush();
    if (!chunks.empty()) continue;
    const bool gone = access(directory.c_str(), F_OK) != 0;
    if (!request.follow || gone) break;
    if (closing()) return sink.End(Status(Code::kUnavailable, "the agent is stopping; ask again"));
    std::this_thread::sleep_for(kPause);
  }
  sink.End({});
}

}  // namespace muster::runtime
