// Server: one life of a role in a process of its own, and where it listens.
#pragma once

#include <cstdlib>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "smoke/process.h"

namespace muster::smoke {

inline std::string ProgramUnderTest() {
  const char* program = std::getenv("MUSTER");
  return program != nullptr ? program : "build/muster";
}

class Server {
 public:
  // Comes back when it listens or is dead.
  explicit Server(std::vector<std::string> command) : process_(std::move(command)) {
    const std::string line = process_.WaitForErrorLine("\"msg\":\"listening\"");
    std::smatch found;
    const std::regex form("\"grpc\":\"[0-9.]+:([0-9]+)\",\"http\":\"([0-9.:]+)\"(,\"control\":\"([0-9.:]+)\")?");
    if (!std::regex_search(line, found, form)) return;
    grpc_ = "127.0.0.1:" + found[1].str();
    http_ = found[2];
    control_ = found[4];
  }
  const std::string& grpc() const { return grpc_; }  // empty: it died before it listened
  const std::string& http() const { return http_; }
  const std::string& control() const { return control_; }  // empty: it has no --control-listen
  Process& process() { return process_; }

 private:
  Process process_;
  std::string grpc_;
  std::string http_;
  std::string control_;
};

}  // namespace muster::smoke
