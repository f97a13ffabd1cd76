#include "rpc/send_queue.h"

#include <utility>
#include <variant>
#include <vector>

namespace muster::rpc {
namespace {

constexpr size_t kUnread = 100;  // messages here, when a peer reads what it is told

// Empty where nothing is superseded.
const std::string& KeyOf(const contract::ShardMessage& message) {
  static const std::string none;
  if (const auto* update = std::get_if<contract::NodeStateUpdate>(&message)) return update->supersedes_key;
  if (const auto* available = std::get_if<contract::AvailableCapacity>(&message)) return available->supersedes_key;
  return none;
}

size_t SizeOf(const std::vector<model::Requirement>& requirements) {
  size_t bytes = 0;
  for (const model::Requirement& requirement : requirements) {
    bytes += sizeof(requirement) + requirement.key.size();
    for (const std::string& value : requirement.values) bytes += sizeof(value) + value.size();
  }
  return bytes;
}

// What a message takes, about: only what can be large is looked at. Nothing for updates of nodes with a key, of which
// there are no more than machines.
size_t SizeOf(const contract::ShardMessage& message) {
  size_t bytes = sizeof(contract::ShardMessage);
  if (std::holds_alternative<contract::NodeStateUpdate>(message)) return KeyOf(message).empty() ? bytes : 0;
  if (const auto* request = std::get_if<contract::BootstrapRequest>(&message)) {
    bytes += SizeOf(request->requirements);
  } else if (const auto* hint = std::get_if<contract::AvailableCapacity>(&message)) {
    bytes += SizeOf(hint->requirements);
  } else if (const auto* instruction = std::get_if<contract::ReclaimInstruction>(&message)) {
    for (const std::string& node : instruction->nodes) bytes += sizeof(node) + node.size();
  }
  return bytes;
}

}  // namespace

void SendQueue::Push(contract::ShardMessage message) {
  const std::string& key = KeyOf(message);
  if (key.empty()) {
    if (Repeats(message)) {
      queue_.back() = std::move(message);
      return;
    }
    ++messages_;
  } else {
    const auto [place, fresh] = places_.try_emplace(key, sent_ + queue_.size());
    if (!fresh) {
      contract::ShardMessage& earlier = queue_[place->second - sent_];
      bytes_ += SizeOf(message) - SizeOf(earlier);
      earlier = std::move(message);
      return;
    }
  }
  bytes_ += SizeOf(message);
  queue_.push_back(std::move(message));
}

std::optional<contract::ShardMessage> SendQueue::Pop() {
  if (queue_.empty()) return std::nullopt;
  std::optional<contract::ShardMessage> message = std::move(queue_.front());
  queue_.pop_front();
  ++sent_;
  const std::string& key = KeyOf(*message);
  bytes_ -= SizeOf(*message);
  if (key.empty()) {
    --messages_;
  } else {
    places_.erase(key);
  }
  return message;
}

// One acknowledgement of what was said twice is enough for a peer that has not read for a while.
bool SendQueue::Repeats(const contract::ShardMessage& message) const {
  const auto* ack = std::get_if<contract::Acknowledgement>(&message);
  if (ack == nullptr || queue_.size() < kUnread) return false;
  const auto* last = std::get_if<contract::Acknowledgement>(&queue_.back());
  return last != nullptr && last->echo == ack->echo;
}

void SendQueue::Clear() {
  sent_ += queue_.size();
  queue_.clear();
  places_.clear();
  messages_ = 0;
  bytes_ = 0;
}

}  // namespace muster::rpc
