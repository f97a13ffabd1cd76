#include "runtime/docker_api.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <rapidjson/document.h>

#include <memory>

namespace muster::runtime {
namespace {

constexpr size_t kMostBody = 16 << 20;
// The oldest version that the engines of Debian 12 offer.
constexpr std::string_view kVersion = "http://engine/v1.40";

struct Freed {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Handle = std::unique_ptr<CURL, Freed>;

Handle Open(const std::string& socket, const std::string& path) {
  static const CURLcode once = curl_global_init(CURL_GLOBAL_DEFAULT);
  static_cast<void>(once);
  Handle handle(curl_easy_init());
  if (handle == nullptr) return handle;
  curl_easy_setopt(handle.get(), CURLOPT_UNIX_SOCKET_PATH, socket.c_str());
  curl_easy_setopt(handle.get(), CURLOPT_URL, (std::string(kVersion) + path).c_str());
  curl_easy_setopt(handle.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle.get(), CURLOPT_CONNECTTIMEOUT, 5L);
  return handle;
}

size_t AddToBody(char* data, size_t one, size_t count, void* into) {
  std::string& body = *static_cast<std::string*>(into);
  if (body.size() + one * count > kMostBody) return 0;  // ends the call
  body.append(data, one * count);
  return one * count;
}

Status ErrorOf(CURLcode code, const std::string& socket) {
  const Code kind = code == CURLE_OPERATION_TIMEDOUT ? Code::kDeadlineExceeded : Code::kUnavailable;
  return {kind, fmt::format("the container engine at {} does not answer: {}", socket, curl_easy_strerror(code))};
}

}  // namespace

std::string DockerMessage(const DockerReply& reply) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(reply.body.data(), reply.body.size());
  if (!document.HasParseError() && document.IsObject()) {
    const auto message = document.FindMember("message");
    if (message != document.MemberEnd() && message->value.IsString()) return message->value.GetString();
  }
  return fmt::format("HTTP {}: {}", reply.status, reply.body.substr(0, 200));
}

std::string UrlEscape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || c == '.' || c == '~';
    if (plain) {
      escaped += c;
    } else {
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

Result<DockerReply> DockerApi::Send(const char* method, const std::string& path, const std::string& json,
                                    Duration timeout) const {
  const Handle handle = Open(socket_, path);
  if (handle == nullptr) return Error(Code::kInternal, "no memory for a request");
  DockerReply reply;
  const std::unique_ptr<curl_slist, Freed> headers(curl_slist_append(nullptr, "Content-Type: application/json"));
  curl_easy_setopt(handle.get(), CURLOPT_CUSTOMREQUEST, method);
  curl_easy_setopt(handle.get(), CURLOPT_HTTPHEADER, headers.get());
  if (std::string_view(method) == "POST") {
    curl_easy_setopt(handle.get(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(json.size()));
    curl_easy_setopt(handle.get(), CURLOPT_POSTFIELDS, json.c_str());
  }
  curl_easy_setopt(handle.get(), CURLOPT_WRITEFUNCTION, &AddToBody);
  curl_easy_setopt(handle.get(), CURLOPT_WRITEDATA, &reply.body);
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
  curl_easy_setopt(handle.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(milliseconds));
  if (const CURLcode code = curl_easy_perform(handle.get()); code != CURLE_OK) {
    return std::unexpected(ErrorOf(code, socket_));
  }
  long status = 0;
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
  reply.status = static_cast<int32_t>(status);
  return reply;
}

namespace {

struct Streaming {
  CURL* handle = nullptr;
  const std::function<bool(std::string_view)>* piece = nullptr;
  const std::function<bool()>* closing = nullptr;
  bool ended = false;  // by the reader
};

size_t OnPiece(char* data, size_t one, size_t count, void* context) {
  auto& streaming = *static_cast<Streaming*>(context);
  long status = 0;
  curl_easy_getinfo(streaming.handle, CURLINFO_RESPONSE_CODE, &status);
  if (status >= 400) return one * count;  // the text of an error
  if ((*streaming.piece)({data, one * count})) return one * count;
  streaming.ended = true;
  return 0;
}

int OnProgress(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto& streaming = *static_cast<Streaming*>(context);
  if (!(*streaming.closing)()) return 0;
  streaming.ended = true;
  return 1;
}

}  // namespace

Status DockerApi::Stream(const std::string& path, const std::function<bool(std::string_view)>& piece,
                         const std::function<bool()>& closing) const {
  const Handle handle = Open(socket_, path);
  if (handle == nullptr) return {Code::kInternal, "no memory for a request"};
  Streaming streaming{.handle = handle.get(), .piece = &piece, .closing = &closing};
  curl_easy_setopt(handle.get(), CURLOPT_WRITEFUNCTION, &OnPiece);
  curl_easy_setopt(handle.get(), CURLOPT_WRITEDATA, &streaming);
  curl_easy_setopt(handle.get(), CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle.get(), CURLOPT_XFERINFOFUNCTION, &OnProgress);
  curl_easy_setopt(handle.get(), CURLOPT_XFERINFODATA, &streaming);
  const CURLcode code = curl_easy_perform(handle.get());
  if (streaming.ended) return {};
  if (code != CURLE_OK) return ErrorOf(code, socket_);
  long status = 0;
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status == 404) return {Code::kNotFound, "the engine does not have the container"};
  if (status >= 400) return {Code::kUnavailable, fmt::format("the container engine answered HTTP {}", status)};
  return {};
}

}  // namespace muster::runtime
