#include "rpc/call_subject.h"

#include <mutex>
#include <unordered_map>
#include <utility>

namespace muster::rpc {
namespace {

struct Subjects {
  std::mutex mu;
  std::unordered_map<const void*, CallSubject> awaited;  // guarded by mu; by context
};

Subjects& All() {
  static Subjects subjects;
  return subjects;
}

}  // namespace

void AwaitSubject(const grpc::ServerContextBase& context) {
  const std::lock_guard lock(All().mu);
  All().awaited.insert_or_assign(&context, CallSubject{});
}

CallSubject TakeSubject(const grpc::ServerContextBase& context) {
  const std::lock_guard lock(All().mu);
  auto taken = All().awaited.extract(&context);
  return taken ? std::move(taken.mapped()) : CallSubject{};
}

void SetSubject(const grpc::ServerContextBase& context, CallSubject subject) {
  const std::lock_guard lock(All().mu);
  const auto found = All().awaited.find(&context);
  if (found != All().awaited.end()) found->second = std::move(subject);
}

}  // namespace muster::rpc
