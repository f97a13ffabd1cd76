// DumpReader: builds a Dump from the objects of one or more files.
//
//   DumpReader reader;
//   for (each file) MUSTER_RETURN_IF_ERROR(reader.Read(bytes, name));
//   Result<Dump> dump = reader.Finish();
//
// Memory: one object, and what the Dump holds; pods that agree in all that matters share a kind.
// Thread-safety: none.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "kube/dump.h"
#include "kube/item_stream.h"

namespace muster::kube {

class DumpReader {
 public:
  DumpReader();
  ~DumpReader();
  DumpReader(const DumpReader&) = delete;
  DumpReader& operator=(const DumpReader&) = delete;

  // One file. INVALID_ARGUMENT with file, line, column and path when the text is bad or an object makes no sense.
  Status Read(const ReadBytes& bytes, std::string_view source, const std::function<void(uint64_t)>& read_so_far = {});
  // What all files said, with references between objects resolved. INVALID_ARGUMENT when an object was given twice, a
  // pod is on an unknown node, or there is neither a node nor a pod. The reader is empty afterwards.
  Result<Dump> Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::kube
