// What a cycle of a case looks like: to a person, to a program, and in a case's expectation.
//
// Texts are the same on every machine. Cycles in a row that look the same are shown once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/case_run.h"

namespace muster::engine {

// Names of the needs in a decision as the case calls them; of a folded one, all of its gangs joined by '+'.
std::vector<std::string> NeedNames(const CaseCycle& cycle);

// Cycles as text, one after the other.
class CaseText {
 public:
  enum class Form : uint8_t {
    kTable,   // for people: aligned columns, reasons as sentences
    kExpect,  // for expectations: everything that was decided, reasons by name
  };
  explicit CaseText(Form form) : form_(form) {}
  void Add(const CaseCycle& cycle);
  std::string Take();

 private:
  void Flush();

  const Form form_;
  std::string text_;
  std::string body_;  // of the cycles first_ to last_, not yet in text_
  int32_t first_ = 0;
  int32_t last_ = 0;
  Duration first_at_{};
  Duration last_at_{};
};

// One JSON object on one line; docs/cases.md lists its fields. `machines` adds what became of every machine.
std::string CycleJson(const CaseCycle& cycle, bool machines);

}  // namespace muster::engine
