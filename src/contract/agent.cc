#include "contract/agent.h"

namespace muster::contract {

std::string_view ActualStateName(ActualState state) {
  switch (state) {
    case ActualState::kUnknown: return "Unknown";
    case ActualState::kPending: return "Pending";
    case ActualState::kRunning: return "Running";
    case ActualState::kStopped: return "Stopped";
    case ActualState::kFailed: return "Failed";
    case ActualState::kMissing: return "Missing";
  }
  return "Unknown";
}

}  // namespace muster::contract
