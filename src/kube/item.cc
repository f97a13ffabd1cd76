#include "kube/item.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

#include "model/names.h"
#include "model/text_value.h"

namespace muster::kube {
namespace {

std::string_view NameOfKind(ValueKind kind) {
  switch (kind) {
    case ValueKind::kNull: return "null";
    case ValueKind::kBool: return "true or false";
    case ValueKind::kNumber: return "a number";
    case ValueKind::kString: return "a string";
    case ValueKind::kList: return "a list";
    case ValueKind::kMap: return "an object";
  }
  return "invalid";
}

}  // namespace

Item::Place Item::Add(Place parent, std::string_view key, ValueKind kind, std::string_view text) {
  const Place place = static_cast<Place>(values_.size());
  Value& value = values_.emplace_back();
  value.kind = kind;
  value.parent = parent;
  value.key = static_cast<uint32_t>(text_.size());
  value.key_size = static_cast<uint32_t>(key.size());
  text_ += key;
  value.text = static_cast<uint32_t>(text_.size());
  value.text_size = static_cast<uint32_t>(text.size());
  text_ += text;
  if (parent == kNone) return place;
  Value& holder = values_[parent];
  if (holder.last_child == kNone) {
    holder.first_child = place;
  } else {
    values_[holder.last_child].next = place;
  }
  holder.last_child = place;
  return place;
}

bool Item::Has(Place parent, std::string_view key) const {
  for (Place at = values_[parent].first_child; at != kNone; at = values_[at].next) {
    if (KeyOf(values_[at]) == key) return true;
  }
  return false;
}

Item::Mark Item::Here(Place parent) const {
  return {values_.size(), text_.size(), parent == kNone ? kNone : values_[parent].last_child};
}

void Item::CutTo(const Mark& mark, Place parent) {
  values_.resize(mark.values);
  text_.resize(mark.text);
  if (parent == kNone) return;
  Value& holder = values_[parent];
  holder.last_child = mark.last_child;
  if (mark.last_child == kNone) {
    holder.first_child = kNone;
  } else {
    values_[mark.last_child].next = kNone;
  }
}

ItemView Item::Root(Place place) const { return {*this, place, place}; }

std::string Item::PathOf(Place place, Place root) const {
  if (place == root || place == kNone) return "";
  const Value& value = values_[place];
  const std::string above = PathOf(value.parent, root);
  if (values_[value.parent].kind == ValueKind::kMap) return model::FieldPath(above, KeyOf(value));
  size_t index = 0;
  for (Place at = values_[value.parent].first_child; at != place; at = values_[at].next) ++index;
  return model::ItemPath(above, index);
}

ValueKind ItemView::kind() const { return present() ? item_->values_[place_].kind : ValueKind::kNull; }

ItemView ItemView::operator[](std::string_view key) const {
  if (!Is(ValueKind::kMap)) return Nothing();
  for (Item::Place at = First(); at != Item::kNone; at = Next(at)) {
    if (KeyAt(at) == key) return {*item_, at, root_};
  }
  return Nothing();
}

std::string_view ItemView::Text() const {
  return Is(ValueKind::kString) ? item_->TextOf(item_->values_[place_]) : std::string_view();
}

std::string_view ItemView::Scalar() const {
  if (kind() == ValueKind::kNumber) return item_->TextOf(item_->values_[place_]);
  return Text();
}

bool ItemView::Bool(bool otherwise) const {
  return Is(ValueKind::kBool) ? item_->TextOf(item_->values_[place_]) == "true" : otherwise;
}

int64_t ItemView::Integer(int64_t otherwise) const {
  if (!Is(ValueKind::kNumber)) return otherwise;
  const std::string_view text = item_->TextOf(item_->values_[place_]);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  Fail(fmt::format("{} is not a whole number of 64 bits", text));
  return otherwise;
}

void ItemView::Fail(std::string_view what) const {
  if (!item_->error_.empty()) return;
  const std::string path = item_->PathOf(place_, root_);
  item_->error_ = path.empty() ? std::string(what) : fmt::format("{}: {}", path, what);
}

bool ItemView::Is(ValueKind wanted) const {
  if (!present()) return false;
  const ValueKind found = kind();
  if (found == wanted) return true;
  Fail(fmt::format("expected {} but found {}", NameOfKind(wanted), NameOfKind(found)));
  return false;
}

// Nulls are left out when a document is read, so that they are absent.
Item::Place ItemView::First() const { return item_->values_[place_].first_child; }
Item::Place ItemView::Next(Item::Place place) const { return item_->values_[place].next; }
std::string_view ItemView::KeyAt(Item::Place place) const { return item_->KeyOf(item_->values_[place]); }

}  // namespace muster::kube
