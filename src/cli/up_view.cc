#include "cli/up_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "cli/table.h"
#include "model/machine.h"
#include "model/money.h"
#include "model/reason.h"
#include "model/text_scalars.h"
#include "model/utf8.h"

namespace muster::cli {
namespace {

using model::CapacityType;
using model::MachineState;

constexpr std::array kTypes = {CapacityType::kBareMetal, CapacityType::kReserved, CapacityType::kOnDemand,
                               CapacityType::kSpot};

struct Totals {
  std::map<std::pair<CapacityType, MachineState>, size_t> machines;
  std::map<CapacityType, model::Money> price;
  model::Money all;
  size_t needs_short = 0;

  explicit Totals(const UpPicture& picture) {
    if (picture.machines) {
      for (const contract::MachineView& view : picture.machines->machines) {
        const model::Machine& machine = *view.machine;
        ++machines[{machine.capacity_type, machine.state}];
        if (machine.host.empty()) continue;
        price[machine.capacity_type].micros += machine.price_per_hour.micros;
        all.micros += machine.price_per_hour.micros;
      }
    }
    if (picture.needs) {
      needs_short = static_cast<size_t>(
          std::ranges::count_if(picture.needs->needs, [](const auto& need) { return !need.satisfied; }));
    }
  }
};

// What matters most first: a narrow terminal cuts the rest.
constexpr std::array kStates = {MachineState::kFailed,   MachineState::kConfigured, MachineState::kConfiguring,
                                MachineState::kIdle,     MachineState::kCreating,   MachineState::kDraining,
                                MachineState::kDeleting, MachineState::kSpeculative};

std::string MachinesTable(const Totals& totals) {
  Rows rows = {{"MACHINES", "$/h"}};
  for (const MachineState state : kStates) rows[0].emplace_back(model::StateName(state));
  for (const CapacityType type : kTypes) {
    const auto price = totals.price.find(type);
    rows.push_back({std::string(model::CapacityTypeName(type)),
                    model::FormatMoney(price == totals.price.end() ? model::Money{} : price->second)});
    for (const MachineState state : kStates) {
      const auto count = totals.machines.find({type, state});
      rows.back().push_back(count == totals.machines.end() ? "." : std::to_string(count->second));
    }
  }
  return FormatTable(rows);
}

std::string ClustersTable(const UpPicture& picture) {
  Rows rows = {{"CLUSTER", "SESSION", "MODE", "MACHINES", "NEEDS", "SHORT", "WHY"}};
  for (const contract::ClusterView& cluster : picture.clusters->clusters) {
    size_t needs_short = 0;
    std::string why = cluster.last_refusal;
    for (const contract::NeedView& need : picture.needs ? picture.needs->needs : std::vector<contract::NeedView>()) {
      if (need.need.cluster != cluster.cluster_id || need.satisfied) continue;
      if (needs_short++ == 0 && why.empty()) {
        why = fmt::format("{}: {}", need.residual.ToString(), model::ReasonSentence(need.reason));
      }
    }
    rows.push_back({cluster.cluster_id, cluster.session ? "yes" : "no",
                    std::string(contract::ActuationModeName(cluster.mode)), std::to_string(cluster.configured),
                    std::to_string(cluster.needs), std::to_string(needs_short), OrDash(why)});
  }
  return FormatTable(rows);
}

std::string ActionsTable(const UpPicture& picture, size_t most) {
  Rows rows = {{"DECIDED", "ACTION", "MACHINE", "CLUSTER", "OUTCOME", "REASON"}};
  for (const contract::ActionView& action : picture.actions->actions) {
    if (rows.size() > most) break;
    rows.push_back({model::FormatWallTime(action.decided).substr(11, 8), action.kind, action.machine_id,
                    OrDash(action.cluster_id), action.outcome, std::string(model::ReasonSentence(action.reason))});
  }
  return FormatTable(rows);
}

// Each line cut to the width, in whole characters.
std::string Cut(const std::string& text, size_t width) {
  std::string cut;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    size_t length = 0;
    for (size_t i = at; i < end && length <= width; ++i) {
      const bool begins = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
      length += begins ? 1 : 0;
      if (length <= width) cut += text[i];
    }
    cut += '\n';
    at = end + 1;
  }
  return cut;
}

std::string ChildrenLine(const UpPicture& picture) {
  std::string line;
  for (const host::ChildView& child : picture.children) {
    line += fmt::format("{}{} {}", line.empty() ? "" : "  ", child.name,
                        child.pid != 0 ? "up" : fmt::format("DOWN ({})", Printable(child.last_end)));
    if (child.deaths > 0) line += fmt::format(" (restarted {} x)", child.deaths);
  }
  return line;
}

}  // namespace

std::string Screen(const UpPicture& picture, size_t width, size_t height, bool colour) {
  const Totals totals(picture);
  const auto marked = [&](bool on, const std::string& text) {
    return on && colour ? fmt::format("\x1b[33m{}\x1b[0m", text) : text;
  };
  std::string screen = Cut(fmt::format("muster up: {}", ChildrenLine(picture)), width);
  if (!picture.machines || !picture.clusters || !picture.actions) {
    return screen + Cut("the shard does not answer yet", width);
  }
  screen += Cut(fmt::format("cycle {}   {} machines   {}/h", picture.needs ? picture.needs->cycle : 0,
                            picture.machines->machines.size(), model::FormatMoney(totals.all)),
                width);
  screen += marked(totals.needs_short > 0, Cut(fmt::format("{} of {} needs are short", totals.needs_short,
                                                           picture.needs ? picture.needs->needs.size() : 0),
                                               width));
  screen += "\n" + Cut(MachinesTable(totals), width) + "\n" + Cut(ClustersTable(picture), width) + "\n";
  const auto used = static_cast<size_t>(std::ranges::count(screen, '\n'));
  const size_t left = height > used + 2 ? height - used - 2 : 3;
  return screen + Cut(ActionsTable(picture, left), width);
}

std::string OneLine(const UpPicture& picture) {
  const Totals totals(picture);
  if (!picture.machines) return fmt::format("{}; the shard does not answer yet", ChildrenLine(picture));
  std::map<MachineState, size_t> states;
  for (const auto& [which, count] : totals.machines) states[which.second] += count;
  std::string line = fmt::format("cycle {}:", picture.needs ? picture.needs->cycle : 0);
  for (const auto& [state, count] : states) line += fmt::format(" {} {}", count, model::StateName(state));
  line += fmt::format("; {} of {} needs short; {}/h", totals.needs_short,
                      picture.needs ? picture.needs->needs.size() : 0, model::FormatMoney(totals.all));
  if (picture.actions && !picture.actions->actions.empty()) {
    const contract::ActionView& last = picture.actions->actions.front();
    line += fmt::format("; last: {} {} ({})", Printable(last.kind), Printable(last.machine_id),
                        model::ReasonSentence(last.reason));
  }
  for (const host::ChildView& child : picture.children) {
    if (child.pid == 0) line += fmt::format("; {} is down: {}", child.name, Printable(child.last_end));
  }
  return line;
}

}  // namespace muster::cli
