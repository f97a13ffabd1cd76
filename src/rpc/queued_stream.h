// QueuedStream: the writing half of a stream that a server answers on. What is pushed, from any thread, waits in a
// queue, is encoded on a thread of the service and written in order; the stream ends once, after what was pushed or at
// once.
//
// `Base` is grpc::ServerWriteReactor<Out> or grpc::ServerBidiReactor<In, Out>. The stream owns itself from Hold until
// gRPC is done with it. Rules:
//   1. Who sets `writing_` may start a write or finish the stream, and nothing else may until that is done. So there is
//      one write at a time, and the stream is finished once, with nothing under way.
//   2. Once `end_` is set nothing is queued; it is set before the stream is finished. After gRPC is done with the
//      stream nothing touches the service any more.
//
// An item lives until gRPC has taken what was made of it: what the item holds of a budget is held as long.
//
// Thread-safety: Push, End, Drop, waiting, idle and ended from any thread.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/status.h"
#include "rpc/channel.h"
#include "rpc/worker.h"

namespace muster::rpc {

template <class Base, class Item, class Out>
class QueuedStream : public Base, public std::enable_shared_from_this<QueuedStream<Base, Item, Out>> {
 public:
  // The worker outlives the stream.
  explicit QueuedStream(Worker& senders) : senders_(senders) {}

  // The stream as a handler returns it to gRPC.
  Base* Hold() {
    self_ = this->shared_from_this();
    return this;
  }

  // False once the stream ends: the item is dropped.
  bool Push(Item item) {
    const std::lock_guard lock(mu_);
    if (end_) return false;
    queue_.push_back(std::move(item));
    PostWrite();
    return true;
  }
  // After what was pushed. The first End or Drop counts.
  void End(Status status) {
    const std::lock_guard lock(mu_);
    SetEnd(std::move(status));
    PostWrite();
  }
  // At once: what was pushed is not sent.
  void Drop(Status status) {
    const std::lock_guard lock(mu_);
    queue_.clear();
    SetEnd(std::move(status));
    PostWrite();
  }
  size_t waiting() const {
    const std::lock_guard lock(mu_);
    return queue_.size();
  }
  // Nothing waits and nothing is being written.
  bool idle() const {
    const std::lock_guard lock(mu_);
    return queue_.empty() && !current_;
  }
  bool ended() const {
    const std::lock_guard lock(mu_);
    return end_.has_value();
  }

 protected:
  virtual void Encode(const Item& item, Out& out) = 0;
  // An item has left the queue. On a thread of the service.
  virtual void Sent() {}
  // It is certain that the stream ends. Once, on a thread of the service.
  virtual void Ended() {}
  // Runs `start`, which starts to read, on a thread of the service, unless the stream ends before that. A stream that
  // reads on when what it read was answered keeps one message of its caller, and not as many as the caller sends.
  template <class Start>
  void ReadOn(Start start) {
    const std::lock_guard lock(mu_);
    if (end_) return;
    senders_.Post([self = this->shared_from_this(), start = std::move(start)] {
      const std::lock_guard again(self->mu_);  // so the stream is finished after the read has begun
      if (!self->end_) start();
    });
  }

 private:
  using Self = QueuedStream;

  // Under mu_.
  void SetEnd(Status status) {
    if (end_) return;
    end_ = std::move(status);
    senders_.Post([self = this->shared_from_this()] { self->Ended(); });
  }
  // Under mu_. Never on the thread of the caller: a write may go as far as the socket.
  void PostWrite() {
    if (std::exchange(writing_, true)) return;
    senders_.Post([self = this->shared_from_this()] { self->WriteNext(); });
  }
  // Called by who holds `writing_`.
  void WriteNext() {
    const Item* next = nullptr;
    std::optional<Status> end;
    {
      const std::lock_guard lock(mu_);
      current_.reset();
      if (!queue_.empty()) {
        next = &current_.emplace(std::move(queue_.front()));
        queue_.pop_front();
      } else {
        end = end_;
        writing_ = end.has_value();  // never given back once the stream is finished
      }
    }
    if (next != nullptr) {
      out_.Clear();
      Encode(*next, out_);
      Sent();
      this->StartWrite(&out_);
    } else if (end) {
      this->Finish(ToGrpc(*end));
    }
  }
  void OnWriteDone(bool ok) override {
    if (!ok) Drop({Code::kCancelled, "the caller is gone"});
    WriteNext();
  }
  void OnCancel() override { Drop({Code::kCancelled, "the caller is gone"}); }
  void OnDone() override { const std::shared_ptr<Self> last = std::move(self_); }

  Worker& senders_;
  std::shared_ptr<Self> self_;  // until OnDone
  Out out_;                     // of who holds `writing_`

  mutable std::mutex mu_;
  // Guarded by mu_.
  std::deque<Item> queue_;
  std::optional<Item> current_;  // that is being written: of who holds `writing_`
  bool writing_ = false;
  std::optional<Status> end_;  // what the stream ends with, once that is certain
};

}  // namespace muster::rpc
