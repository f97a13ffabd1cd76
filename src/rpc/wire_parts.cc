#include "rpc/wire_parts.h"

#include <fmt/format.h>

#include <utility>

#include "bigfleet/v1alpha1/capacity.pb.h"
#include "bigfleet/v1alpha1/provider.pb.h"
#include "model/names.h"
#include "model/quantity.h"
#include "model/utf8.h"

namespace muster::rpc {

namespace pb = bigfleet::v1alpha1;

std::unexpected<Status> Refuse(std::string_view path, std::string_view field, std::string_view why) {
  return InvalidArgument(fmt::format("{}{}{}: {}", path, path.empty() ? "" : ".", field, why));
}

Status CheckMachineId(const std::string& id, std::string_view field) {
  if (!id.empty()) return {};
  return {Code::kInvalidArgument, fmt::format("{}: missing; name the machine", field)};
}

Result<model::MachineState> StateFromWire(int number) {
  if (number < 1 || number > static_cast<int>(model::MachineState::kFailed)) {
    return InvalidArgument(fmt::format("{} is not a state; use 1 (Speculative) to 8 (Failed)", number));
  }
  return static_cast<model::MachineState>(number);
}

Result<model::Resources> ResourcesFromWire(const WireMap& wire, std::string_view path, std::string_view field) {
  model::Resources resources;
  std::string error;
  const std::string* wrong = nullptr;
  for (const auto& [name, quantity] : wire) {
    const Status parsed = resources.Parse(name, quantity);
    if (parsed.ok() || (wrong != nullptr && *wrong < name)) continue;
    error = parsed.message();
    wrong = &name;
  }
  if (wrong == nullptr) return resources;
  if (wrong->empty()) return Refuse(path, field, error);
  // The message begins with the name as it came, which may not be fit to print.
  const std::string quoted = model::Quoted(*wrong);
  const std::string_view printable = std::string_view(quoted).substr(1, quoted.size() - 2);
  return Refuse(path, fmt::format("{}.{}", field, printable), error.substr(wrong->size() + 2));
}

void WriteResources(const model::Resources& resources, WireMap& wire) {
  for (const auto& [name, milli] : resources.entries()) wire[name] = model::FormatQuantityFor(name, milli);
}

void WriteResources(const model::Resources& resources, pb::Resources& wire) {
  WriteResources(resources, *wire.mutable_resources());
}

Result<model::Money> MoneyFromWire(double dollars, std::string_view path, std::string_view field) {
  auto money = model::MoneyFromDollars(dollars);
  if (!money) return Refuse(path, field, money.error().message());
  return money;
}

Result<std::vector<model::Requirement>> RequirementsFromWire(const WireRequirements& wire, std::string_view path) {
  std::vector<model::Requirement> requirements;
  requirements.reserve(static_cast<size_t>(wire.size()));
  for (int i = 0; i < wire.size(); ++i) {
    const pb::NodeSelectorRequirement& row = wire.Get(i);
    const int op = row.operator_();
    if (op < 0 || op > static_cast<int>(model::Operator::kSame)) {
      return Refuse(path, fmt::format("requirements[{}].operator", i),
                    fmt::format("{} is not an operator; use 1 (In) to 5 (Same)", op));
    }
    requirements.push_back({.key = row.key(),
                            .op = static_cast<model::Operator>(op),
                            .values = {row.values().begin(), row.values().end()}});
  }
  return requirements;
}

void WriteRequirements(const std::vector<model::Requirement>& requirements, WireRequirements& wire) {
  for (const model::Requirement& requirement : requirements) {
    pb::NodeSelectorRequirement& into = *wire.Add();
    into.set_key(requirement.key);
    into.set_operator_(static_cast<pb::NodeSelectorRequirement::Operator>(requirement.op));
    for (const std::string& value : requirement.values) into.add_values(value);
  }
}

std::map<std::string, std::string> TakeMap(WireMap& wire) {
  std::map<std::string, std::string> map;
  for (auto& [key, value] : wire) map.emplace(key, std::move(value));
  return map;
}

void WriteMap(const std::map<std::string, std::string>& map, WireMap& wire) {
  for (const auto& [key, value] : map) wire[key] = value;
}

std::string Readable(std::string text) {
  size_t from = 0;
  while (true) {
    const size_t bad = model::FindInvalidUtf8(std::string_view(text).substr(from));
    if (bad == std::string_view::npos) return text;
    text[from + bad] = '?';
    from += bad + 1;
  }
}

model::Reason ReasonFromWire(std::string_view name) { return model::FindReason(name).value_or(model::Reason::kNone); }

}  // namespace muster::rpc
