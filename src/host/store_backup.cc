#include "host/store_backup.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/hash.h"
#include "model/json_reader.h"
#include "model/text_reader.h"
#include "model/utf8.h"

namespace muster::host {
namespace {

constexpr int64_t kFormat = 2;
constexpr size_t kLongestLine = 16u << 20;  // a value of the largest size, in hexadecimal, with room

bool IsPlainText(std::string_view text) {
  return model::FindInvalidUtf8(text) == std::string_view::npos && text.find('\0') == std::string_view::npos;
}

Result<std::string> FromHex(std::string_view hex) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  std::string text;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    if (digit(hex[i]) < 0 || digit(hex[i + 1]) < 0) return InvalidArgument("not hexadecimal");
    text += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  }
  if (hex.size() % 2 != 0) return InvalidArgument("not hexadecimal");
  return text;
}

// What AddBytes adds: one of the two fields.
void ReadBytes(model::TextReader& reader, const std::string& name, std::string& out) {
  model::TextReader plain = reader.Field(name);
  model::TextReader hex = reader.Field(name + "Hex");
  if (!hex.present()) return plain.Require().Read(out);
  if (plain.present()) return hex.Fail(fmt::format("it is there beside {}; a line has one of the two", name));
  hex.Read(out, FromHex);
}

std::string DigestOf(const Backup& backup) {
  Hasher hasher;
  hasher.Add(static_cast<uint64_t>(backup.revision));
  for (const store::KeyValue& row : backup.rows) {
    hasher.Add(row.key);
    hasher.Add(row.value);
  }
  return fmt::format("{:016x}", hasher.value());
}

// Reads line by line what ToText writes.
class BackupReader {
 public:
  explicit BackupReader(std::string source) : source_(std::move(source)) {}

  Status Line(const model::TextValue& value) {
    model::TextErrors errors(source_);
    model::TextReader line(errors, value);
    if (lines_++ == 0) {
      int64_t format = 0;
      line.Field("musterStoreBackup").Require().Read(format);
      line.Field("revision").Require().Read(backup_.revision);
      if (errors.ok() && format != kFormat) {
        return {Code::kInvalidArgument,
                fmt::format("{} is a backup of format {}, which this version does not know", source_, format)};
      }
    } else if (ended_) {
      line.Fail("it follows the line that ends the backup");
    } else if (value.Find("end") != nullptr) {
      ended_ = true;
      line.Field("end").Read(rows_);
      line.Field("digest").Require().Read(digest_);
    } else {
      Row(line);
    }
    line.RefuseUnknown();
    return errors.status();
  }
  Result<Backup> Take() {
    if (!ended_) return Error(Code::kDataLoss, fmt::format("{} was cut short: its last line is missing", source_));
    if (rows_ != backup_.rows.size() || digest_ != DigestOf(backup_)) {
      return Error(Code::kDataLoss, fmt::format("{} is not what was backed up: its digest is another", source_));
    }
    return std::move(backup_);
  }

 private:
  void Row(model::TextReader& line) {
    store::KeyValue row;
    ReadBytes(line, "key", row.key);
    ReadBytes(line, "value", row.value);
    if (!line.ok()) return;
    const Status valid = store::Validate({.compares = {}, .writes = {contract::Put(row.key, row.value)}});
    if (!valid.ok()) return line.Fail(valid.message());
    if (!backup_.rows.empty() && row.key <= backup_.rows.back().key) {
      return line.Fail("its key is not after that of the row before: a key is there twice, or lines were moved");
    }
    backup_.rows.push_back(std::move(row));
  }

  const std::string source_;
  Backup backup_;
  uint64_t lines_ = 0;
  bool ended_ = false;
  uint64_t rows_ = 0;
  std::string digest_;
};

}  // namespace

void AddBytes(JsonObject& json, const std::string& name, const std::string& bytes) {
  if (IsPlainText(bytes)) {
    json.Add(name, bytes);
    return;
  }
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  json.Add(name + "Hex", hex);
}

Backup MakeBackup(const store::RangeReply& everything) {
  Backup backup{.revision = everything.revision, .rows = {}};
  for (const store::KeyValue& row : everything.rows) {
    if (row.lease == 0) backup.rows.push_back({.key = row.key, .value = row.value});
  }
  return backup;
}

std::string ToText(const Backup& backup) {
  std::string text = JsonObject().Add("musterStoreBackup", kFormat).Add("revision", backup.revision).Take() + "\n";
  for (const store::KeyValue& row : backup.rows) {
    JsonObject json;
    AddBytes(json, "key", row.key);
    AddBytes(json, "value", row.value);
    text += json.Take() + "\n";
  }
  return text + JsonObject().Add("end", backup.rows.size()).Add("digest", DigestOf(backup)).Take() + "\n";
}

Result<Backup> ReadBackup(std::istream& in, const std::string& source) {
  BackupReader reader(source);
  const Status status = model::ReadJsonLines(
      in, source, [&](const model::TextValue& line) { return reader.Line(line); }, {.max_line_bytes = kLongestLine});
  if (!status.ok()) return std::unexpected(status);
  return reader.Take();
}

}  // namespace muster::host
