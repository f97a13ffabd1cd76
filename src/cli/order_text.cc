#include "cli/order_text.h"

#include <fmt/format.h>

#include "model/text_scalars.h"

namespace muster::cli {

std::string OrderText(const contract::OrderView& order) {
  if (order.kind.empty()) return "";
  const std::string what = order.machine_id.empty() ? order.kind : fmt::format("{} {}", order.kind, order.machine_id);
  const std::string text = fmt::format("{} by {} at {}", what, order.who.empty() ? "an unknown caller" : order.who,
                                       model::FormatWallTime(order.at));
  return order.reason.empty() ? text : fmt::format("{}: {}", text, order.reason);
}

}  // namespace muster::cli
