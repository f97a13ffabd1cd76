#include "host/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/check.h"
#include "base/codec.h"

namespace muster::host {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "MUSTER-JOURNAL-1\n";
constexpr std::string_view kSuffix = ".journal";
constexpr size_t kHashBytes = 8;

struct Head {
  std::string core_name;
  std::string core_state;

  static constexpr std::string_view kTypeName = "Head";
  static constexpr auto Fields() {
    return std::tuple{Field{"core_name", &Head::core_name}, Field{"core_state", &Head::core_state}};
  }
};

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

}  // namespace

JournalWriter::JournalWriter(std::string directory, std::string core_name, JournalOptions options)
    : directory_(std::move(directory)), core_name_(std::move(core_name)), options_(options) {}

Result<std::unique_ptr<JournalWriter>> JournalWriter::Open(const std::string& directory, std::string core_name,
                                                           JournalOptions options) {
  std::error_code error;
  fs::create_directories(directory, error);
  std::unique_ptr<JournalWriter> writer(new JournalWriter(directory, std::move(core_name), options));
  if (!error) {
    const std::vector<uint64_t> numbers = SegmentNumbers(directory, error);
    if (!numbers.empty()) writer->segment_ = numbers.back();
  }
  if (error) {
    return Error(Code::kPermissionDenied, fmt::format("cannot use the journal directory {}: {}; name one that may be "
                                                      "written",
                                                      directory, error.message()));
  }
  return writer;
}

void JournalWriter::StartSegment(std::string_view core_state) {
  if (!status_.ok()) return;
  ++segment_;
  segment_size_ = 0;
  file_.reset(std::fopen(SegmentPath(directory_, segment_).c_str(), "wbxe"));
  if (!file_) return Fail("create");
  if (std::fwrite(kMagic.data(), 1, kMagic.size(), file_.get()) != kMagic.size()) return Fail("write");
  WriteFrame(codec::ToBytes(Head{.core_name = core_name_, .core_state = std::string(core_state)}));
  Flush();  // whoever dies now leaves a segment that says whose it is
  DropOldSegments();
}

void JournalWriter::Append(Now now, std::string_view event, uint64_t effects_digest) {
  if (!status_.ok()) return;
  MUSTER_CHECK(file_ != nullptr, "a journal begins with StartSegment");
  WriteFrame(codec::ToBytes(JournalStep{.now = now, .event = std::string(event), .effects_digest = effects_digest}));
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
  for (size_t i = 0; !error && i + keep < numbers.size(); ++i) fs::remove(SegmentPath(directory_, numbers[i]), error);
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
  if (error) return Error(Code::kNotFound, fmt::format("cannot read directory {}: {}", directory, error.message()));
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
  if (!rest.starts_with(kMagic)) return Error(Code::kDataLoss, fmt::format("{} is not a journal segment", path));
  rest.remove_prefix(kMagic.size());
  const auto damaged = [&] { return Error(Code::kDataLoss, fmt::format("{} holds a damaged record", path)); };
  std::string_view payload;
  const Frame first = TakeFrame(rest, payload);
  if (first == Frame::kTorn) return SegmentEnd{.torn = true};
  const auto head = first == Frame::kWhole ? codec::FromBytes<Head>(payload) : std::nullopt;
  if (!head) return damaged();
  if (Status status = begin({.path = path, .core_name = head->core_name, .core_state = head->core_state});
      !status.ok()) {
    return std::unexpected(std::move(status));
  }
  while (!rest.empty()) {
    const Frame frame = TakeFrame(rest, payload);
    if (frame == Frame::kTorn) return SegmentEnd{.torn = true};
    if (frame == Frame::kDamaged) return damaged();
    const auto record = codec::FromBytes<JournalStep>(payload);
    if (!record) return Error(Code::kDataLoss, fmt::format("{} holds a record of another format", path));
    if (Status status = step(*record); !status.ok()) return std::unexpected(std::move(status));
  }
  return SegmentEnd{};
}

}  // namespace muster::host
