// TextMap: names with values, such as labels. Copies share their body, for most machines of a fleet have the same.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "base/copy_on_write.h"
#include "base/fields.h"

namespace muster::model {

class TextMap {
 public:
  using Map = std::map<std::string, std::string>;

  TextMap() = default;
  TextMap(Map map) : map_(std::move(map)) {}  // NOLINT(google-explicit-constructor): a map is one of these
  TextMap(std::initializer_list<Map::value_type> entries) : TextMap(Map(entries)) {}

  operator const Map&() const { return *map_; }  // NOLINT(google-explicit-constructor): and the other way
  Map::const_iterator begin() const { return map_->begin(); }
  Map::const_iterator end() const { return map_->end(); }
  Map::const_iterator find(const std::string& name) const { return map_->find(name); }
  const std::string& at(const std::string& name) const { return map_->at(name); }
  bool contains(const std::string& name) const { return map_->contains(name); }
  bool empty() const { return map_->empty(); }
  size_t size() const { return map_->size(); }

  std::string& operator[](const std::string& name) { return map_.Edit()[name]; }
  void emplace(std::string name, std::string value) { map_.Edit().emplace(std::move(name), std::move(value)); }
  void clear() { map_.Clear(); }

  // Whether nobody else has this body.
  bool alone() const { return map_.alone(); }
  bool SharesWith(const TextMap& other) const { return map_.SharesWith(other.map_); }
  bool operator==(const TextMap&) const = default;

  friend void Encode(codec::Writer& writer, const TextMap& map) { Encode(writer, map.map_); }
  friend bool Decode(codec::Reader& reader, TextMap& map) { return Decode(reader, map.map_); }
  friend std::string Describe(const TextMap& map) { return Describe(map.map_); }

 private:
  CopyOnWrite<Map> map_;
};

}  // namespace muster::model
