// BrokenProvider: a good provider with one rule broken, in front of it. What the checks of conformance are checked
// with.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "contract/provider.h"

namespace muster::provider {

class BrokenProvider final : public contract::ProviderPort {
 public:
  // Either may be empty. `request` changes what the provider is asked, or answers itself; `reply` changes what it says.
  struct Rule {
    std::function<std::optional<Result<contract::ProviderReply>>(contract::ProviderRequest&)> request;
    std::function<void(const contract::ProviderRequest& asked, Result<contract::ProviderReply>&)> reply;
  };

  BrokenProvider(contract::ProviderPort& good, Rule rule) : good_(good), rule_(std::move(rule)) {}

  void Ask(contract::ProviderRequest request, Duration timeout, Done done) override {
    const contract::ProviderRequest asked = request;
    if (rule_.request) {
      if (auto answer = rule_.request(request)) return done(*std::move(answer));
    }
    good_.Ask(std::move(request), timeout,
              [this, asked, done = std::move(done)](Result<contract::ProviderReply> result) {
                if (rule_.reply) rule_.reply(asked, result);
                done(std::move(result));
              });
  }

 private:
  contract::ProviderPort& good_;
  const Rule rule_;
};

}  // namespace muster::provider
