#include "runtime/docker_json.h"

#include "model/text_scalars.h"

namespace muster::runtime {

Result<rapidjson::Document> ParseJson(const DockerReply& reply) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(reply.body.data(), reply.body.size());
  if (document.HasParseError())
    return Error(Code::kUnavailable, "the container engine answered with text that is no JSON");
  return document;
}

const Json& At(const Json& value, const char* key) {
  static const Json null;
  if (!value.IsObject()) return null;
  const auto member = value.FindMember(key);
  return member == value.MemberEnd() ? null : member->value;
}

std::string TextAt(const Json& value, const char* key) {
  const Json& text = At(value, key);
  return text.IsString() ? std::string(text.GetString(), text.GetStringLength()) : std::string();
}

int64_t NumberAt(const Json& value, const char* key) {
  const Json& number = At(value, key);
  return number.IsInt64() ? number.GetInt64() : number.IsUint64() ? INT64_MAX : 0;
}

WallTime TimeAt(const Json& value, const char* key) {
  const auto time = model::ParseWallTime(TextAt(value, key));
  return time && time->time_since_epoch().count() > 0 ? *time : WallTime{};
}

std::map<std::string, std::string> TextsAt(const Json& value, const char* key) {
  std::map<std::string, std::string> texts;
  const Json& members = At(value, key);
  if (!members.IsObject()) return texts;
  for (const auto& member : members.GetObject()) {
    if (member.value.IsString()) texts[member.name.GetString()] = member.value.GetString();
  }
  return texts;
}

}  // namespace muster::runtime
