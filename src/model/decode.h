// Model objects from text: the one place that knows how machines and needs are written in files.
//
// Keys are in camelCase as in Kubernetes manifests; docs/model-files.md lists them. Every function reads from a
// TextReader and reports into its TextErrors; unknown keys are errors.
#pragma once

#include "model/machine.h"
#include "model/need.h"
#include "model/profile.h"
#include "model/text_reader.h"

namespace muster::model {

Requirement ReadRequirement(TextReader& reader);
Spread ReadSpread(TextReader& reader);
// The keys of a need that make its profile: requirements, spread, priority, interruptionPenalty, reclamationPenalty.
ProfileParts ReadProfileParts(TextReader& reader);
// A need of `cluster`: the profile's keys plus aggregate, minUnit, group, arrival. Refuses unknown keys.
Need ReadNeed(TextReader& reader, const std::string& cluster);
// A machine record; structural invariants are checked. Does not refuse unknown keys: callers add their own (count).
Machine ReadMachine(TextReader& reader);

}  // namespace muster::model
