// ComposeFile: the part of the compose file format that an agent runs; docs/agent.md lists its keys.
//
// The whole file is read before anything is done with it. A key that is not listed, a value that an engine could read
// as something else, or a variable that nobody gave is refused with line, column and the path of the key. A file is
// hostile until then: its size, its depth and the number of its services are bounded.
//
// Value types without behaviour.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/resources.h"
#include "model/workload_template.h"

namespace muster::model {

inline constexpr size_t kMostComposeBytes = 256U << 10;
inline constexpr size_t kMostInterpolatedBytes = 1U << 20;  // of a file's values that have variables, with their texts
inline constexpr size_t kMostComposeServices = 50;

struct ComposeService {
  std::string name;
  std::string image;
  std::vector<std::string> entrypoint;  // empty: that of the image
  std::vector<std::string> command;     // empty: that of the image
  std::map<std::string, std::string> env;
  std::vector<Port> ports;                        // each with a port of the host
  std::vector<VolumeMount> volumes;               // source: an absolute path, or one of ComposeFile::volumes
  std::vector<std::string> depends_on;            // sorted
  RestartPolicy restart = RestartPolicy::kNever;  // of this service alone, by the engine
  int32_t max_restarts = 0;                       // of on-failure; 0: without end
  Resources limits;                               // cpu and memory
  int32_t depth = 0;                              // longest chain of services below it

  bool operator==(const ComposeService&) const = default;
};

struct ComposeFile {
  std::vector<ComposeService> services;  // in the order of their start: by depth, then by name
  std::vector<std::string> volumes;      // named ones, sorted

  bool operator==(const ComposeFile&) const = default;
};

// `env` gives values to the variables of the file: ${NAME}, $NAME, ${NAME:-text}; $$ is a dollar sign. It is not the
// environment of the services, unless one lists a name without a value.
// INVALID_ARGUMENT: "compose:4:5: services.web.build: ...".
Result<ComposeFile> ReadCompose(std::string_view text, const std::map<std::string, std::string>& env);

// The ports of the node that the services publish, for placement: also of a file that only other agents run. What
// cannot be read is left out: an agent refuses it.
std::vector<Port> PublishedPorts(std::string_view text, const std::map<std::string, std::string>& env);

// A command line as words: blanks part them, '...' and "..." keep them together, a backslash takes the next character
// as it is. There is no shell behind it. INVALID_ARGUMENT for a quote without an end.
Result<std::vector<std::string>> SplitWords(std::string_view line);

}  // namespace muster::model
