#include "model/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster::model {
namespace {

template <class T>
void SortUnique(std::vector<T>& items) {
  std::ranges::sort(items);
  const auto repeated = std::ranges::unique(items);
  items.erase(repeated.begin(), repeated.end());
}

// Values first: requirements that differ only in the order of their values are equal only after that.
void Canonicalise(ProfileParts& parts) {
  for (Requirement& requirement : parts.requirements) SortUnique(requirement.values);
  SortUnique(parts.requirements);
  for (Spread& spread : parts.spread) spread.max_skew = std::max(spread.max_skew, 1);
  SortUnique(parts.spread);
}

void AppendEscaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (std::string_view("|;:,%").contains(c)) {
      out += fmt::format("%{:02X}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
}

std::string Fingerprint(const ProfileParts& parts) {
  std::string out = fmt::format("p={}|ipb={}|rpb={}|reqs=", parts.priority, static_cast<int>(parts.interruption),
                                static_cast<int>(parts.reclamation));
  for (const Requirement& requirement : parts.requirements) {
    if (&requirement != &parts.requirements.front()) out += ';';
    AppendEscaped(out, requirement.key);
    out += fmt::format(":{}:", static_cast<int>(requirement.op));
    for (const std::string& value : requirement.values) {
      if (&value != &requirement.values.front()) out += ',';
      if (value.empty()) out += '%';  // else one empty value would read as no values
      AppendEscaped(out, value);
    }
  }
  out += "|spr=";
  for (const Spread& spread : parts.spread) {
    if (&spread != &parts.spread.front()) out += ';';
    AppendEscaped(out, spread.topology_key);
    out += fmt::format(":{}:{}", spread.max_skew, static_cast<int>(spread.when));
  }
  return out;
}

}  // namespace

Profile::Profile(ProfileParts parts) {
  Canonicalise(parts);
  std::string fingerprint = Fingerprint(parts);
  body_ = std::make_shared<const Body>(Body{std::move(parts), std::move(fingerprint)});
}

Profile::Profile() {
  static const Profile empty{ProfileParts{}};
  body_ = empty.body_;
}

}  // namespace muster::model
