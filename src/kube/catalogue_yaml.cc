#include <algorithm>
#include <string>
#include <utility>

#include "kube/catalogue_file.h"
#include "model/text_reader.h"
#include "model/yaml_reader.h"

namespace muster::kube {
namespace {

using model::TextReader;
using planner::MachineType;
using planner::Offer;

constexpr int64_t kMostDevices = 1024;  // of one machine

// What a type or an offer says of its price; one offer for every zone, or for none in particular.
void ReadOffers(TextReader& reader, const std::vector<std::string>& zones_of_file, std::vector<Offer>& offers) {
  Offer offer;
  std::vector<std::string> zones = zones_of_file;
  reader.Field("zones").Read(zones);
  reader.Field("capacityType").Read(offer.capacity, model::ParseCapacityType);
  TextReader price = reader.Field("price");
  price.Require().Read(offer.price, model::ParseMoney);
  reader.Field("interruptionProbability").Read(offer.interruption, model::ParseProbability);
  if (zones.empty()) zones.emplace_back();
  for (const std::string& zone : zones) {
    offer.zone = zone;
    offers.push_back(offer);
  }
}

MachineType ReadType(TextReader& reader, const std::vector<std::string>& zones) {
  MachineType type;
  reader.Field("name").Require().Read(type.name);
  reader.Field("arch").Read(type.arch);
  reader.Field("os").Read(type.os);
  reader.Field("resources").Require().Read(type.capacity);
  TextReader slots = reader.Field("slots");
  int64_t pods = 0;
  slots.Read(pods);
  if (slots.present() && (pods < 1 || pods > 1'000'000)) slots.Fail("expected a whole number from 1 to 1000000");
  if (slots.present() && slots.ok()) type.capacity.Set(planner::kPodsResource, pods * 1000);
  const int64_t devices = type.capacity.Get("nvidia.com/gpu") / 1000;
  type.devices.assign(static_cast<size_t>(std::min<int64_t>(devices, kMostDevices)), 1000);
  TextReader reserved = reader.Field("reserved");
  TextReader allocatable = reader.Field("allocatable");
  if (reserved.present() && allocatable.present()) reserved.Fail("give reserved or allocatable, not both");
  reserved.Read(type.reserved);
  if (allocatable.present()) {
    model::Resources left;
    allocatable.Read(left);
    for (const auto& [name, milli] : type.capacity.entries()) {
      const int64_t usable = left.Get(name);
      // What the list leaves out is usable as a whole.
      if (usable > 0 && usable < milli) type.reserved.Set(name, milli - usable);
    }
  }
  reader.Field("labels").Read(type.labels);
  TextReader offers = reader.Field("offers");
  if (offers.present()) {
    for (TextReader& item : offers.List()) {
      ReadOffers(item, zones, type.offers);
      item.RefuseUnknown();
    }
  } else {
    ReadOffers(reader, zones, type.offers);
  }
  reader.RefuseUnknown();
  return type;
}

}  // namespace

Result<planner::Catalogue> ReadCatalogueYaml(std::string_view text, std::string_view source) {
  MUSTER_ASSIGN_OR_RETURN(const model::TextValue value, model::ReadYamlDocument(text, source));
  model::TextErrors errors{std::string(source)};
  TextReader root(errors, value);
  planner::Catalogue catalogue;
  catalogue.source = source;
  root.Field("source").Read(catalogue.source);
  std::vector<std::string> zones;
  root.Field("zones").Read(zones);
  for (TextReader& item : root.Field("types").Require().List()) {
    catalogue.types.push_back(ReadType(item, zones));
    if (!errors.ok()) return std::unexpected(errors.status());
    // Of this type alone: the first that is wrong is named with its line.
    const Status status = CheckStructure(planner::Catalogue{.types = {catalogue.types.back()}});
    if (!status.ok()) item.Fail(status.message());
  }
  root.RefuseUnknown();
  if (!errors.ok()) return std::unexpected(errors.status());
  if (catalogue.types.empty()) root.Fail("types: a catalogue needs at least one");
  if (const Status status = CheckStructure(catalogue); !status.ok()) root.Fail(status.message());
  if (!errors.ok()) return std::unexpected(errors.status());
  return catalogue;
}

}  // namespace muster::kube
