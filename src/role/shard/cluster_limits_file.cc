#include "role/shard/cluster_limits_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <memory>
#include <utility>

#include "base/log.h"
#include "host/text_file.h"
#include "model/text_reader.h"

namespace muster::shard {
namespace {

// What tells one content of the file from the next without reading it.
std::string StampOf(const std::string& file) {
  struct stat found = {};
  if (::stat(file.c_str(), &found) != 0) return "none";
  return fmt::format("{}.{}/{}/{}", found.st_mtim.tv_sec, found.st_mtim.tv_nsec, found.st_ino, found.st_size);
}

contract::Ceiling ReadCeiling(model::TextReader& reader) {
  contract::Ceiling ceiling;
  if (model::TextReader field = reader.Field("highestPriority"); field.present()) {
    field.Read(ceiling.highest_priority.emplace());
  }
  if (model::TextReader field = reader.Field("mostMachines"); field.present()) {
    field.Read(ceiling.most_machines.emplace());
    if (*ceiling.most_machines < 0) field.Fail("must not be negative");
  }
  if (model::TextReader field = reader.Field("mostPerHour"); field.present()) {
    field.Read(ceiling.most_per_hour.emplace(), model::ParseMoney);
  }
  reader.RefuseUnknown();
  if (ceiling == contract::Ceiling{} && reader.ok()) {
    reader.Fail("limits nothing; give highestPriority, mostMachines or mostPerHour, or leave the cluster out");
  }
  return ceiling;
}

}  // namespace

Result<contract::Ceilings> ReadClusterLimits(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const model::TextValue file, host::ReadYamlFile(path));
  model::TextErrors errors(host::SourceName(path));
  model::TextReader root(errors, file);
  contract::Ceilings ceilings;
  for (auto& [cluster, reader] : root.Field("clusters").Require().Entries()) {
    if (cluster.empty()) reader.Fail("name the cluster");
    ceilings.insert_or_assign(cluster, ReadCeiling(reader));
  }
  root.RefuseUnknown();
  if (!errors.ok()) return std::unexpected(errors.status());
  return ceilings;
}

ClusterLimitsFile::ClusterLimitsFile(std::string path, Changed changed, Duration look_every)
    : path_(std::move(path)), changed_(std::move(changed)), look_every_(look_every) {}

Result<std::unique_ptr<ClusterLimitsFile>> ClusterLimitsFile::Open(std::string path, Changed changed,
                                                                   Duration look_every) {
  std::unique_ptr<ClusterLimitsFile> file(new ClusterLimitsFile(std::move(path), std::move(changed), look_every));
  file->stamp_ = StampOf(file->path_);  // before reading: a change meanwhile is seen by the next look
  MUSTER_ASSIGN_OR_RETURN(file->first_, ReadClusterLimits(file->path_));
  return file;
}

void ClusterLimitsFile::Watch() {
  watcher_ = std::jthread([this](const std::stop_token& stop) {
    std::unique_lock lock(mu_);
    while (!stop.stop_requested()) {
      wakes_.wait_for(lock, stop, look_every_, [] { return false; });
      if (!stop.stop_requested()) Look();
    }
  });
}

void ClusterLimitsFile::Look() {
  std::string stamp = StampOf(path_);
  if (stamp == stamp_) return;
  stamp_ = std::move(stamp);
  auto ceilings = ReadClusterLimits(path_);
  if (!ceilings) {
    log::Warn("cluster limits not fit for use, the last ones stay", {{"reason", ceilings.error().message()}});
    return;
  }
  log::Info("cluster limits read again", {{"file", path_}, {"clusters", ceilings->size()}});
  changed_(*std::move(ceilings));
}

}  // namespace muster::shard
