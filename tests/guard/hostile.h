// Hostile peers for tests: what they send is bytes, not messages, and what they cost a server is measured.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/sync_stream.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "host/address.h"

namespace muster::guard {

using SteadyTime = std::chrono::steady_clock::time_point;
inline SteadyTime Start() { return std::chrono::steady_clock::now(); }
inline double SecondsSince(SteadyTime start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The most memory a process has had resident since ForgetPeak.
inline double PeakMiB(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}
inline void ForgetPeak(pid_t pid) { std::ofstream(fmt::format("/proc/{}/clear_refs", pid)) << "5"; }

// A channel of its own connection; gRPC's own limits are the client's to lift.
inline std::shared_ptr<grpc::Channel> OpenChannel(const std::string& target) {
  static int number = 0;
  grpc::ChannelArguments arguments;
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt("guard.test.connection", ++number);  // arguments of their own, so no connection is shared
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

inline grpc::ByteBuffer Bytes(const std::string& text) {
  const grpc::Slice slice(text);
  return {&slice, 1};
}

// A length before the text, as protobuf writes it.
inline std::string Delimited(const std::string& text) {
  std::string out;
  for (size_t left = text.size();; left >>= 7) {
    out.push_back(static_cast<char>((left & 0x7F) | (left > 0x7F ? 0x80 : 0)));
    if (left <= 0x7F) break;
  }
  return out + text;
}
inline std::string Repeated(std::string_view part, size_t times) {
  std::string out;
  out.reserve(part.size() * times);
  for (size_t i = 0; i < times; ++i) out += part;
  return out;
}

// A stream in both directions whose messages are bytes.
class RawStream {
 public:
  RawStream(std::shared_ptr<grpc::ChannelInterface> channel, const char* method, bool compressed = false)
      : channel_(std::move(channel)), method_(method, grpc::internal::RpcMethod::BIDI_STREAMING, channel_) {
    if (compressed) context_.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    stream_.reset(grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(
        channel_.get(), method_, &context_));
  }
  ~RawStream() {
    context_.TryCancel();
    if (!finished_) static_cast<void>(Finish());
  }
  RawStream(const RawStream&) = delete;
  RawStream& operator=(const RawStream&) = delete;

  bool Write(const std::string& bytes) { return stream_->Write(Bytes(bytes)); }
  // No more will be written.
  void Close() { static_cast<void>(stream_->WritesDone()); }
  bool Read() {
    grpc::ByteBuffer bytes;
    return stream_->Read(&bytes);
  }
  // Reads on until the server ends the stream.
  grpc::Status Finish() {
    while (Read()) {
    }
    finished_ = true;
    return stream_->Finish();
  }

 private:
  const std::shared_ptr<grpc::ChannelInterface> channel_;
  const grpc::internal::RpcMethod method_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>> stream_;
  bool finished_ = false;
};

// One call whose messages are bytes.
inline grpc::Status RawCall(const std::shared_ptr<grpc::ChannelInterface>& channel, const char* method,
                            const std::string& bytes, bool compressed = false) {
  const grpc::internal::RpcMethod rpc(method, grpc::internal::RpcMethod::NORMAL_RPC, channel);
  grpc::ClientContext context;
  if (compressed) context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const grpc::ByteBuffer request = Bytes(bytes);
  grpc::ByteBuffer reply;
  return grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(channel.get(), rpc, &context, request,
                                                                               &reply);
}

// A TCP connection that is never spoken on but by Drip; -1 if it is refused.
class SlowClient {
 public:
  explicit SlowClient(const host::Address& server, std::string_view first = "GET /li")
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(server.port);
    inet_pton(AF_INET, server.host.c_str(), &to.sin_addr);
    if (connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) Drip(first);
  }
  ~SlowClient() { close(fd_); }
  SlowClient(SlowClient&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  SlowClient& operator=(SlowClient&&) = delete;

  void Drip(std::string_view bytes) const {
    static_cast<void>(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  // Whether the server has hung up.
  bool Closed() const {
    char byte = 0;
    const ssize_t got = recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
  }

 private:
  int fd_;
};

}  // namespace muster::guard
