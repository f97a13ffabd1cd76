// CopyOnWrite<T>: a value whose copies share one body until one of them is changed. For values that thousands of
// records have in common, such as the labels of machines of one kind.
//
// It is encoded, compared and described as the T it holds. Thread-safety: as a T. Copies may be read and dropped in any
// thread; a body that was ever in two threads is not edited in place, so whoever edits makes its own from a T.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/codec.h"

namespace muster {

template <class T>
class CopyOnWrite {
 public:
  CopyOnWrite() = default;  // NOLINTNEXTLINE(google-explicit-constructor): a T is one of these
  CopyOnWrite(T value) : body_(Empty(value) ? nullptr : std::make_shared<T>(std::move(value))) {}

  const T& operator*() const { return body_ ? *body_ : None(); }
  const T* operator->() const { return &**this; }
  // The body, of this copy alone; good until the next copy is made.
  T& Edit() {
    if (!body_) {
      body_ = std::make_shared<T>();
    } else if (body_.use_count() > 1) {
      body_ = std::make_shared<T>(*body_);
    }
    return *body_;
  }
  void Clear() { body_.reset(); }

  // Whether nobody else has this body.
  bool alone() const { return body_.use_count() <= 1; }
  bool SharesWith(const CopyOnWrite& other) const { return body_ == other.body_; }
  bool operator==(const CopyOnWrite& other) const { return SharesWith(other) || **this == *other; }

  friend void Encode(codec::Writer& writer, const CopyOnWrite& value) { codec::Encode(writer, *value); }
  friend bool Decode(codec::Reader& reader, CopyOnWrite& value) {
    T read;
    if (!codec::Decode(reader, read)) return false;
    value = CopyOnWrite(std::move(read));
    return true;
  }
  friend std::string Describe(const CopyOnWrite& value) { return codec::Describe(*value); }

 private:
  static bool Empty(const T& value) { return value.empty(); }
  static const T& None() {
    static const T none;
    return none;
  }
  std::shared_ptr<T> body_;  // null: empty
};

}  // namespace muster
