#include "rpc/etcd_conversion.h"

#include <utility>

namespace muster::rpc {

contract::KeyRange WireRange(const contract::KeyRange& range, const std::string& prefix) {
  contract::KeyRange wire{.begin = prefix + range.begin,
                          .end = range.end.empty() ? contract::KeysUnder(prefix).end : prefix + range.end};
  if (wire.begin.empty()) wire.begin = std::string(1, '\0');
  if (wire.end.empty()) wire.end = std::string(1, '\0');
  return wire;
}

contract::KeyValue TakeRow(mvccpb::KeyValue& row, const std::string& prefix) {
  return {.key = row.key().substr(prefix.size()),
          .value = std::move(*row.mutable_value()),
          .created = row.create_revision(),
          .modified = row.mod_revision(),
          .lease = row.lease()};
}

contract::Change TakeChange(mvccpb::Event& event, const std::string& prefix) {
  contract::Change change{.deleted = event.type() == mvccpb::Event::DELETE,
                          .now = TakeRow(*event.mutable_kv(), prefix)};
  return change;
}

bool IsCompacted(const Status& status) {
  return status.code() == Code::kOutOfRange && status.message().find("compacted") != std::string::npos;
}

etcdserverpb::TxnRequest ToWire(const contract::Transaction& transaction, const std::string& prefix) {
  etcdserverpb::TxnRequest wire;
  for (const contract::Compare& compare : transaction.compares) {
    etcdserverpb::Compare& out = *wire.add_compare();
    out.set_key(prefix + compare.key);
    out.set_result(etcdserverpb::Compare::EQUAL);
    if (compare.value) {
      out.set_target(etcdserverpb::Compare::VALUE);
      out.set_value(*compare.value);
    } else {
      out.set_target(etcdserverpb::Compare::MOD);
      out.set_mod_revision(compare.modified);
    }
  }
  for (const contract::StoreWrite& write : transaction.writes) {
    etcdserverpb::RequestOp& op = *wire.add_success();
    if (write.value) {
      etcdserverpb::PutRequest& put = *op.mutable_request_put();
      put.set_key(prefix + write.key);
      put.set_value(*write.value);
      put.set_lease(write.lease);
    } else {
      op.mutable_request_delete_range()->set_key(prefix + write.key);
    }
  }
  return wire;
}

}  // namespace muster::rpc
