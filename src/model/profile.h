// Profile: the identity under which demand is summed: requirements, spread, priority and the two penalty buckets.
//
// Canonical from construction: values, requirements and spreads are sorted and free of repetition, so equal content in
// any order gives the same fingerprint, byte for byte, and different content a different one. The fingerprint is
// readable and travels on the wire and in shard metadata:
//
//   p=1000|ipb=17|rpb=18|reqs=gpu:3:;topology.kubernetes.io/zone:1:a,b|spr=rack:1:1
//
// Requirements are key:operator:values, spreads are key:skew:when, joined by ';' and sorted; a skew below 1 is 1. A
// character with a meaning in this form (| ; : , %) inside a key or value is written as %XX, and an empty value as a
// lone %; Kubernetes names never hold one.
//
// Immutable, cheap to copy (shared).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/codec.h"
#include "base/fields.h"
#include "model/penalty.h"
#include "model/requirement.h"

namespace muster::model {

struct ProfileParts {
  std::vector<Requirement> requirements;
  std::vector<Spread> spread;
  int32_t priority = 0;
  PenaltyBucket interruption = PenaltyBucket::kZero;
  PenaltyBucket reclamation = PenaltyBucket::kZero;

  bool operator==(const ProfileParts&) const = default;
  MUSTER_FIELDS(ProfileParts, requirements, spread, priority, interruption, reclamation)
};

class Profile {
 public:
  Profile();  // no requirements, priority 0, both penalties zero
  explicit Profile(ProfileParts parts);

  const std::vector<Requirement>& requirements() const { return body_->parts.requirements; }
  const std::vector<Spread>& spread() const { return body_->parts.spread; }
  int32_t priority() const { return body_->parts.priority; }
  PenaltyBucket interruption() const { return body_->parts.interruption; }
  PenaltyBucket reclamation() const { return body_->parts.reclamation; }
  const ProfileParts& parts() const { return body_->parts; }
  const std::string& fingerprint() const { return body_->fingerprint; }

  bool operator==(const Profile& other) const { return fingerprint() == other.fingerprint(); }

  friend void Encode(codec::Writer& writer, const Profile& profile) { codec::Encode(writer, profile.parts()); }
  // Parts that are not in canonical form would be a second spelling of the same profile.
  friend bool Decode(codec::Reader& reader, Profile& profile) {
    ProfileParts parts;
    if (!codec::Decode(reader, parts)) return false;
    profile = Profile(parts);
    return profile.parts() == parts;
  }
  friend std::string Describe(const Profile& profile) { return codec::Describe(profile.fingerprint()); }

 private:
  struct Body {
    ProfileParts parts;
    std::string fingerprint;
  };
  std::shared_ptr<const Body> body_;
};

}  // namespace muster::model
