#include "shim/descendants.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <csignal>
#include <cstdlib>
#include <string>

namespace muster::shim {

void KillDescendants(pid_t group) {
  if (group > 0) kill(-group, SIGKILL);
  const int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;  // a kernel without this file: the group is all there is to find
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t got = 0; (got = read(fd, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  close(fd);
  for (const char* at = text.c_str(); *at != '\0';) {
    char* end = nullptr;
    const long pid = strtol(at, &end, 10);
    if (end == at) break;
    if (pid > 1) kill(static_cast<pid_t>(pid), SIGKILL);
    at = end;
    while (isspace(static_cast<unsigned char>(*at)) != 0) ++at;
  }
}

}  // namespace muster::shim
