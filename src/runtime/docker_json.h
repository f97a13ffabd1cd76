// What the answers of a container engine hold: members that may be absent or of another kind than expected.
#pragma once

#include <rapidjson/document.h>

#include <cstdint>
#include <map>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "runtime/docker_api.h"

namespace muster::runtime {

using Json = rapidjson::Value;

// UNAVAILABLE if the answer is no JSON.
Result<rapidjson::Document> ParseJson(const DockerReply& reply);

// A member of an object, or null.
const Json& At(const Json& value, const char* key);
std::string TextAt(const Json& value, const char* key);                          // empty: none
int64_t NumberAt(const Json& value, const char* key);                            // 0: none
WallTime TimeAt(const Json& value, const char* key);                             // the epoch: none
std::map<std::string, std::string> TextsAt(const Json& value, const char* key);  // members that are text

}  // namespace muster::runtime
