// Finding: the first thing that a Verify() found wrong with its table.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace muster::engine::fast {

class Finding {
 public:
  // Notes the message unless `holds`. Only the first one is kept.
  template <class... Args>
  void Expect(bool holds, fmt::format_string<Args...> message, Args&&... args) {
    if (!holds && text_.empty()) text_ = fmt::format(message, std::forward<Args>(args)...);
  }
  // Notes what another Verify() found, if it found something.
  void Merge(std::string_view table, const std::string& found) { Expect(found.empty(), "{}: {}", table, found); }
  bool empty() const { return text_.empty(); }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace muster::engine::fast
