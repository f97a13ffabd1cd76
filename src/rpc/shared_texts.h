// SharedTexts: the labels, metadata and resources that records on the wire have in common, each made once. A list of
// 200,000 machines has a few hundred of them, and reading one again costs a look into a table.
//
// Maps that no record has any more are dropped now and then, so the table follows what the records need.
// Thread-safety: any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/status.h"
#include "model/resources.h"
#include "model/text_map.h"
#include "rpc/wire_parts.h"

namespace muster::rpc {

class SharedTexts {
 public:
  model::TextMap Map(const WireMap& wire);
  // As ResourcesFromWire.
  Result<model::Resources> Resources(const WireMap& wire, std::string_view path, std::string_view field);
  size_t size() const;

 private:
  struct Known {
    model::TextMap map;
    std::optional<model::Resources> resources;  // what the map says as quantities, once somebody asked

    bool wanted() const { return !map.alone() || (resources && !resources->alone()); }
  };
  // Under mu_.
  Known& Find(const WireMap& wire);
  void DropUnwanted();

  mutable std::mutex mu_;
  std::unordered_multimap<uint64_t, Known> known_;  // by a digest of the entries in any order
  size_t drop_at_ = 1024;
};

}  // namespace muster::rpc
