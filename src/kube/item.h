// Item: one object of a dump as a tree of values, held in two buffers that the next item reuses; ItemView: a place in
// it.
//
// A view reads what is expected at its place. An absent or null value reads as nothing; a value of another kind is
// remembered as the item's first error, with its path, and reads as nothing too. So decoding an object is a straight
// list of reads with one check at the end.
//
// Thread-safety: none. Views are valid until the item is cut or dropped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::kube {

enum class ValueKind : uint8_t { kNull, kBool, kNumber, kString, kList, kMap };

class ItemView;

class Item {
 public:
  using Place = uint32_t;
  static constexpr Place kNone = UINT32_MAX;

  // --- Building, in the order of the document.
  // Appends a value below `parent` (kNone: a root). `key` is empty in a list.
  Place Add(Place parent, std::string_view key, ValueKind kind, std::string_view text);
  // Whether the map at `parent` has this key. Linear in its keys.
  bool Has(Place parent, std::string_view key) const;
  // How much there is, and back to an earlier amount: what was added since is gone.
  struct Mark {
    size_t values = 0;
    size_t text = 0;
    Place last_child = kNone;  // of the parent that grew
  };
  Mark Here(Place parent) const;
  void CutTo(const Mark& mark, Place parent);
  size_t bytes() const { return values_.size() * sizeof(Value) + text_.size(); }

  // --- Reading.
  ItemView Root(Place place = 0) const;
  // The first error as "path: what"; empty: none.
  const std::string& error() const { return error_; }
  void ClearError() { error_.clear(); }

 private:
  friend class ItemView;
  struct Value {
    ValueKind kind = ValueKind::kNull;
    uint32_t key = 0, key_size = 0;
    uint32_t text = 0, text_size = 0;
    Place parent = kNone;
    Place first_child = kNone;
    Place last_child = kNone;
    Place next = kNone;
  };
  std::string_view KeyOf(const Value& value) const { return {text_.data() + value.key, value.key_size}; }
  std::string_view TextOf(const Value& value) const { return {text_.data() + value.text, value.text_size}; }
  std::string PathOf(Place place, Place root) const;

  std::vector<Value> values_;
  std::string text_;
  mutable std::string error_;  // set while reading
};

class ItemView {
 public:
  bool present() const { return place_ != Item::kNone; }
  ValueKind kind() const;
  // A view of nothing, for a part that an object does not have.
  ItemView Nothing() const { return {*item_, Item::kNone, root_}; }
  // The field of a map; not present if there is none or it is null.
  ItemView operator[](std::string_view key) const;

  std::string_view Text() const;    // a string; empty if absent
  std::string_view Scalar() const;  // a string or a number as it is written
  bool Bool(bool otherwise) const;
  int64_t Integer(int64_t otherwise) const;
  // Calls `see(ItemView)` for every value of a list, `see(key, ItemView)` for every field of a map, without nulls.
  template <class See>
  void ForEach(See see) const {
    if (!Is(ValueKind::kList)) return;
    for (Item::Place at = First(); at != Item::kNone; at = Next(at)) see(ItemView(*item_, at, root_));
  }
  template <class See>
  void ForEachField(See see) const {
    if (!Is(ValueKind::kMap)) return;
    for (Item::Place at = First(); at != Item::kNone; at = Next(at)) see(KeyAt(at), ItemView(*item_, at, root_));
  }
  // Records an error at this place, unless there is one already.
  void Fail(std::string_view what) const;
  bool ok() const { return item_->error_.empty(); }

 private:
  friend class Item;
  ItemView(const Item& item, Item::Place place, Item::Place root) : item_(&item), place_(place), root_(root) {}
  bool Is(ValueKind kind) const;  // false if absent; an error if another kind
  Item::Place First() const;
  Item::Place Next(Item::Place place) const;
  std::string_view KeyAt(Item::Place place) const;

  const Item* item_;
  Item::Place place_;
  Item::Place root_;  // paths begin below it
};

}  // namespace muster::kube
