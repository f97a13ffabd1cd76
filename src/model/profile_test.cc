#include "model/profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/rng.h"

namespace muster::model {
namespace {

using enum Operator;

TEST(Profile, FingerprintForm) {
  const Profile profile({.requirements = {{"topology.kubernetes.io/zone", kIn, {"b", "a", "b"}}, {"gpu", kExists, {}}},
                         .spread = {{.topology_key = "rack"}},
                         .priority = 1000,
                         .interruption = PenaltyBucket{17},
                         .reclamation = PenaltyBucket{18}});
  EXPECT_EQ(profile.fingerprint(), "p=1000|ipb=17|rpb=18|reqs=gpu:3:;topology.kubernetes.io/zone:1:a,b|spr=rack:1:1");
  EXPECT_EQ(Profile().fingerprint(), "p=0|ipb=1|rpb=1|reqs=|spr=");
  EXPECT_EQ(Profile(), Profile(ProfileParts{}));
  EXPECT_EQ(Profile({.priority = -7}).fingerprint(), "p=-7|ipb=1|rpb=1|reqs=|spr=");
}

TEST(Profile, EscapesCharactersWithAMeaning) {
  const Profile profile({.requirements = {{"a|b", kIn, {"x;y", "x,y", "100%", "", ":"}}},
                         .spread = {{.topology_key = "r:k", .when = WhenUnsatisfiable::kScheduleAnyway}}});
  EXPECT_EQ(profile.fingerprint(), "p=0|ipb=1|rpb=1|reqs=a%7Cb:1:%,100%25,%3A,x%2Cy,x%3By|spr=r%3Ak:1:2");
}

TEST(Profile, RepetitionAndLowSkewDoNotCount) {
  const Profile plain({.requirements = {{"zone", kIn, {"a", "b"}}}, .spread = {{.topology_key = "rack"}}});
  const Profile repeated({.requirements = {{"zone", kIn, {"b", "a", "a"}}, {"zone", kIn, {"a", "b"}}},
                          .spread = {{.topology_key = "rack", .max_skew = 0},
                                     {.topology_key = "rack", .max_skew = -5},
                                     {.topology_key = "rack", .max_skew = 1}}});
  EXPECT_EQ(plain.fingerprint(), repeated.fingerprint());
  EXPECT_EQ(repeated.requirements().size(), 1u);
  EXPECT_EQ(repeated.spread(), plain.spread());
  EXPECT_EQ(repeated.spread().front().max_skew, 1);
}

TEST(Profile, NoValuesIsNotOneEmptyValue) {
  EXPECT_NE(Profile({.requirements = {{"zone", kSame, {}}}}), Profile({.requirements = {{"zone", kSame, {""}}}}));
}

// What a profile means, said with sets: the oracle of equality.
using Meaning = std::tuple<std::set<std::tuple<std::string, int, std::set<std::string>>>,
                           std::set<std::tuple<std::string, int, int>>, int, int, int>;

Meaning MeaningOf(const ProfileParts& parts) {
  Meaning meaning;
  for (const Requirement& r : parts.requirements) {
    std::get<0>(meaning).emplace(r.key, static_cast<int>(r.op), std::set(r.values.begin(), r.values.end()));
  }
  for (const Spread& s : parts.spread) {
    std::get<1>(meaning).emplace(s.topology_key, std::max(s.max_skew, 1), static_cast<int>(s.when));
  }
  std::get<2>(meaning) = parts.priority;
  std::get<3>(meaning) = static_cast<int>(parts.interruption);
  std::get<4>(meaning) = static_cast<int>(parts.reclamation);
  return meaning;
}

// Few letters and all the nasty ones, so that a flaw in the form would soon make two contents collide.
class Generator {
 public:
  explicit Generator(uint64_t seed) : rng_(seed) {}

  std::string Text() {
    static constexpr std::string_view kLetters = "ab|;:,%=1372C";
    std::string text;
    for (uint64_t left = rng_.Below(4); left > 0; --left) text += kLetters[rng_.Below(kLetters.size())];
    return text;
  }
  Requirement AnyRequirement() {
    Requirement requirement{Text(), static_cast<Operator>(rng_.Below(8)), {}};
    for (uint64_t left = rng_.Below(4); left > 0; --left) requirement.values.push_back(Text());
    return requirement;
  }
  Spread AnySpread() {
    return {Text(), static_cast<int32_t>(rng_.Between(-1, 3)), static_cast<WhenUnsatisfiable>(rng_.Below(3))};
  }
  ProfileParts Parts() {
    ProfileParts parts;
    for (uint64_t left = rng_.Below(4); left > 0; --left) parts.requirements.push_back(AnyRequirement());
    for (uint64_t left = rng_.Below(3); left > 0; --left) parts.spread.push_back(AnySpread());
    parts.priority = static_cast<int32_t>(rng_.Between(-2, 2));
    parts.interruption = static_cast<PenaltyBucket>(rng_.Below(kPenaltyBuckets));
    parts.reclamation = static_cast<PenaltyBucket>(rng_.Below(kPenaltyBuckets));
    return parts;
  }
  // The same content in another order, some of it said twice.
  ProfileParts Reordered(ProfileParts parts) {
    for (Requirement& requirement : parts.requirements) {
      Repeat(requirement.values);
      rng_.Shuffle(std::span(requirement.values));
    }
    Repeat(parts.requirements);
    Repeat(parts.spread);
    rng_.Shuffle(std::span(parts.requirements));
    rng_.Shuffle(std::span(parts.spread));
    return parts;
  }
  // One thing changed; perhaps to what it was, or to what does not count: the oracle knows.
  ProfileParts Mutated(ProfileParts parts) {
    switch (rng_.Below(9)) {
      case 0: parts.priority += 1; break;
      case 1: parts.interruption = static_cast<PenaltyBucket>(rng_.Below(kPenaltyBuckets)); break;
      case 2: parts.reclamation = static_cast<PenaltyBucket>(rng_.Below(kPenaltyBuckets)); break;
      case 3: parts.requirements.push_back(AnyRequirement()); break;
      case 4: parts.spread.push_back(AnySpread()); break;
      case 5:
        if (!parts.requirements.empty()) parts.requirements.pop_back();
        break;
      case 6:
        if (!parts.requirements.empty()) parts.requirements[0].values.push_back(Text());
        break;
      case 7:
        if (!parts.requirements.empty()) MoveLetter(parts.requirements[0]);
        break;
      case 8:
        if (!parts.spread.empty()) parts.spread[0].max_skew += 1;
        break;
    }
    return parts;
  }

 private:
  template <class T>
  void Repeat(std::vector<T>& items) {
    if (!items.empty() && rng_.Chance(1, 3)) items.push_back(T(items[rng_.Below(items.size())]));
  }
  // From the key to the first value, or a value split in two: what a form without escapes confuses.
  void MoveLetter(Requirement& requirement) {
    if (requirement.values.empty()) {
      requirement.values.push_back("");
    } else if (rng_.Chance(1, 2) && !requirement.key.empty()) {
      requirement.values[0].insert(0, 1, requirement.key.back());
      requirement.key.pop_back();
    } else {
      const size_t at = rng_.Below(requirement.values[0].size() + 1);
      requirement.values.push_back(requirement.values[0].substr(at));
      requirement.values[0].resize(at);
    }
  }

  Rng rng_;
};

TEST(Profile, FingerprintsAreEqualExactlyWhenTheContentIs) {
  Generator generator(20240607);
  int equal = 0;
  int different = 0;
  const auto compare = [&](const ProfileParts& a, const ProfileParts& b) {
    const bool same = MeaningOf(a) == MeaningOf(b);
    ++(same ? equal : different);
    ASSERT_EQ(Profile(a).fingerprint() == Profile(b).fingerprint(), same) << Profile(a).fingerprint() << "\n"
                                                                          << Profile(b).fingerprint();
  };
  for (int i = 0; i < 100'000 && !HasFatalFailure(); ++i) {
    const ProfileParts parts = generator.Parts();
    const ProfileParts reordered = generator.Reordered(parts);
    ASSERT_EQ(MeaningOf(parts), MeaningOf(reordered));
    compare(parts, reordered);
    compare(parts, generator.Mutated(reordered));
  }
  EXPECT_GT(equal, 100'000);
  EXPECT_GT(different, 70'000);
}

// Many contents at once: as many fingerprints as meanings, so no two of them collide.
TEST(Profile, ManyContentsDoNotCollide) {
  Generator generator(7);
  std::set<Meaning> meanings;
  std::set<std::string> fingerprints;
  for (int i = 0; i < 50'000; ++i) {
    ProfileParts parts{.requirements = {generator.AnyRequirement()}};
    meanings.insert(MeaningOf(parts));
    fingerprints.insert(Profile(std::move(parts)).fingerprint());
  }
  EXPECT_EQ(fingerprints.size(), meanings.size());
  EXPECT_GT(meanings.size(), 20'000u);
  EXPECT_LT(meanings.size(), 50'000u);
}

}  // namespace
}  // namespace muster::model
