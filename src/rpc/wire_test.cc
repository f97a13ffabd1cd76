// docs/wire.md and the compiled .proto files say the same: every row of the page is rendered from a descriptor, and
// every descriptor has its row.
#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/source_dir_for_test.h"
#include "rpc/identity.h"

namespace muster::rpc {
namespace {

namespace pb = google::protobuf;

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Rows by package, each as it stands between the outer bars.
std::string Descriptors() { return BuildDir() + "/proto/rpc_test.descriptors"; }

using Rows = std::map<std::string, std::multiset<std::string>>;

Rows ReadPage(const std::string& text) {
  Rows rows;
  std::string package;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## ")) {
      const size_t begin = line.find('`');
      package = begin == std::string::npos ? "" : line.substr(begin + 1, line.rfind('`') - begin - 1);
    } else if (line.starts_with("|:--")) {
      package.clear();  // a table for people only
    } else if (line.starts_with("### ")) {
      package = "bigfleet.v1alpha1";  // the one package in several files, each under its own heading
    }
    const bool head = line.starts_with("| File |") || line.starts_with("| Message |") || line.starts_with("| Enum |") ||
                      line.starts_with("| Service ") || line.starts_with("|---") || line.starts_with("| case |");
    if (package.empty() || head || !line.starts_with("| ") || !line.ends_with(" |")) continue;
    rows[package].insert(line.substr(2, line.size() - 4));
  }
  return rows;
}

// A type's name as the page writes it in the section of `package`.
std::string NameIn(const std::string& package, const std::string& full_name) {
  return full_name.starts_with(package + ".") ? full_name.substr(package.size() + 1) : full_name;
}

std::string TypeOf(const std::string& package, const pb::FieldDescriptor& field) {
  if (field.message_type() != nullptr) return NameIn(package, field.message_type()->full_name());
  if (field.enum_type() != nullptr) return NameIn(package, field.enum_type()->full_name());
  return field.type_name();
}

std::string FieldText(const std::string& package, const pb::FieldDescriptor& field) {
  std::string type;
  if (field.is_map()) {
    const pb::Descriptor& entry = *field.message_type();
    type = fmt::format("map<{},{}>", TypeOf(package, *entry.map_key()), TypeOf(package, *entry.map_value()));
  } else {
    type = (field.is_repeated() ? "rep " : field.has_optional_keyword() ? "optional " : "") + TypeOf(package, field);
  }
  if (field.has_json_name() && field.json_name() != field.camelcase_name() && field.json_name() != field.name()) {
    type += " json_name " + field.json_name();
  }
  return fmt::format("{} {} {}", field.number(), field.name(), type);
}

std::string MessageRow(const std::string& package, const pb::Descriptor& message) {
  std::map<int, std::string> parts;
  for (int i = 0; i < message.field_count(); ++i) {
    const pb::FieldDescriptor& field = *message.field(i);
    if (field.real_containing_oneof() == nullptr) parts[field.number()] = FieldText(package, field);
  }
  for (int i = 0; i < message.real_oneof_decl_count(); ++i) {
    const pb::OneofDescriptor& oneof = *message.oneof_decl(i);
    std::vector<std::string> fields;
    for (int f = 0; f < oneof.field_count(); ++f) fields.push_back(FieldText(package, *oneof.field(f)));
    parts[oneof.field(0)->number()] = fmt::format("oneof {} {{{}}}", oneof.name(), fmt::join(fields, "; "));
  }
  for (int i = 0; i < message.reserved_range_count(); ++i) {
    const auto& range = *message.reserved_range(i);
    for (int number = range.start; number < range.end; ++number) parts[number] = fmt::format("reserved {}", number);
  }
  std::vector<std::string> texts;
  for (const auto& [number, text] : parts) texts.push_back(text);
  const std::string fields = texts.empty() ? "(empty)" : fmt::format("{}", fmt::join(texts, "; "));
  return fmt::format("{} | {}", NameIn(package, message.full_name()), fields);
}

std::string EnumRow(const std::string& package, const pb::EnumDescriptor& type) {
  std::vector<std::string> values;
  for (int i = 0; i < type.value_count(); ++i) {
    values.push_back(fmt::format("{} {}", type.value(i)->number(), type.value(i)->name()));
  }
  return fmt::format("{} | {}", NameIn(package, type.full_name()), fmt::join(values, ", "));
}

std::string MethodRow(const std::string& package, const pb::MethodDescriptor& method) {
  const char* kinds[2][2] = {{"unary", "server-stream"}, {"client-stream", "bidi"}};
  return fmt::format("{}.{} | {} -> {} | {}", method.service()->name(), method.name(),
                     NameIn(package, method.input_type()->full_name()),
                     NameIn(package, method.output_type()->full_name()),
                     kinds[method.client_streaming() ? 1 : 0][method.server_streaming() ? 1 : 0]);
}

void AddMessage(const std::string& package, const pb::Descriptor& message, std::multiset<std::string>& rows) {
  if (message.options().map_entry()) return;
  rows.insert(MessageRow(package, message));
  for (int i = 0; i < message.enum_type_count(); ++i) rows.insert(EnumRow(package, *message.enum_type(i)));
  for (int i = 0; i < message.nested_type_count(); ++i) AddMessage(package, *message.nested_type(i), rows);
}

void AddFile(const pb::FileDescriptor& file, Rows& rows) {
  const std::string& package = file.package();
  std::multiset<std::string>& into = rows[package];
  std::vector<std::string> imports;
  for (int i = 0; i < file.dependency_count(); ++i) imports.push_back(file.dependency(i)->name());
  into.insert(
      fmt::format("{} | {}", file.name(), imports.empty() ? "(none)" : fmt::to_string(fmt::join(imports, ", "))));
  for (int i = 0; i < file.message_type_count(); ++i) AddMessage(package, *file.message_type(i), into);
  for (int i = 0; i < file.enum_type_count(); ++i) into.insert(EnumRow(package, *file.enum_type(i)));
  for (int s = 0; s < file.service_count(); ++s) {
    for (int m = 0; m < file.service(s)->method_count(); ++m) {
      into.insert(MethodRow(package, *file.service(s)->method(m)));
    }
  }
}

class Wire : public testing::Test {
 protected:
  void SetUp() override {
    pb::FileDescriptorSet set;
    ASSERT_TRUE(set.ParseFromString(ReadAll(Descriptors())));
    for (const pb::FileDescriptorProto& file : set.file()) {
      EXPECT_EQ(file.syntax(), "proto3") << file.name();
      const pb::FileDescriptor* built = pool_.BuildFile(file);
      ASSERT_NE(built, nullptr) << file.name();
      const bool ours = !file.package().starts_with("google.") && !file.package().starts_with("grpc.");
      if (ours) AddFile(*built, compiled_);
    }
    page_ = ReadPage(ReadAll(SourceDir() + "/docs/wire.md"));
  }

  pb::DescriptorPool pool_;
  Rows compiled_;
  Rows page_;
};

TEST_F(Wire, ThePageAndTheProtosSayTheSame) {
  std::set<std::string> packages;
  for (const auto& [package, rows] : compiled_) packages.insert(package);
  for (const auto& [package, rows] : page_) packages.insert(package);
  for (const std::string& package : packages) {
    std::vector<std::string> only_page;
    std::vector<std::string> only_protos;
    std::ranges::set_difference(page_[package], compiled_[package], std::back_inserter(only_page));
    std::ranges::set_difference(compiled_[package], page_[package], std::back_inserter(only_protos));
    for (const std::string& row : only_page) ADD_FAILURE() << package << ", in docs/wire.md only: | " << row << " |";
    for (const std::string& row : only_protos) ADD_FAILURE() << package << ", in proto/ only: | " << row << " |";
  }
}

TEST_F(Wire, EveryMethodOfOursSaysWhoMayCallIt) {
  int methods = 0;
  for (const std::string package : {"bigfleet.v1alpha1", "muster.v1", "persys.control.v1", "persys.agent.v1"}) {
    for (const std::string& row : compiled_[package]) {
      if (!row.contains(" -> ")) continue;
      const size_t dot = row.find('.');
      const std::string path =
          fmt::format("/{}.{}/{}", package, row.substr(0, dot), row.substr(dot + 1, row.find(' ') - dot - 1));
      EXPECT_TRUE(HasRule(path)) << path;
      ++methods;
    }
  }
  EXPECT_EQ(methods, 17 + (12 + 23 + 5 + 2) + 12 + 6);
}

// How much there is, so that a page and protos that shrink together are noticed.
TEST_F(Wire, NothingOfTheProtocolsWasLeftOut) {
  std::map<std::string, std::vector<int>> counts;  // messages, fields, enum values, methods
  for (const auto& [package, rows] : compiled_) counts[package].assign(4, 0);
  const std::string text = ReadAll(Descriptors());
  pb::FileDescriptorSet set;
  ASSERT_TRUE(set.ParseFromString(text));
  for (const pb::FileDescriptorProto& file : set.file()) {
    if (!counts.contains(file.package())) continue;
    std::vector<int>& count = counts[file.package()];
    count[0] += file.message_type_size();
    for (const auto& message : file.message_type()) {
      count[1] += message.field_size();
      for (const auto& type : message.enum_type()) count[2] += type.value_size();
    }
    for (const auto& type : file.enum_type()) count[2] += type.value_size();
    for (const auto& service : file.service()) count[3] += service.method_size();
  }
  EXPECT_EQ(counts["bigfleet.v1alpha1"], (std::vector{63, 210, 66, 17}));
  EXPECT_EQ(counts["mvccpb"], (std::vector{2, 9, 2, 0}));
  EXPECT_EQ(counts["persys.control.v1"][1], 184);
  EXPECT_EQ(counts["persys.agent.v1"][1], 113);
  EXPECT_EQ(counts["persys.control.v1"][3] + counts["persys.agent.v1"][3], 18);
}

// The comparison itself: a page that differs from the protos in one place is caught.
TEST_F(Wire, OneWrongRowIsSeen) {
  const std::string text = ReadAll(SourceDir() + "/docs/wire.md");
  const auto differs = [&](const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return ReadPage(std::string(text).replace(at, from.size(), to)) != compiled_;
  };
  EXPECT_FALSE(differs("7 price_per_hour double", "7 price_per_hour double"));
  EXPECT_TRUE(differs("7 price_per_hour double", "8 price_per_hour double"));
  EXPECT_TRUE(differs("7 price_per_hour double", "7 price_per_hour float"));
  EXPECT_TRUE(differs("1 machines rep Machine", "1 machines Machine"));
  EXPECT_TRUE(differs("reserved 11; ", ""));
  EXPECT_TRUE(differs("OperatorMessage -> ShardMessage | bidi", "OperatorMessage -> ShardMessage | unary"));
  EXPECT_TRUE(differs("4 CAPACITY_TYPE_SPOT", "5 CAPACITY_TYPE_SPOT"));
  EXPECT_TRUE(differs("| MachineRef | 1 id string |\n", ""));
}

}  // namespace
}  // namespace muster::rpc
