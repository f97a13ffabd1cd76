// ItemStream: the objects of a Kubernetes dump, one after another, from bytes that are read once.
//
// A dump is JSON: a list (`kubectl get ... -o json`), whose `items` are handed on one by one, or one object; several of
// them may follow each other. RapidJSON's iterative reader parses; memory is one object without the parts that
// planning has no use for (managed fields, environment, probes, images).
//
// Refused, with line, column and path: nesting beyond max_depth, a key given twice, an object beyond max_item_bytes, a
// stretch of max_token_bytes without a value (so no string and no white space is longer), text that is not UTF-8, the
// character NUL, what is not JSON (NaN, a comma too many), text that ends too early.
//
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "kube/item.h"
#include "model/text_value.h"

namespace muster::kube {

// Fills the buffer as far as it can; 0: the end.
using ReadBytes = std::function<Result<size_t>(std::span<char>)>;

struct StreamLimits {
  int max_depth = 100;
  size_t max_token_bytes = 4u << 20;
  size_t max_item_bytes = 32u << 20;
};

// What an object is, and where it began.
struct ItemPlace {
  std::string_view list_kind;  // of the list around it, if known by now: "PodList"
  std::string where;           // "dump.json:17:5: items[3]"
  model::TextPosition position;
};

// Calls `take` for every object; stops at the first error, the stream's or its own. `read_so_far`, if given, is called
// now and then with the bytes read. INVALID_ARGUMENT for bad text, `read`'s own status if it fails.
Status ReadItems(const ReadBytes& read, std::string_view source,
                 const std::function<Status(const Item&, Item::Place, const ItemPlace&)>& take,
                 const std::function<void(uint64_t)>& read_so_far = {}, const StreamLimits& limits = {});

}  // namespace muster::kube
