// Rows of agents of format 1, whose templates had no secrets.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/fields.h"
#include "contract/tables.h"
#include "core/agent/types.h"

namespace muster::agent {

struct EarlierTemplate : model::WorkloadTemplate {
  MUSTER_SOME_FIELDS(EarlierTemplate, type, command, image, compose, env, ports, volumes, resources, requirements,
                     tolerations, spread, colocate, exclude, priority, interruption, reclamation, restart, grace)
};

struct EarlierApply {
  std::string workload;
  std::string set;
  std::string tenant;
  std::string revision;
  bool run = true;
  EarlierTemplate spec;
  std::map<std::string, std::string> labels;
  contract::Stamp stamp;

  MUSTER_FIELDS(EarlierApply, workload, set, tenant, revision, run, spec, labels, stamp)
};

struct EarlierRow {
  EarlierApply wanted;
  bool deleting = false;
  Duration delete_grace{};
  bool stray = false;
  bool launch_due = false;
  uint64_t launch = 0;
  int32_t restarts = 0;
  int32_t failures = 0;
  bool given_up = false;
  WallTime created_at;
  WallTime updated_at;

  MUSTER_FIELDS(EarlierRow, wanted, deleting, delete_grace, stray, launch_due, launch, restarts, failures, given_up,
                created_at, updated_at)
};

inline constexpr uint64_t kEarlierFormat = 1;
inline constexpr contract::Table<std::string, EarlierRow> kEarlierRows{kRows.prefix};

inline Row RowOf(EarlierRow row) {
  EarlierApply& wanted = row.wanted;
  return {.wanted = {.workload = std::move(wanted.workload),
                     .set = std::move(wanted.set),
                     .tenant = std::move(wanted.tenant),
                     .revision = std::move(wanted.revision),
                     .run = wanted.run,
                     .spec = std::move(wanted.spec),
                     .labels = std::move(wanted.labels),
                     .stamp = wanted.stamp},
          .deleting = row.deleting,
          .delete_grace = row.delete_grace,
          .stray = row.stray,
          .launch_due = row.launch_due,
          .launch = row.launch,
          .restarts = row.restarts,
          .failures = row.failures,
          .given_up = row.given_up,
          .created_at = row.created_at,
          .updated_at = row.updated_at};
}

}  // namespace muster::agent
