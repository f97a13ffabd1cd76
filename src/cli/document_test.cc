#include "cli/document.h"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

Document Example() {
  Document machine = Document::Map();
  machine.Add("type", "m5.large").Add("price", Document::Dollars({96'000}));
  Document units = Document::List();
  units.Add("shop/web-1").Add("a \"b\"");
  machine.Add("units", std::move(units));
  Document second = Document::Map();
  second.Add("type", "x").Add("none", Document::List());
  Document machines = Document::List();
  machines.Add(std::move(machine)).Add(std::move(second));
  Document root = Document::Map();
  root.Add("units", int64_t{3})
      .Add("exact", false)
      .Add("saving", Document::Null())
      .Add("machines", std::move(machines));
  return root;
}

TEST(Document, Json) {
  EXPECT_EQ(Example().ToJson(),
            R"({"units":3,"exact":false,"saving":null,"machines":[{"type":"m5.large","price":0.096,)"
            R"("units":["shop/web-1","a \"b\""]},{"type":"x","none":[]}]})");
}

TEST(Document, Yaml) {
  EXPECT_EQ(Example().ToYaml(), R"(units: 3
exact: false
saving: null
machines:
- type: "m5.large"
  price: 0.096
  units:
  - "shop/web-1"
  - "a \"b\""
- type: "x"
  none: []
)");
  EXPECT_EQ(Document::Map().ToYaml(), "{}\n");
}

}  // namespace
}  // namespace muster::cli
