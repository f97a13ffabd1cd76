// WholeList: a list of a cluster in one answer, for a protocol without pages (persys.control.v1), put together from the
// pages that the port gives.
//
// Such an answer is as large as the cluster. So a page is written into it as it comes, and let go of, and the answer
// takes from the budget of answers (work_budget.h) while it grows. Two lists are made at a time (ListTurns); others
// wait, and a caller with too many of them is refused.
//
// Thread-safety: ListTurns from any thread. A WholeList is of one thread at a time.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/status.h"
#include "contract/cluster.h"
#include "rpc/caller_count.h"
#include "rpc/channel.h"
#include "rpc/unary_answer.h"
#include "rpc/work_budget.h"
#include "rpc/worker.h"

namespace muster::rpc {

class ListTurns {
 public:
  static constexpr size_t kAtOnce = 2;
  // That are made or wait.
  static constexpr size_t kOfCaller = 16;
  static constexpr size_t kOfAll = 1'024;

  // Runs `work` on the thread that lists are made on.
  void Post(std::function<void()> work) { worker_.Post(std::move(work)); }

  // Calls `begin` there once it is the list's turn, which ends when nothing holds the pointer any more: before the call
  // is over. RESOURCE_EXHAUSTED, naming the bound, if the caller or all have too many; `begin` is not called then.
  Status Wait(const std::string& who, std::function<void(std::shared_ptr<void> turn)> begin) {
    const std::lock_guard lock(mu_);
    MUSTER_RETURN_IF_ERROR(lists_.Add(who, kOfCaller, kOfAll));
    waiting_.push_back({.who = who, .begin = std::move(begin)});
    BeginNext();
    return {};
  }

 private:
  struct Waiting {
    std::string who;
    std::function<void(std::shared_ptr<void> turn)> begin;
  };

  // Under mu_.
  void BeginNext() {
    if (made_ == kAtOnce || waiting_.empty()) return;
    ++made_;
    worker_.Post([this, next = std::move(waiting_.front())] {
      // The pointer carries nothing but its end.
      next.begin(std::shared_ptr<void>(this, [this, who = next.who](void*) { End(who); }));
    });
    waiting_.pop_front();
  }
  void End(const std::string& who) {
    const std::lock_guard lock(mu_);
    --made_;
    lists_.Remove(who);
    BeginNext();
  }

  std::mutex mu_;
  // Guarded by mu_.
  size_t made_ = 0;
  std::deque<Waiting> waiting_;
  CallerCount lists_{"lists of the whole cluster under way", "wait for those"};
  Worker worker_{1};  // last: its end waits for work, which uses the rest
};

// `WriteRows(listed, wire)` adds the rows of a page to the answer, and returns what they take.
template <class Listed, class Request, class Reply>
class WholeList final : public std::enable_shared_from_this<WholeList<Listed, Request, Reply>> {
 public:
  using WriteRows = size_t (*)(const Listed& listed, Reply& wire);

  // gRPC keeps the context and the reply until the reactor has finished; the port and the turns outlive that.
  WholeList(grpc::CallbackServerContext& context, Reply& reply, contract::ClusterPort& cluster, ListTurns& turns,
            Request request, WriteRows write)
      : context_(context),
        reactor_(context.DefaultReactor()),
        reply_(reply),
        cluster_(cluster),
        turns_(turns),
        next_(std::move(request)),
        write_(write) {}

  grpc::ServerUnaryReactor* Begin(const std::string& who) {
    const Status waits = turns_.Wait(who, [self = this->shared_from_this()](std::shared_ptr<void> turn) {
      self->turn_ = std::move(turn);
      self->Ask();
    });
    if (!waits.ok()) reactor_->Finish(ToGrpc(waits));
    return reactor_;
  }

 private:
  void Ask() {
    if (context_.IsCancelled()) return Finish({Code::kCancelled, "the caller is gone"});
    cluster_.Ask(next_, [self = this->shared_from_this()](Result<contract::ClusterReply> reply) {
      if (!reply) return self->Finish(reply.error());
      self->turns_.Post([self, listed = std::move(Expect<Listed>(*reply))] { self->Add(listed); });
    });
  }
  void Add(const Listed& listed) {
    takes_ += write_(listed, reply_);
    const Status fit = TakeForAnswer(context_, takes_);
    if (!fit.ok() || listed.next.empty()) return Finish(fit);
    next_.page.token = listed.next;
    Ask();
  }
  void Finish(const Status& status) {
    turn_.reset();  // the service, whose turn it is, lasts until its calls are over
    reactor_->Finish(ToGrpc(status));
  }

  grpc::CallbackServerContext& context_;
  grpc::ServerUnaryReactor* const reactor_;
  Reply& reply_;
  contract::ClusterPort& cluster_;
  ListTurns& turns_;
  Request next_;
  const WriteRows write_;
  size_t takes_ = 0;
  std::shared_ptr<void> turn_;
};

}  // namespace muster::rpc
