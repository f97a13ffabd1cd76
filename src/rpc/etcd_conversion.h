// Between etcd's messages and the contract's types. Keys on the wire carry the store's prefix.
#pragma once

#include <string>

#include "base/status.h"
#include "contract/store.h"
#include "etcd/kv.pb.h"
#include "etcd/rpc.pb.h"

namespace muster::rpc {

// As etcd writes ranges: its keys are not empty, and an end of one zero byte is no bound.
contract::KeyRange WireRange(const contract::KeyRange& range, const std::string& prefix);
// Take the texts out of the message.
contract::KeyValue TakeRow(mvccpb::KeyValue& row, const std::string& prefix);
contract::Change TakeChange(mvccpb::Event& event, const std::string& prefix);
// etcd tells a compacted revision from one in the future by the text alone.
bool IsCompacted(const Status& status);
etcdserverpb::TxnRequest ToWire(const contract::Transaction& transaction, const std::string& prefix);

}  // namespace muster::rpc
