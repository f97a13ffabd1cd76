// LogsStream: an answer to Logs, of an agent or of a scheduler, as a contract::LogsSink. A megabyte at most waits for
// the caller to read, and what waits is taken from the caller's budget (work_budget.h).
//
// Thread-safety: as LogsSink.
#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "base/weight.h"
#include "contract/logs.h"
#include "muster/v1/agent.pb.h"
#include "rpc/agent_conversion.h"
#include "rpc/queued_stream.h"
#include "rpc/work_budget.h"

namespace muster::rpc {

struct WaitingChunk {
  contract::LogChunk chunk;
  size_t weight = 0;
  std::shared_ptr<void> share;  // of the caller's budget
};

class LogsStream final : public QueuedStream<grpc::ServerWriteReactor<v1::LogChunk>, WaitingChunk, v1::LogChunk>,
                         public contract::LogsSink {
 public:
  LogsStream(Worker& senders, StreamBudget budget) : QueuedStream(senders), budget_(std::move(budget)) {}

  bool Write(contract::LogChunk chunk) override {
    const size_t weight = WeightOf(chunk);
    std::unique_lock lock(room_mu_);
    room_.wait(lock, [this] { return gone_ || waiting_ < kMostWaiting; });
    if (gone_) return false;
    waiting_ += weight;
    lock.unlock();
    return Keep(std::move(chunk), weight);
  }
  void WriteThen(contract::LogChunk chunk, std::function<void(bool)> next) override {
    const size_t weight = WeightOf(chunk);
    {
      const std::lock_guard lock(room_mu_);
      waiting_ += weight;
      if (!gone_ && waiting_ >= kMostWaiting) next_ = std::exchange(next, nullptr);
    }
    const bool taken = Keep(std::move(chunk), weight);
    if (next) next(taken);
  }
  bool Gone() const override { return ended(); }
  void OnGone(std::function<void()> gone) override {
    {
      const std::lock_guard lock(room_mu_);
      if (!gone_) {
        on_gone_ = std::move(gone);
        return;
      }
    }
    gone();
  }
  void End(Status status) override { QueuedStream::End(std::move(status)); }

 private:
  static constexpr size_t kMostWaiting = 1 << 20;  // of what chunks weigh

  bool Keep(contract::LogChunk chunk, size_t weight) {
    auto share = budget_.Take(weight, idle());
    if (!share) {
      Drop(share.error());
      return false;
    }
    return Push({.chunk = std::move(chunk), .weight = weight, .share = *std::move(share)});
  }
  void Encode(const WaitingChunk& item, v1::LogChunk& out) override {
    ToWire(item.chunk, out);
    sent_ = item.weight;
  }
  void Sent() override {
    std::function<void(bool)> next;
    {
      const std::lock_guard lock(room_mu_);
      waiting_ -= sent_;
      if (waiting_ < kMostWaiting) next = std::exchange(next_, nullptr);
    }
    room_.notify_all();
    if (next) next(true);
  }
  void Ended() override {
    std::function<void(bool)> next;
    std::function<void()> gone;
    {
      const std::lock_guard lock(room_mu_);
      gone_ = true;
      next = std::exchange(next_, nullptr);
      gone = std::exchange(on_gone_, nullptr);
    }
    room_.notify_all();
    if (next) next(false);
    if (gone) gone();
  }

  StreamBudget budget_;
  size_t sent_ = 0;  // what the chunk weighs that is being sent
  std::mutex room_mu_;
  std::condition_variable room_;
  // Guarded by room_mu_.
  size_t waiting_ = 0;  // what the chunks weigh that wait
  bool gone_ = false;
  std::function<void(bool)> next_;  // waits for room
  std::function<void()> on_gone_;
};

}  // namespace muster::rpc
