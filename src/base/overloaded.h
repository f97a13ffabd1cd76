// Overloaded: lambdas as one function, chosen by the type of the argument; for std::visit.
//
//   std::visit(Overloaded{[](const contract::Wake&) { ... }, [](const Asked& asked) { ... }}, event);
#pragma once

namespace muster {

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};

}  // namespace muster
