// Dumps as text, for tests: objects in JSON, with what they have in common filled in.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "kube/dump_reader.h"

namespace muster::kube {

// Hands a text on in pieces of `piece` bytes.
inline ReadBytes BytesOf(std::string text, size_t piece = 1u << 16) {
  return [text = std::move(text), piece, at = size_t{0}](std::span<char> buffer) mutable -> Result<size_t> {
    const size_t count = std::min({buffer.size(), piece, text.size() - at});
    std::memcpy(buffer.data(), text.data() + at, count);
    at += count;
    return count;
  };
}

inline std::string ListOf(const std::vector<std::string>& items) {
  return fmt::format(R"({{"apiVersion":"v1","items":[{}],"kind":"List"}})", fmt::join(items, ",\n"));
}

inline Result<Dump> ReadDumpText(std::string text) {
  DumpReader reader;
  if (Status status = reader.Read(BytesOf(std::move(text)), "dump.json"); !status.ok()) return std::unexpected(status);
  return reader.Finish();
}
inline Result<Dump> ReadObjects(const std::vector<std::string>& items) { return ReadDumpText(ListOf(items)); }

// A node of 4 cpu, 16Gi and 110 slots; `labels` and `spec` are more fields, such as R"("a":"b")".
inline std::string NodeText(std::string_view name, std::string_view labels = "", std::string_view spec = "",
                            std::string_view type = "m5.xlarge", std::string_view zone = "a") {
  return fmt::format(
      R"({{"kind":"Node","metadata":{{"name":"{0}","labels":{{"kubernetes.io/hostname":"{0}","kubernetes.io/arch":"amd64",)"
      R"("kubernetes.io/os":"linux","node.kubernetes.io/instance-type":"{3}","topology.kubernetes.io/zone":"{4}"{5}{1}}}}},)"
      R"("spec":{{{2}}},"status":{{"allocatable":{{"cpu":"4","memory":"16Gi","pods":"110"}}}}}})",
      name, labels, spec, type, zone, labels.empty() ? "" : ",");
}

struct PodText {
  std::string_view name = "web-1";
  std::string_view name_space = "shop";
  std::string_view node;                      // empty: pending
  std::string_view owner = "ReplicaSet/web";  // empty: none
  std::string_view requests = R"("cpu":"1","memory":"1Gi")";
  std::string_view labels = R"("app":"web")";
  std::string_view metadata;  // more fields, with a comma before each
  std::string_view spec;      // the same
  std::string_view status;

  std::string Text() const {
    const size_t slash = owner.find('/');
    const std::string owners =
        owner.empty() ? ""
                      : fmt::format(R"(,"ownerReferences":[{{"controller":true,"kind":"{}","name":"{}"}}])",
                                    owner.substr(0, slash), owner.substr(slash + 1));
    const std::string bound = node.empty() ? "" : fmt::format(R"(,"nodeName":"{}")", node);
    return fmt::format(
        R"({{"kind":"Pod","metadata":{{"name":"{}","namespace":"{}","labels":{{{}}}{}{}}},"spec":{{"containers":[{{"name":)"
        R"("main","resources":{{"requests":{{{}}}}}}}]{}{}}},"status":{{"phase":"{}"{}}}}})",
        name, name_space, labels, owners, metadata, requests, bound, spec, node.empty() ? "Pending" : "Running",
        status);
  }
};

}  // namespace muster::kube
