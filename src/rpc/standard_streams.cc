#include "rpc/standard_streams.h"

#include <fmt/format.h>
#include <grpcpp/alarm.h>
#include <grpcpp/server_context.h>

#include <chrono>
#include <mutex>
#include <utility>

#include "rpc/bounded_read.h"
#include "rpc/server_credentials.h"

namespace muster::rpc {
namespace {

class OpenStandardStream final : public StandardStreams::Stream {
 public:
  OpenStandardStream(OpenStreams& streams, std::string who) : streams_(streams), who_(std::move(who)) {}
  ~OpenStandardStream() override {
    {
      const std::lock_guard lock(call_->mu);
      call_->context = nullptr;
    }
    alarm_.Cancel();
    streams_.Close(who_);
  }
  OpenStandardStream(const OpenStandardStream&) = delete;
  OpenStandardStream& operator=(const OpenStandardStream&) = delete;

  void Await(grpc::ServerContextBase& context, const std::string& method, const Refused& refused) {
    call_->context = &context;
    alarm_.Set(std::chrono::system_clock::now() +
                   std::chrono::duration_cast<std::chrono::system_clock::duration>(kFirstWordTimeout),
               [call = call_, who = who_, method, refused](bool rang) {
                 if (!rang) return;
                 const std::lock_guard lock(call->mu);
                 if (call->context == nullptr) return;
                 if (refused) refused({kSilent, who, method, "the stream has said nothing"});
                 call->context->TryCancel();
               });
  }
  void Heard() override {
    const std::lock_guard lock(call_->mu);
    call_->context = nullptr;
  }

 private:
  struct Call {
    std::mutex mu;
    grpc::ServerContextBase* context = nullptr;  // guarded by mu; null: nothing is to be cancelled
  };

  OpenStreams& streams_;
  const std::string who_;
  const std::shared_ptr<Call> call_ = std::make_shared<Call>();
  grpc::Alarm alarm_;
};

}  // namespace

bool StandardStreams::Has(std::string_view method) { return method.starts_with("/grpc.reflection."); }

std::unique_ptr<StandardStreams::Stream> StandardStreams::Begin(grpc::ServerContextBase& context,
                                                                std::string_view method) {
  std::string who = CallerName(context);
  if (const Status fit = streams_.Open(who, CallerOf(context).has_value()); !fit.ok()) {
    if (refused_) refused_({kTooMany, who, std::string(method), fit.message()});
    context.TryCancel();
    return nullptr;
  }
  auto stream = std::make_unique<OpenStandardStream>(streams_, std::move(who));
  stream->Await(context, std::string(method), refused_);
  return stream;
}

}  // namespace muster::rpc
