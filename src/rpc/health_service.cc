#include "rpc/health_service.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <optional>
#include <utility>

namespace muster::rpc {
namespace {

using Request = grpc::health::v1::HealthCheckRequest;
using Response = grpc::health::v1::HealthCheckResponse;

// A watcher keeps the name that it asked for.
constexpr size_t kLongestName = 200;

grpc::Status CheckName(const std::string& service) {
  if (service.size() <= kLongestName) return grpc::Status::OK;
  return {grpc::StatusCode::INVALID_ARGUMENT,
          fmt::format("service: has {} bytes, and {} are allowed", service.size(), kLongestName)};
}

}  // namespace

// One stream, which frees itself. One write at a time, and the end with none under way.
class HealthService::Watcher final : public grpc::ServerWriteReactor<Response> {
 public:
  Watcher(HealthService& health, std::string service) : health_(health), service_(std::move(service)) {}

  const std::string& service() const { return service_; }

  // All of these under the mutex of health_.
  void Say(Response::ServingStatus status) {
    if (end_) return;
    next_ = status;
    Advance();
  }
  // After what was said last.
  void End(grpc::Status status) {
    if (!end_) end_ = std::move(status);
    Advance();
  }

 private:
  void Advance() {
    if (writing_ || finished_) return;
    if (next_) {
      response_.set_status(*std::exchange(next_, std::nullopt));
      writing_ = true;
      StartWrite(&response_);
    } else if (end_) {
      finished_ = true;
      Finish(*end_);
    }
  }
  void Break() {
    next_.reset();
    End({grpc::StatusCode::CANCELLED, "the caller is gone"});
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(health_.mu_);
    writing_ = false;
    if (!ok) return Break();
    Advance();
  }
  void OnCancel() override {
    const std::lock_guard lock(health_.mu_);
    Break();
  }
  void OnDone() override {
    {
      const std::lock_guard lock(health_.mu_);
      health_.watchers_.erase(this);
    }
    delete this;
  }

  HealthService& health_;
  const std::string service_;
  Response response_;  // of the write under way
  // Guarded by the mutex of health_.
  std::optional<Response::ServingStatus> next_;
  std::optional<grpc::Status> end_;
  bool writing_ = false;
  bool finished_ = false;
};

HealthService::HealthService() : serving_{{"", false}} {}
HealthService::~HealthService() = default;

void HealthService::Set(std::string_view service, bool serving) {
  const std::lock_guard lock(mu_);
  if (stopped_) return;
  const auto [known, added] = serving_.try_emplace(std::string(service), serving);
  if (!added && known->second == serving) return;
  known->second = serving;
  for (Watcher* watcher : watchers_) {
    if (watcher->service() == service) watcher->Say(StatusOf(known->first));
  }
}

void HealthService::Stop() {
  const std::lock_guard lock(mu_);
  if (std::exchange(stopped_, true)) return;
  for (auto& [service, serving] : serving_) serving = false;
  for (Watcher* watcher : watchers_) {
    watcher->Say(StatusOf(watcher->service()));
    watcher->End({grpc::StatusCode::UNAVAILABLE, "the server stops"});
  }
}

Response::ServingStatus HealthService::StatusOf(const std::string& service) const {
  const auto known = serving_.find(service);
  if (known == serving_.end()) return Response::SERVICE_UNKNOWN;
  return known->second ? Response::SERVING : Response::NOT_SERVING;
}

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* context, const Request* request,
                                               Response* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  grpc::Status status = CheckName(request->service());
  if (status.ok()) {
    const std::lock_guard lock(mu_);
    response->set_status(StatusOf(request->service()));
    if (response->status() == Response::SERVICE_UNKNOWN) {
      status = {grpc::StatusCode::NOT_FOUND, "service: not one of this server"};
    }
  }
  reactor->Finish(status);
  return reactor;
}

grpc::ServerWriteReactor<Response>* HealthService::Watch(grpc::CallbackServerContext* /*context*/,
                                                         const Request* request) {
  grpc::Status fit = CheckName(request->service());
  auto* watcher = new Watcher(*this, fit.ok() ? request->service() : "");
  const std::lock_guard lock(mu_);
  watchers_.insert(watcher);
  if (!fit.ok()) {
    watcher->End(std::move(fit));
    return watcher;
  }
  watcher->Say(StatusOf(watcher->service()));
  if (stopped_) watcher->End({grpc::StatusCode::UNAVAILABLE, "the server stops"});
  return watcher;
}

}  // namespace muster::rpc
