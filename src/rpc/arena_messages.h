// ArenaMessages: requests and replies of one unary method, each pair on an arena: the parts of a reply of thousands of
// rows lie together, and go at once.
//
// Thread-safety: any thread may call.
#pragma once

#include <google/protobuf/arena.h>
#include <grpcpp/support/message_allocator.h>

namespace muster::rpc {

template <class Request, class Reply>
class ArenaMessages final : public grpc::MessageAllocator<Request, Reply> {
 public:
  grpc::MessageHolder<Request, Reply>* AllocateMessages() override { return new Holder; }

 private:
  class Holder final : public grpc::MessageHolder<Request, Reply> {
   public:
    Holder() {
      this->set_request(google::protobuf::Arena::CreateMessage<Request>(&arena_));
      this->set_response(google::protobuf::Arena::CreateMessage<Reply>(&arena_));
    }
    void Release() override { delete this; }

   private:
    google::protobuf::Arena arena_;
  };
};

}  // namespace muster::rpc
