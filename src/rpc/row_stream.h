// RowStream: a long answer as a stream of rows, each made when the one before it was taken.
//
// Made by a handler and returned to gRPC, which frees it at the end. Either Fail or Begin is called, once, from any
// thread; rows after the first are made on gRPC's threads.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <utility>

#include "base/status.h"
#include "rpc/channel.h"

namespace muster::rpc {

template <class Row>
class RowStream final : public grpc::ServerWriteReactor<Row> {
 public:
  using Next = std::function<bool(Row& row)>;  // fills an empty row; false: there is none left

  void Fail(const Status& status) { this->Finish(ToGrpc(status)); }
  void Begin(Next next) {
    next_ = std::move(next);
    WriteNext();
  }

 private:
  void WriteNext() {
    row_.Clear();
    if (!next_(row_)) return this->Finish(grpc::Status::OK);
    // Small rows go out many at a time. Not so the first: gRPC would keep it, and not ask for the next.
    grpc::WriteOptions options;
    if (std::exchange(begun_, true)) options.set_buffer_hint();
    this->StartWrite(&row_, options);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return this->Finish(grpc::Status::CANCELLED);
    WriteNext();
  }
  void OnDone() override { delete this; }

  Row row_;
  Next next_;
  bool begun_ = false;
};

}  // namespace muster::rpc
