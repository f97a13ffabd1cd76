// Any bytes as a case: refused with one printable line, or decided for up to three cycles, with every form of output.
#include "engine/reference/decide.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "engine/case_explain.h"
#include "engine/case_file.h"
#include "engine/case_print.h"
#include "engine/case_run.h"
#include "model/json_reader.h"

namespace {

using muster::engine::Case;
using muster::engine::CaseCycle;
using muster::engine::CaseText;

constexpr int32_t kCycles = 3;

void CheckRefusal(const muster::Status& status) {
  MUSTER_CHECK(status.code() == muster::Code::kInvalidArgument, "{}", status.ToString());
  for (const char c : status.message()) MUSTER_CHECK(static_cast<unsigned char>(c) >= 0x20, "a control character");
}

void CheckExplanations(const CaseCycle& cycle) {
  for (const std::string& name : cycle.row_names) MUSTER_CHECK(muster::engine::ExplainNeed(cycle, name).has_value());
  for (const auto& machine : cycle.world.machines) {
    MUSTER_CHECK(muster::engine::ExplainMachine(cycle, machine.id).has_value());
  }
}

std::string Decided(const Case& input) {
  CaseText text(CaseText::Form::kExpect);
  CaseText table(CaseText::Form::kTable);
  muster::engine::RunCase(input, muster::engine::reference::Decide, std::min(input.cycles, kCycles),
                          [&](const CaseCycle& cycle) {
                            text.Add(cycle);
                            table.Add(cycle);
                            const std::string json = muster::engine::CycleJson(cycle, true);
                            const auto read = muster::model::ReadJson(json, "json");
                            MUSTER_CHECK(read.has_value(), "{}: {}", read.error().message(), json);
                            if (cycle.world.machines.size() <= 20) CheckExplanations(cycle);
                          });
  MUSTER_CHECK(!table.Take().empty());
  return text.Take();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto input = muster::engine::ReadCase(text, "fuzz", {.max_machines = 200});
  if (!input) {
    CheckRefusal(input.error());
    return 0;
  }
  MUSTER_CHECK(Decided(*input) == Decided(*input), "two runs differ");
  return 0;
}
