// Requirements of any content: matching keeps its laws, and a profile does not depend on the order of its parts.
#include "model/requirement.h"

#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>

#include "base/check.h"
#include "model/profile.h"

namespace {

using namespace muster::model;

Requirement AnyRequirement(FuzzedDataProvider& input) {
  Requirement requirement{
      input.ConsumeRandomLengthString(32), static_cast<Operator>(input.ConsumeIntegralInRange(0, 9)), {}};
  for (int left = input.ConsumeIntegralInRange(0, 4); left > 0; --left) {
    requirement.values.push_back(input.ConsumeRandomLengthString(32));
  }
  return requirement;
}

void CheckMatching(Requirement requirement, std::optional<std::string_view> attribute) {
  const auto matches = [&](Operator op) {
    requirement.op = op;
    return Matches(requirement, attribute);
  };
  MUSTER_CHECK(!(matches(requirement.op) && OperatorName(requirement.op) == "invalid"));
  MUSTER_CHECK(matches(Operator::kIn) != matches(Operator::kNotIn));
  MUSTER_CHECK(matches(Operator::kExists) != matches(Operator::kDoesNotExist));
  MUSTER_CHECK(matches(Operator::kSame) ==
               (requirement.values.empty() ? matches(Operator::kExists) : matches(Operator::kIn)));
  const bool greater = matches(Operator::kGt);
  const bool ordered = greater || matches(Operator::kLt);
  MUSTER_CHECK(!(greater && matches(Operator::kLt)));
  if (ordered)
    MUSTER_CHECK(attribute && requirement.values.size() == 1 && Validate(requirement).ok() == !requirement.key.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedDataProvider input(data, size);
  ProfileParts parts;
  for (int left = input.ConsumeIntegralInRange(1, 4); left > 0; --left)
    parts.requirements.push_back(AnyRequirement(input));
  const std::string attribute = input.ConsumeRandomLengthString(32);
  for (const Requirement& requirement : parts.requirements) {
    CheckMatching(requirement, attribute);
    CheckMatching(requirement, std::nullopt);
    const muster::Status status = Validate(requirement);
    MUSTER_CHECK(status.ok() || status.message().contains(": "));
    MUSTER_CHECK(ToString(requirement).starts_with(requirement.key));
  }
  const auto op = ParseOperator(attribute);
  MUSTER_CHECK(!op || OperatorName(*op) == attribute);

  const Profile profile(parts);
  MUSTER_CHECK(Profile(profile.parts()) == profile && Profile(profile.parts()).parts() == profile.parts());
  std::ranges::reverse(parts.requirements);
  for (Requirement& requirement : parts.requirements) std::ranges::reverse(requirement.values);
  MUSTER_CHECK(Profile(parts) == profile);

  Requirement& changed = parts.requirements.front();
  changed.values.push_back(attribute + "|;:,%");
  const Profile alone(ProfileParts{.requirements = {changed}});
  const bool known = std::ranges::count(profile.requirements(), alone.requirements().front()) > 0;
  MUSTER_CHECK(known || Profile(parts) != profile);
  return 0;
}
