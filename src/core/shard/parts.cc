#include "core/shard/parts.h"

#include <utility>

#include "base/probe.h"

namespace muster::shard {
namespace {

engine::Policy PolicyOf(const Config& config) {
  engine::Policy policy = config.policy;
  if (MUTANT("shard.surplus_not_held")) policy.surplus_hold = {};
  return policy;
}

}  // namespace

Parts::Parts(SavedState state, Parallel* workers)
    : config(std::move(state.config)),
      parallel(workers),
      engine(PolicyOf(config), parallel),
      cycle(config, state.cycle),
      clusters(std::move(state.clusters)),
      calls(std::move(state.calls)),
      log(std::move(state.log)),
      orders(clusters, std::move(state.orders)),
      owned(config, std::move(state.owned)),
      machines(engine, clusters, std::move(state.machines)),
      losses(config, clusters, machines, std::move(state.losses)),
      lifecycle(config, std::move(state.lifecycle)),
      gets(config, calls, machines, std::move(state.gets)),
      sessions(lifecycle, clusters, std::move(state.sessions)),
      rails(config, clusters, log, std::move(state.rails)),
      repairs(config, std::move(state.repairs)),
      executor({.config = config,
                .lifecycle = lifecycle,
                .calls = calls,
                .machines = machines,
                .gets = gets,
                .sessions = sessions,
                .rails = rails,
                .repairs = repairs,
                .log = log},
               std::move(state.executor)),
      ledger(engine, rails.ceilings(), std::move(state.ledger)),
      demand({.config = config,
              .engine = engine,
              .clusters = clusters,
              .sessions = sessions,
              .rails = rails,
              .ledger = ledger},
             std::move(state.demand)),
      changes({.machines = machines,
               .executor = executor,
               .sessions = sessions,
               .repairs = repairs,
               .ledger = ledger,
               .losses = losses,
               .rails = rails,
               .demand = demand}),
      trial({.config = config,
             .parallel = parallel,
             .engine = engine,
             .clusters = clusters,
             .machines = machines,
             .demand = demand,
             .ledger = ledger,
             .rails = rails},
            state.trial),
      reconcile({.config = config,
                 .parallel = parallel,
                 .lifecycle = lifecycle,
                 .calls = calls,
                 .engine = engine,
                 .owned = owned,
                 .machines = machines,
                 .gets = gets,
                 .losses = losses,
                 .rails = rails,
                 .changes = changes},
                std::move(state.reconcile)),
      hints({.config = config, .engine = engine, .clusters = clusters, .sessions = sessions}, std::move(state.hints)),
      reports({.config = config,
               .lifecycle = lifecycle,
               .calls = calls,
               .engine = engine,
               .machines = machines,
               .owned = owned,
               .reconcile = reconcile},
              std::move(state.reports)),
      inspection({.config = config,
                  .lifecycle = lifecycle,
                  .clusters = clusters,
                  .machines = machines,
                  .losses = losses,
                  .sessions = sessions,
                  .rails = rails,
                  .demand = demand,
                  .ledger = ledger,
                  .executor = executor,
                  .repairs = repairs,
                  .reconcile = reconcile,
                  .orders = orders},
                 std::move(state.inspection)),
      sweep({.engine = engine,
             .clusters = clusters,
             .orders = orders,
             .machines = machines,
             .losses = losses,
             .sessions = sessions,
             .rails = rails,
             .repairs = repairs,
             .executor = executor,
             .ledger = ledger,
             .demand = demand},
            std::move(state.sweep)),
      check({.config = config,
             .engine = engine,
             .clusters = clusters,
             .machines = machines,
             .demand = demand,
             .ledger = ledger,
             .rails = rails}) {}

void Parts::RegisterRows(contract::RowReader& reader) {
  lifecycle.RegisterRows(reader);
  cycle.RegisterRows(reader);
  clusters.RegisterRows(reader);
  losses.RegisterRows(reader);
  orders.RegisterRows(reader);
  owned.RegisterRows(reader);
  rails.RegisterRows(reader);
  repairs.RegisterRows(reader);
  ledger.RegisterRows(reader);
  demand.RegisterRows(reader);
  reconcile.RegisterRows(reader);
}

std::string Parts::Save() const {
  return SaveBytes(engine.engine().ExportMemory(), config, cycle.state(), clusters.state(), calls.state(), log.state(),
                   owned.state(), machines.state(), lifecycle.state(), gets.state(), sessions.state(), rails.state(),
                   repairs.state(), executor.state(), ledger.state(), demand.state(), trial.state(), reconcile.state(),
                   hints.state(), reports.state(), inspection.state(), orders.state(), losses.state(), sweep.state());
}

void Parts::Rebuild(const engine::Memory& memory) {
  engine.engine().Restore(ledger.restored());
  engine.engine().Restore(memory);
  rails.ceilings().Rebuild(memory);
  demand.Rebuild();
  machines.Rebuild(executor.AllInProgress());
  ledger.Rebuild(cycle);
}

void Parts::CheckInvariants() const {
  machines.CheckInvariants();
  losses.CheckInvariants();
  rails.holds().CheckInvariants();
  sessions.CheckInvariants();
  repairs.CheckInvariants();
  executor.CheckInvariants();
  ledger.CheckInvariants();
  demand.CheckInvariants();
  reconcile.CheckInvariants();
}

}  // namespace muster::shard
