#include "rpc/send_queue.h"

#include <utility>
#include <variant>

namespace muster::rpc {
namespace {

// Empty where nothing is superseded.
const std::string& KeyOf(const contract::ShardMessage& message) {
  static const std::string none;
  if (const auto* update = std::get_if<contract::NodeStateUpdate>(&message)) return update->supersedes_key;
  if (const auto* available = std::get_if<contract::AvailableCapacity>(&message)) return available->supersedes_key;
  return none;
}

// What a message without a key takes, about: only what can be large is looked at.
size_t SizeOf(const contract::ShardMessage& message) {
  size_t bytes = sizeof(contract::ShardMessage);
  if (const auto* request = std::get_if<contract::BootstrapRequest>(&message)) {
    for (const model::Requirement& requirement : request->requirements) {
      bytes += sizeof(requirement) + requirement.key.size();
      for (const std::string& value : requirement.values) bytes += sizeof(value) + value.size();
    }
  } else if (const auto* instruction = std::get_if<contract::ReclaimInstruction>(&message)) {
    for (const std::string& node : instruction->nodes) bytes += sizeof(node) + node.size();
  }
  return bytes;
}

}  // namespace

void SendQueue::Push(contract::ShardMessage message) {
  const std::string& key = KeyOf(message);
  if (key.empty()) {
    ++messages_;
    bytes_ += SizeOf(message);
  } else {
    const auto [place, fresh] = places_.try_emplace(key, sent_ + queue_.size());
    if (!fresh) {
      queue_[place->second - sent_] = std::move(message);
      return;
    }
  }
  queue_.push_back(std::move(message));
}

std::optional<contract::ShardMessage> SendQueue::Pop() {
  if (queue_.empty()) return std::nullopt;
  std::optional<contract::ShardMessage> message = std::move(queue_.front());
  queue_.pop_front();
  ++sent_;
  const std::string& key = KeyOf(*message);
  if (key.empty()) {
    --messages_;
    bytes_ -= SizeOf(*message);
  } else {
    places_.erase(key);
  }
  return message;
}

void SendQueue::Clear() {
  sent_ += queue_.size();
  queue_.clear();
  places_.clear();
  messages_ = 0;
  bytes_ = 0;
}

}  // namespace muster::rpc
