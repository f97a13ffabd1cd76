#include "runtime/podman_for_test.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "host/system_clock.h"
#include "host/text_file.h"
#include "runtime/docker_api.h"

namespace muster::runtime {

namespace fs = std::filesystem;

Result<std::unique_ptr<Podman>> Podman::Start() {
  for (const char* program : {"/usr/bin/podman", "/usr/sbin/runc", "/usr/bin/busybox"}) {
    if (!fs::exists(program))
      return Error(Code::kNotFound, fmt::format("{} is not installed; ./dev test installs it", program));
  }
  std::unique_ptr<Podman> podman(new Podman());
  if (Status status = podman->Prepare(); !status.ok()) return std::unexpected(std::move(status));
  return podman;
}

std::string Podman::Command() const {
  return fmt::format(
      "CONTAINERS_CONF={0}/containers.conf CONTAINERS_STORAGE_CONF={0}/storage.conf podman --root {0}/root --runroot "
      "{0}/run "
      "--network-config-dir {0}/networks --storage-driver vfs --cgroup-manager cgroupfs --runtime /usr/sbin/runc "
      "--events-backend file",
      dir_.path());
}

Status Podman::Run(const std::string& arguments) {
  const std::string output = dir_.File("output");
  const std::string line = fmt::format("cd {}; {} {} >{} 2>&1 </dev/null", dir_.path(), Command(), arguments, output);
  if (std::system(line.c_str()) == 0) return {};  // NOLINT(concurrency-mt-unsafe): one thread
  const auto said = host::ReadTextFile(output);
  return {Code::kInternal, fmt::format("podman {}: {}", arguments, said ? *said : "no output")};
}

Status Podman::Prepare() {
  std::ofstream(dir_.File("containers.conf"))
      << "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\nlog_driver = "
         "\"k8s-file\"\n[engine]\ncgroup_manager = \"cgroupfs\"\n";
  std::ofstream(dir_.File("storage.conf"))
      << fmt::format("[storage]\ndriver = \"vfs\"\nrunroot = \"{0}/run\"\ngraphroot = \"{0}/root\"\n", dir_.path());
  const fs::path image = dir_.File("image");
  fs::create_directories(image / "bin");
  fs::create_directories(image / "tmp");
  fs::copy_file("/usr/bin/busybox", image / "bin" / "busybox");
  for (const char* name :
       {"sh", "sleep", "echo", "cat", "env", "ls", "wget", "nc", "dd", "touch", "id", "true", "false"}) {
    fs::create_symlink("busybox", image / "bin" / name);
  }
  fs::permissions(image / "tmp", fs::perms::all);
  // As an image may have it that wants to be root by another name.
  fs::create_directories(image / "etc");
  std::ofstream(image / "etc" / "passwd") << "toor:x:0:0::/:/bin/sh\n";
  const std::string tar = fmt::format("tar -C {} -cf {} .", image.string(), dir_.File("image.tar"));
  if (std::system(tar.c_str()) != 0) return {Code::kInternal, "tar failed"};  // NOLINT(concurrency-mt-unsafe)
  MUSTER_RETURN_IF_ERROR(Run(fmt::format("import {} {}", dir_.File("image.tar"), kImage)));
  socket_ = dir_.File("podman.sock");
  return StartService();
}

Status Podman::AddImage(const std::string& name, const std::string& change) {
  return Run(fmt::format("import --change '{}' {} {}", change, dir_.File("image.tar"), name));
}

Status Podman::StartService() {
  fs::remove(socket_);
  const std::string line = fmt::format("exec env {} system service --time 0 unix://{}", Command(), socket_);
  service_ = fork();
  if (service_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);               // however this test ends
    if (chdir(dir_.path().c_str()) != 0) _exit(1);  // what watches over containers writes files where it was started
    if (freopen(dir_.File("service.log").c_str(), "a", stderr) == nullptr) _exit(1);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    _exit(127);
  }
  const DockerApi api(socket_);
  const host::SystemClock clock;
  for (const MonoTime end = clock.Read().mono + 60s; clock.Read().mono < end; std::this_thread::yield()) {
    if (const auto reply = api.Get("/_ping", 5s); reply && reply->status == 200) return {};
    if (waitpid(service_, nullptr, WNOHANG) != 0) break;
  }
  const auto said = host::ReadTextFile(dir_.File("service.log"));
  return {Code::kUnavailable, fmt::format("podman's service does not come up: {}", said ? *said : "no output")};
}

void Podman::StopService() {
  if (service_ <= 0) return;
  kill(service_, SIGTERM);
  waitpid(service_, nullptr, 0);
  service_ = 0;
}

Podman::~Podman() {
  static_cast<void>(Run("rm --all --force --time 0"));
  static_cast<void>(Run("network prune --force"));
  StopService();
  // Storage of containers has files that only its own command may remove.
  static_cast<void>(Run("system reset --force"));
}

}  // namespace muster::runtime
