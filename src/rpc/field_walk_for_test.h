// LostFields: which fields of a message do not come back from a conversion to the contract's type and back to the wire.
// UnreadFields: which make no difference to what is read, for a protocol that is converted in one direction.
//
// The walk takes valid samples of the message, gives one field after the other a value, and demands to find it in what
// comes back, or another result than without it: in the message, in those within it, and in the first element of
// repeated ones. Of an enum and of a bool every value that the conversion accepts must come back, of another field, and
// of what is only read, one. A field that no sample reaches counts as lost: so does one that is added to a .proto file
// and not converted, and a part or an alternative of a oneof that no sample has.
#pragma once

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/reason.h"

namespace muster::rpc {

// A message that went to the contract's type and back; null when the conversion refuses it.
using RoundTrip = std::function<std::unique_ptr<google::protobuf::Message>(const google::protobuf::Message& wire)>;
// What a conversion reads, as bytes; nothing when it refuses the message.
using Read = std::function<std::optional<std::string>(const google::protobuf::Message& wire)>;
// By the last name of a text field: a value that it takes and that the walk does not try by itself.
using FieldWords = std::map<std::string, std::string>;

// Every field that has a value of its own, by its path: "needs.requirements.key".
inline void AddPaths(const google::protobuf::Descriptor& type, const std::string& above, std::set<std::string>& paths) {
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *type.field(i);
    if (field.message_type() == nullptr || field.is_map()) {
      paths.insert(above + field.name());
    } else {
      AddPaths(*field.message_type(), above + field.name() + ".", paths);
    }
  }
}

class FieldWalk {
 public:
  using Message = google::protobuf::Message;
  using Field = google::protobuf::FieldDescriptor;

  using Path = std::vector<const Field*>;
  // Whether the field that is set in the message has come through; nothing when the message is refused.
  using Judge = std::function<std::optional<bool>(const Message& sent, const Path& path)>;
  enum class Values : uint8_t { kOne, kEvery };  // of an enum and a bool

  FieldWalk(const Message& sample, Values values, Judge judge, const FieldWords& words = {})
      : sample_(sample), values_(values), judge_(std::move(judge)), words_(words) {
    Walk(sample, {});
  }
  const std::set<std::string>& carried() const { return carried_; }

  static Judge ComesBack(const RoundTrip& trip) {
    return [&trip](const Message& sent, const Path& path) -> std::optional<bool> {
      const std::unique_ptr<Message> back = trip(sent);
      if (back == nullptr) return std::nullopt;
      const Message* got = Find(*back, path);
      return got != nullptr && Only(*got, path.back()) == Only(*Find(*Copy(sent), path), path.back());
    };
  }
  static Judge IsRead(const Read& read) {
    return [&read](const Message& sent, const Path& path) -> std::optional<bool> {
      const std::optional<std::string> got = read(sent);
      if (!got) return std::nullopt;
      const std::unique_ptr<Message> without = Copy(sent);
      Message& at = *Find(*without, path);
      at.GetReflection()->ClearField(&at, path.back());
      return read(*without) != got;
    };
  }

 private:
  void Walk(const Message& at, const Path& above) {
    const auto& reflection = *at.GetReflection();
    for (int i = 0; i < at.GetDescriptor()->field_count(); ++i) {
      const Field* field = at.GetDescriptor()->field(i);
      Path path = above;
      path.push_back(field);
      if (field->message_type() == nullptr || field->is_map()) {
        if (IsCarried(path)) carried_.insert(NameOf(path));
      } else if (field->is_repeated()) {
        if (reflection.FieldSize(at, field) > 0) Walk(reflection.GetRepeatedMessage(at, field, 0), path);
      } else if (reflection.HasField(at, field)) {
        Walk(reflection.GetMessage(at, field), path);
      }
    }
  }

  bool IsCarried(const Path& path) const {
    const Field* field = path.back();
    const bool every =
        values_ == Values::kEvery && (field->enum_type() != nullptr || field->cpp_type() == Field::CPPTYPE_BOOL);
    size_t carried = 0;
    size_t lost = 0;
    std::vector<std::string> values = ValuesOf(*field);
    if (const auto word = words_.find(field->name());
        word != words_.end() && field->cpp_type() == Field::CPPTYPE_STRING) {
      values.push_back(fmt::format(": \"{}\"", word->second));
    }
    for (const std::string& value : values) {
      const std::unique_ptr<Message> sent = Copy(sample_);
      Message& at = *Find(*sent, path);
      at.GetReflection()->ClearField(&at, field);
      EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(field->name() + value, &at)) << NameOf(path) << value;
      const std::optional<bool> through = judge_(*sent, path);
      if (through) ++(*through ? carried : lost);
    }
    return carried > 0 && (!every || lost == 0);
  }

  // What a field may be set to, as the text format has it after the field's name.
  static std::vector<std::string> ValuesOf(const Field& field) {
    std::vector<std::string> values;
    switch (field.cpp_type()) {
      case Field::CPPTYPE_BOOL: return {": true", ": false"};
      case Field::CPPTYPE_DOUBLE: return {": 0.25"};
      case Field::CPPTYPE_ENUM:
        for (int i = 1; i < field.enum_type()->value_count(); ++i) {
          values.push_back(": " + field.enum_type()->value(i)->name());
        }
        return values;
      case Field::CPPTYPE_STRING:
        if (field.type() == Field::TYPE_BYTES) return {R"(: "\377\001")"};
        // A name and a quantity; or one of the names that texts of reasons have.
        return {R"(: "7")", fmt::format(": \"{}\"", model::ReasonName(model::Reason::kReclaimSurplus))};
      case Field::CPPTYPE_MESSAGE:
        for (const std::string& value : ValuesOf(*field.message_type()->map_value())) {
          values.push_back(fmt::format(" {{ key: \"cpu\" value{} }}", value));
        }
        return values;
      default: return {": 7"};
    }
  }

  // The message that has the last field of the path; null where one on the way is not set.
  static Message* Find(Message& root, const Path& path) {
    Message* at = &root;
    for (size_t i = 0; i + 1 < path.size(); ++i) {
      const auto& reflection = *at->GetReflection();
      const bool many = path[i]->is_repeated();
      if (many ? reflection.FieldSize(*at, path[i]) == 0 : !reflection.HasField(*at, path[i])) return nullptr;
      at = many ? reflection.MutableRepeatedMessage(at, path[i], 0) : reflection.MutableMessage(at, path[i]);
    }
    return at;
  }

  // The field's value, as text.
  static std::string Only(const Message& message, const Field* field) {
    const std::unique_ptr<Message> from = Copy(message);
    const std::unique_ptr<Message> only(message.New());
    message.GetReflection()->SwapFields(from.get(), only.get(), {field});
    return only->ShortDebugString();
  }

  static std::string NameOf(const Path& path) {
    std::string name;
    for (const Field* field : path) name += (name.empty() ? "" : ".") + field->name();
    return name;
  }

  static std::unique_ptr<Message> Copy(const Message& message) {
    std::unique_ptr<Message> copy(message.New());
    copy->CopyFrom(message);
    return copy;
  }

  const Message& sample_;
  const Values values_;
  const Judge judge_;
  const FieldWords& words_;
  std::set<std::string> carried_;
};

inline std::set<std::string> LostFields(const std::vector<std::unique_ptr<google::protobuf::Message>>& samples,
                                        const RoundTrip& trip) {
  std::set<std::string> lost;
  AddPaths(*samples.front()->GetDescriptor(), "", lost);
  for (const auto& sample : samples) {
    EXPECT_NE(trip(*sample), nullptr) << "a sample must be valid: " << sample->ShortDebugString();
    const FieldWalk walk(*sample, FieldWalk::Values::kEvery, FieldWalk::ComesBack(trip));
    for (const std::string& path : walk.carried()) lost.erase(path);
  }
  return lost;
}

inline std::set<std::string> UnreadFields(const std::vector<std::unique_ptr<google::protobuf::Message>>& samples,
                                          const Read& read, const FieldWords& words) {
  std::set<std::string> unread;
  AddPaths(*samples.front()->GetDescriptor(), "", unread);
  for (const auto& sample : samples) {
    EXPECT_TRUE(read(*sample)) << "a sample must be valid: " << sample->ShortDebugString();
    const FieldWalk walk(*sample, FieldWalk::Values::kOne, FieldWalk::IsRead(read), words);
    for (const std::string& path : walk.carried()) unread.erase(path);
  }
  return unread;
}

}  // namespace muster::rpc
