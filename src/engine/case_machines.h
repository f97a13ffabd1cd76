// The machine sections of a case file: short ways to say much. Scenarios of the simulator are written the same way.
//
// A machine of a case is a machine of the model (model/decode.h) with `type` (fields from the file's catalogue),
// `count`, `boundFor` (whose it is), and what the shard remembers of it. Hosts are filled in.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/case_file.h"
#include "model/text_reader.h"

namespace muster::engine {

// What machines may refer to, over all steps.
struct KnownNames {
  std::set<std::string> types;
  std::set<std::string> clusters;
  std::map<std::string, model::Need> needs;  // the first of each name
};

// Copies fields of `types` into the machines that name one, and gives machines the host and cluster their state and
// `boundFor` imply, in all sections of the document. What is wrong is left for the readers below to find.
void FillInMachines(model::TextValue& document);

// The names in the catalogue; its values are checked.
std::set<std::string> ReadTypes(model::TextReader types);

// A case speaks of ten years at most, so that no sum of its times overflows.
inline constexpr Duration kLongestSpan = std::chrono::hours(24 * 365 * 10);
void ReadSpan(model::TextReader reader, Duration& out);

// Reads the sections in the order of the steps, and knows which machines there are at each.
class MachineSection {
 public:
  // `known` must outlive this and be complete before the first call.
  MachineSection(const KnownNames& known, int64_t max_machines) : known_(known), left_(max_machines) {}

  std::vector<CaseMachine> ReadMachines(model::TextReader list);
  std::vector<std::string> ReadRemovals(model::TextReader list);
  std::vector<MachineChange> ReadChanges(model::TextReader list);
  Holds ReadHolds(model::TextReader& reader) const;

 private:
  CaseMachine ReadMachine(model::TextReader& reader) const;
  void ReadBinding(model::TextReader& reader, model::Machine& machine) const;
  void ReadMemory(model::TextReader& reader, CaseMachine& machine) const;
  const model::Need* FindNeed(model::TextReader& reader) const;
  void AddCopies(model::TextReader& reader, const CaseMachine& machine, std::vector<CaseMachine>& out);
  void ReadIds(model::TextReader reader, std::vector<std::string>& out) const;
  void ReadId(model::TextReader reader, std::string& out) const;

  const KnownNames& known_;
  int64_t left_;  // how many more machines the file may have
  std::set<std::string> ids_;
  std::set<std::string> instance_types_;
};

}  // namespace muster::engine
