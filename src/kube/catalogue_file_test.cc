#include "kube/catalogue_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/source_dir_for_test.h"

namespace muster::kube {
namespace {

std::string ErrorOf(std::string_view text) {
  const auto catalogue = ReadCatalogue(text, "c");
  return catalogue ? "ok" : catalogue.error().message();
}

TEST(CatalogueFile, Yaml) {
  const auto catalogue = ReadCatalogue(R"(
source: list prices
zones: [a, b]
types:
- name: small
  resources: {cpu: 2, memory: 8Gi}
  slots: 29
  reserved: {cpu: 70m}
  price: $0.096
- name: big
  arch: arm64
  resources: {cpu: 64, memory: 256Gi, nvidia.com/gpu: 2}
  allocatable: {cpu: 63}
  labels: {disk: fast}
  offers:
  - {price: 3.2, zones: [a]}
  - {capacityType: spot, price: 1.1, interruptionProbability: 0.05}
)",
                                       "c");
  ASSERT_TRUE(catalogue) << catalogue.error().message();
  EXPECT_EQ(catalogue->source, "list prices");
  ASSERT_EQ(catalogue->types.size(), 2u);
  const planner::MachineType& small = catalogue->types[0];
  EXPECT_EQ(small.Allocatable().ToString(), "cpu=1930m memory=8Gi pods=29");
  ASSERT_EQ(small.offers.size(), 2u);
  EXPECT_EQ(small.offers[1].zone, "b");
  EXPECT_EQ(small.offers[1].price.micros, 96'000);
  const planner::MachineType& big = catalogue->types[1];
  EXPECT_EQ(big.arch, "arm64");
  EXPECT_EQ(big.Allocatable().ToString(), "cpu=63 memory=256Gi nvidia.com/gpu=2");
  EXPECT_EQ(big.devices, (std::vector<int32_t>{1000, 1000}));
  ASSERT_EQ(big.offers.size(), 3u);
  EXPECT_EQ(big.offers[2].capacity, model::CapacityType::kSpot);
  EXPECT_EQ(big.offers[2].interruption.millionths, 50'000);
}

TEST(CatalogueFile, Csv) {
  const auto catalogue = ReadCatalogue(
      "# prices of May\n"
      "name,arch,cpu,memory,slots,zones,capacity_type,price,interruption_probability,reserved_cpu,example.com/fpga\r\n"
      "\"small\",amd64,2,8Gi,29,a b,on-demand,0.1,,70m,\r\n"
      "\n"
      "small,amd64,2,8Gi,29,a;b,spot,0.03,0.1,70m,\n"
      "big,arm64,4,16Gi,58,,,0.2,,,2",
      "c");
  ASSERT_TRUE(catalogue) << catalogue.error().message();
  ASSERT_EQ(catalogue->types.size(), 2u);
  EXPECT_EQ(catalogue->types[0].offers.size(), 4u);
  EXPECT_EQ(catalogue->types[0].Allocatable().ToString(), "cpu=1930m memory=8Gi pods=29");
  EXPECT_EQ(catalogue->types[1].Allocatable().ToString(), "cpu=4 example.com/fpga=2 memory=16Gi pods=58");
  ASSERT_EQ(catalogue->types[1].offers.size(), 1u);
  EXPECT_EQ(catalogue->types[1].offers[0].zone, "");
}

TEST(CatalogueFile, CsvOfInstanceTypes) {
  const auto catalogue = ReadCatalogue(
      "type,arch,vcpu,memory_mib,alloc_cpu,alloc_memory,pods,gpu,gpu_name,local_nvme_gb,on_demand_usd_per_hour\n"
      "g4dn.xlarge,amd64,4,16384,3920m,14162Mi,29,1,t4,125,0.526\n",
      "c");
  ASSERT_TRUE(catalogue) << catalogue.error().message();
  EXPECT_EQ(catalogue->types[0].Allocatable().ToString(), "cpu=3920m memory=14162Mi nvidia.com/gpu=1 pods=29");
}

TEST(CatalogueFile, YamlErrorsSayWhere) {
  const std::string type = "types:\n- name: a\n  resources: {cpu: 1, memory: 1Gi}\n";
  EXPECT_EQ(ErrorOf("source: x\n"), "c:1:1: types: this field is required");
  EXPECT_EQ(ErrorOf("types: []\n"), "c:1:8: types: a catalogue needs at least one type");
  EXPECT_EQ(ErrorOf(type), "c:2:3: types[0].price: this field is required");
  EXPECT_TRUE(ErrorOf(type + "  price: 1\n  slot: 3\n").starts_with("c:5:3: types[0].slot: unknown field"));
  EXPECT_TRUE(ErrorOf(type + "  price: -1\n").starts_with("c:4:10: types[0].price: "));
  EXPECT_TRUE(ErrorOf(type + "  price: 1\n  slots: 0\n").starts_with("c:5:10: types[0].slots: expected"));
  EXPECT_EQ(ErrorOf(type + "  price: 1\n  reserved: {cpu: 1}\n  allocatable: {cpu: 1}\n"),
            "c:5:13: types[0].reserved: give reserved or allocatable, not both");
  EXPECT_EQ(ErrorOf(type + "  price: 1\n  reserved: {cpu: 2}\n"),
            "c:2:3: types[0]: machine type a: cpu: nothing is left after what is reserved");
  EXPECT_EQ(ErrorOf(type + "  price: 1\n- name: a\n  resources: {cpu: 1, memory: 1Gi}\n  price: 1\n"),
            "c:5:3: types[1]: machine type a: it is listed twice");
}

TEST(CatalogueFile, CsvErrorsSayWhere) {
  EXPECT_EQ(ErrorOf("name,price\na,1\n"), "c:1:1: there is no column cpu");
  EXPECT_TRUE(ErrorOf("name,cpus,price\n").starts_with("c:1:6: unknown column \"cpus\": use one of name, arch"));
  EXPECT_EQ(ErrorOf("name,cpu,vcpu,price\n"), "c:1:10: there are two columns for \"vcpu\"");
  EXPECT_EQ(ErrorOf("name,cpu,memory,price\n"), "c: a catalogue needs at least one type");
  EXPECT_EQ(ErrorOf("name,cpu,memory,price\na,1,1Gi\n"), "c:2:1: 3 cells, but the first line has 4");
  EXPECT_EQ(ErrorOf("name,cpu,memory,price\na,1,1Gi,\n"), "c:2:1: price: this field is required");
  EXPECT_EQ(ErrorOf("name,cpu,memory,price\n,1,1Gi,1\n"), "c:2:1: name: this field is required");
  EXPECT_TRUE(ErrorOf("name,cpu,memory,price\na,1x,1Gi,1\n").starts_with("c:2:3: cpu: quantity \"1x\""));
  EXPECT_EQ(ErrorOf("name,cpu,memory,price\na,-1,1Gi,1\n"),
            "c:2:3: cpu: -1 is negative; an amount of a resource is zero or more");
  EXPECT_EQ(ErrorOf("name,cpu,memory,price\n\"a,1,1Gi,1\n"), "c:2:1: a quote is not closed");
  EXPECT_EQ(ErrorOf("name,cpu,memory,price\n\"a\"b,1,1Gi,1\n"), "c:2:1: text follows a closing quote");
  EXPECT_TRUE(ErrorOf("name,cpu,memory,price\na,1,1Gi,1\na,2,1Gi,1\n").ends_with("zones, capacity type and price"));
  EXPECT_TRUE(ErrorOf("name,cpu,memory,price\na,1,1Gi,1\na,1,1Gi,2\n").contains("has two prices for on-demand"));
  EXPECT_TRUE(
      ErrorOf("name,cpu,memory,price,alloc_cpu\na,1,1Gi,1,2\n").ends_with("more cpu is allocatable than there is"));
}

// What is wrong, without where.
std::string FaultOf(std::string_view text) {
  const std::string error = ErrorOf(text);
  const size_t machine = error.find("machine type");
  return error.substr(machine != std::string::npos ? machine : error.rfind(": ") + 2);
}

TEST(CatalogueFile, BothFormsNameAFaultInTheSameWords) {
  struct Row {
    std::string_view yaml;  // of a type, besides its name
    std::string_view csv_head;
    std::string_view csv;
    std::string_view says;
  };
  for (const Row& row :
       std::vector<Row>{{"resources: {cpu: 1, memory: 1Gi}", "price", "", "this field is required"},
                        {"resources: {cpu: 1, memory: 1Gi}, price: 1, slots: 0", "price,slots", "1,0",
                         "expected a whole number from 1 to 1000000"},
                        {"resources: {cpu: 1, memory: 1Gi}, price: 1, slots: 2.5", "price,slots", "1,2.5",
                         "expected a whole number from 1 to 1000000"},
                        {"resources: {cpu: 1, memory: 1Gi}, price: 1, allocatable: {cpu: 2}", "price,alloc_cpu", "1,2",
                         "more cpu is allocatable than there is"},
                        {"resources: {cpu: 1, memory: 1Gi}, price: 1, allocatable: {cpu: 1}, reserved: {memory: 1}",
                         "price,alloc_cpu,reserved_memory", "1,1,1", "give reserved or allocatable, not both"},
                        {"resources: {cpu: 1, memory: 1Gi}, price: 1, reserved: {cpu: 1}", "price,reserved_cpu", "1,1",
                         "machine type a: cpu: nothing is left after what is reserved"},
                        {"resources: {cpu: 1, memory: 0}, price: 1", "price", "1", "machine type a: it has no memory"},
                        {"resources: {cpu: 1, memory: 1Gi}, offers: [{price: 1}, {price: 2}]", "price", "1\na,1,1Gi,2",
                         "machine type a: every zone has two prices for on-demand"}}) {
    const bool no_memory = row.says.ends_with("no memory");
    const std::string csv = "name,cpu,memory," + std::string(row.csv_head) + "\na,1," + (no_memory ? "0," : "1Gi,") +
                            std::string(row.csv) + "\n";
    EXPECT_EQ(FaultOf("types:\n- {name: a, " + std::string(row.yaml) + "}\n"), row.says);
    EXPECT_EQ(FaultOf(csv), row.says) << csv;
  }
}

TEST(CatalogueFile, AByteOrderMarkIsNoText) {
  const std::string mark = "\xEF\xBB\xBF";
  const std::string yaml = "types:\n- {name: a, resources: {cpu: 1, memory: 1Gi}, price: 1}\n";
  const std::string csv = "name,cpu,memory,price\na,1,1Gi,1\n";
  EXPECT_EQ(ReadCatalogue(mark + yaml, "c"), ReadCatalogue(yaml, "c"));
  EXPECT_EQ(ReadCatalogue(mark + csv, "c"), ReadCatalogue(csv, "c"));
  EXPECT_EQ(ReadCatalogue(mark + "# prices\n" + csv, "c"), ReadCatalogue(csv, "c"));
}

TEST(CatalogueFile, TheExampleIsRead) {
  std::ifstream in(SourceDir() + "/examples/catalogues/ec2.yaml");
  std::stringstream text;
  text << in.rdbuf();
  const auto catalogue = ReadCatalogue(text.str(), "ec2.yaml");
  ASSERT_TRUE(catalogue) << catalogue.error().message();
  EXPECT_EQ(catalogue->types.size(), 60u);
}

}  // namespace
}  // namespace muster::kube
