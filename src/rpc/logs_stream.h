// LogsStream: an answer to Logs, of an agent or of a scheduler, as a contract::LogsSink. A megabyte at most waits for
// the caller to read.
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

#include "contract/logs.h"
#include "muster/v1/agent.pb.h"
#include "rpc/agent_conversion.h"
#include "rpc/queued_stream.h"

namespace muster::rpc {

class LogsStream final : public QueuedStream<grpc::ServerWriteReactor<v1::LogChunk>, contract::LogChunk, v1::LogChunk>,
                         public contract::LogsSink {
 public:
  using QueuedStream::QueuedStream;

  bool Write(contract::LogChunk chunk) override {
    std::unique_lock lock(room_mu_);
    room_.wait(lock, [this] { return gone_ || bytes_ < kMostWaiting; });
    if (gone_) return false;
    bytes_ += chunk.data.size();
    lock.unlock();
    return Push(std::move(chunk));
  }
  void WriteThen(contract::LogChunk chunk, std::function<void(bool)> next) override {
    {
      const std::lock_guard lock(room_mu_);
      bytes_ += chunk.data.size();
      if (!gone_ && bytes_ >= kMostWaiting) next_ = std::exchange(next, nullptr);
    }
    const bool taken = Push(std::move(chunk));
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
  static constexpr size_t kMostWaiting = 1 << 20;

  void Encode(const contract::LogChunk& chunk, v1::LogChunk& out) override {
    ToWire(chunk, out);
    sent_ = chunk.data.size();
  }
  void Sent() override {
    std::function<void(bool)> next;
    {
      const std::lock_guard lock(room_mu_);
      bytes_ -= sent_;
      if (bytes_ < kMostWaiting) next = std::exchange(next_, nullptr);
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

  size_t sent_ = 0;  // of the item that is being sent
  std::mutex room_mu_;
  std::condition_variable room_;
  // Guarded by room_mu_.
  size_t bytes_ = 0;  // that wait
  bool gone_ = false;
  std::function<void(bool)> next_;  // waits for room
  std::function<void()> on_gone_;
};

}  // namespace muster::rpc
