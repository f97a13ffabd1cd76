#include "host/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <variant>

#include "base/check.h"
#include "base/codec.h"
#include "host/text_file.h"

namespace muster::host {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "MUSTER-JOURNAL-2\n";
constexpr std::string_view kSuffix = ".journal";
constexpr std::string_view kLockFile = "JOURNAL-LOCK";  // a data directory may be the journal's too
constexpr size_t kHashBytes = 8;

struct Head {
  std::string core_name;
  std::string core_state;

  MUSTER_FIELDS(Head, core_name, core_state)
};

struct StepBegun {
  Now now;
  std::string event;

  MUSTER_FIELDS(StepBegun, now, event)
};

struct StepEnded {
  uint64_t effects_digest = 0;

  MUSTER_FIELDS(StepEnded, effects_digest)
};

using Record = std::variant<StepBegun, StepEnded>;

std::string HashBytes(std::string_view payload) {
  std::string bytes;
  for (uint64_t hash = Hash(payload), i = 0; i < kHashBytes; ++i, hash >>= 8) bytes.push_back(static_cast<char>(hash));
  return bytes;
}

std::string SegmentPath(const std::string& directory, uint64_t number) {
  return fmt::format("{}/{:010}{}", directory, number, kSuffix);
}

std::optional<uint64_t> SegmentNumber(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.ends_with(kSuffix)) return std::nullopt;
  const char* end = name.data() + name.size() - kSuffix.size();
  uint64_t number = 0;
  const auto [last, error] = std::from_chars(name.data(), end, number);
  if (error != std::errc() || last != end) return std::nullopt;
  return number;
}

std::vector<uint64_t> SegmentNumbers(const std::string& directory, std::error_code& error) {
  std::vector<uint64_t> numbers;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (const auto number = SegmentNumber(it->path())) numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

enum class Frame : uint8_t { kWhole, kTorn, kDamaged };

// One framed payload from the front of `rest`. Torn: what is left is not a whole frame, or the last one is not sound.
Frame TakeFrame(std::string_view& rest, std::string_view& payload) {
  codec::Reader reader(rest);
  if (!reader.Bytes(payload)) return Frame::kTorn;
  const auto used = static_cast<size_t>(payload.data() + payload.size() - rest.data());
  const std::string_view hash = rest.substr(used, kHashBytes);
  if (hash != HashBytes(payload)) return rest.size() <= used + kHashBytes ? Frame::kTorn : Frame::kDamaged;
  rest.remove_prefix(used + kHashBytes);
  return Frame::kWhole;
}

std::unexpected<Status> Damaged(const std::string& path) {
  return Error(Code::kDataLoss, fmt::format("{} holds a damaged record", path));
}

// What follows the head of a segment.
Result<SegmentEnd> ReadSteps(const std::string& path, std::string_view rest,
                             const std::function<Status(const JournalStep&)>& step) {
  SegmentEnd end;
  std::optional<JournalStep> begun;
  while (!rest.empty()) {
    std::string_view payload;
    const Frame frame = TakeFrame(rest, payload);
    if (frame == Frame::kDamaged) return Damaged(path);
    end.torn = frame == Frame::kTorn;
    if (end.torn) break;
    auto record = codec::FromBytes<Record>(payload);
    // Each begin is followed by its end: whoever died between the two began another segment in its next life.
    if (!record || std::holds_alternative<StepEnded>(*record) != begun.has_value()) {
      return Error(Code::kDataLoss, fmt::format("{} holds a record of another format", path));
    }
    if (auto* event = std::get_if<StepBegun>(&*record)) {
      begun = JournalStep{.now = event->now, .event = std::move(event->event), .effects_digest = {}};
      continue;
    }
    begun->effects_digest = std::get<StepEnded>(*record).effects_digest;
    if (Status status = step(*begun); !status.ok()) return std::unexpected(std::move(status));
    begun.reset();
  }
  if (begun) {
    if (Status status = step(*begun); !status.ok()) return std::unexpected(std::move(status));
  }
  return end;
}

}  // namespace

JournalWriter::JournalWriter(std::unique_ptr<DataDir> lock, std::string core_name, JournalOptions options)
    : lock_(std::move(lock)), directory_(lock_->path().string()), core_name_(std::move(core_name)), options_(options) {}

Result<std::unique_ptr<JournalWriter>> JournalWriter::Open(const std::string& directory, std::string core_name,
                                                           JournalOptions options) {
  MUSTER_ASSIGN_OR_RETURN(auto lock, DataDir::Open(directory, "--journal", kLockFile));
  std::unique_ptr<JournalWriter> writer(new JournalWriter(std::move(lock), std::move(core_name), options));
  std::error_code error;
  const std::vector<uint64_t> numbers = SegmentNumbers(directory, error);
  if (error) {
    return Error(Code::kFailedPrecondition, fmt::format("--journal {}: cannot read the directory ({}); choose one you "
                                                        "may read and write",
                                                        directory, error.message()));
  }
  if (!numbers.empty()) writer->segment_ = numbers.back();
  return writer;
}

void JournalWriter::StartSegment(std::string_view core_state) {
  if (!status_.ok()) return;
  ++segment_;
  segment_size_ = 0;
  const int fd =
      open(SegmentPath(directory_, segment_).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (fd < 0) return Fail("create");
  file_.reset(fdopen(fd, "wb"));
  MUSTER_CHECK(file_ != nullptr, "no memory for a stream, errno {}", errno);
  if (std::fwrite(kMagic.data(), 1, kMagic.size(), file_.get()) != kMagic.size()) return Fail("write");
  WriteFrame(codec::ToBytes(Head{.core_name = core_name_, .core_state = std::string(core_state)}));
  head_size_ = segment_size_;
  Flush();  // whoever dies now leaves a segment that says whose it is
  DropOldSegments();
}

void JournalWriter::BeginStep(Now now, std::string_view event) {
  if (!status_.ok()) return;
  MUSTER_CHECK(file_ != nullptr, "a journal begins with StartSegment");
  WriteFrame(codec::ToBytes(Record(StepBegun{.now = now, .event = std::string(event)})));
  Flush();
}

void JournalWriter::EndStep(uint64_t effects_digest) {
  if (status_.ok()) WriteFrame(codec::ToBytes(Record(StepEnded{.effects_digest = effects_digest})));
}

void JournalWriter::Flush() {
  if (status_.ok() && file_ && std::fflush(file_.get()) != 0) Fail("write");
}

void JournalWriter::WriteFrame(std::string_view payload) {
  std::string frame;
  codec::Writer(frame).Bytes(payload);
  frame += HashBytes(payload);
  if (std::fwrite(frame.data(), 1, frame.size(), file_.get()) != frame.size()) return Fail("write");
  segment_size_ += frame.size();
}

void JournalWriter::DropOldSegments() {
  std::error_code error;
  std::vector<uint64_t> numbers = SegmentNumbers(directory_, error);
  const size_t keep = std::max<size_t>(options_.keep_segments, 1);
  size_t first = numbers.size() > keep ? numbers.size() - keep : 0;  // that stays
  // Segments of a large core are longer: from the newest back, as many as there is room for beside the one that begins.
  const bool longer = SegmentBytes() > options_.segment_bytes;
  size_t room = std::max(keep * options_.segment_bytes, SegmentBytes()) - SegmentBytes();
  for (size_t i = numbers.size(); !error && longer && i-- > first;) {
    if (numbers[i] == segment_) continue;
    std::error_code gone;
    const auto size = fs::file_size(SegmentPath(directory_, numbers[i]), gone);
    if (!gone && size > room) {
      first = i + 1;
      break;
    }
    if (!gone) room -= static_cast<size_t>(size);
  }
  for (size_t i = 0; !error && i < first; ++i) fs::remove(SegmentPath(directory_, numbers[i]), error);
  if (error) {
    errno = error.value();
    Fail("remove an old segment of");
  }
}

void JournalWriter::Fail(std::string_view what) {
  status_ = Status(Code::kUnavailable, fmt::format("cannot {} the journal in {}: {}; journaling stops here", what,
                                                   directory_, std::strerror(errno)));
  file_.reset();
}

Result<std::vector<std::string>> ListSegments(const std::string& directory) {
  std::error_code error;
  const std::vector<uint64_t> numbers = SegmentNumbers(directory, error);
  if (error) {
    return Error(Code::kNotFound,
                 fmt::format("cannot read directory {}: {}{}", directory, error.message(), NearestFile(directory)));
  }
  if (numbers.empty()) {
    return Error(Code::kNotFound, fmt::format("{} holds no journal; name the directory given to --journal", directory));
  }
  std::vector<std::string> paths;
  for (const uint64_t number : numbers) paths.push_back(SegmentPath(directory, number));
  return paths;
}

Result<std::string> JournalCoreName(const std::string& directory) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ListSegments(directory));
  std::string name;
  for (const std::string& path : paths) {
    const auto end = ReadSegment(
        path,
        [&](const JournalSegment& segment) {
          name = segment.core_name;
          return Status();
        },
        [](const JournalStep&) { return Status(); });
    if (!end) return std::unexpected(end.error());
    if (!name.empty()) return name;
  }
  return Error(Code::kNotFound, fmt::format("every segment in {} was cut short before it began", directory));
}

Result<SegmentEnd> ReadSegment(const std::string& path, const std::function<Status(const JournalSegment&)>& begin,
                               const std::function<Status(const JournalStep&)>& step) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file) return Error(Code::kNotFound, fmt::format("cannot read {}", path));
  std::string_view rest = bytes;
  if (kMagic.starts_with(rest)) return SegmentEnd{.torn = true};
  if (!rest.starts_with(kMagic))
    return Error(Code::kDataLoss, fmt::format("{} is not a journal segment of this version", path));
  rest.remove_prefix(kMagic.size());
  std::string_view payload;
  const Frame first = TakeFrame(rest, payload);
  if (first == Frame::kTorn) return SegmentEnd{.torn = true};
  const auto head = first == Frame::kWhole ? codec::FromBytes<Head>(payload) : std::nullopt;
  if (!head) return Damaged(path);
  if (Status status = begin({.path = path, .core_name = head->core_name, .core_state = head->core_state});
      !status.ok()) {
    return std::unexpected(std::move(status));
  }
  return ReadSteps(path, rest, step);
}

}  // namespace muster::host
