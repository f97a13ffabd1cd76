// How an order reads in a table: what, by whom, when and why.
#pragma once

#include <string>

#include "contract/orders.h"

namespace muster::cli {

// "pause by bigfleet://admin at 2026-01-02T03:04:05Z: network change tonight"; empty if there was no order.
std::string OrderText(const contract::OrderView& order);

}  // namespace muster::cli
