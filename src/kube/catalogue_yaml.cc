#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kube/catalogue_file.h"
#include "kube/catalogue_type.h"
#include "model/text_reader.h"
#include "model/yaml_reader.h"

namespace muster::kube {
namespace {

using model::TextReader;
using planner::MachineType;
using planner::Offer;

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
  std::string number;
  slots.Read(number);
  if (slots.present() && slots.ok()) {
    if (const Status status = SetSlots(number, type); !status.ok()) slots.Fail(status.message());
  }
  SetDevices(type);
  TextReader reserved = reader.Field("reserved");
  TextReader allocatable = reader.Field("allocatable");
  if (reserved.present() && allocatable.present()) reserved.Fail(kReservedAndAllocatable);
  reserved.Read(type.reserved);
  if (allocatable.present()) {
    model::Resources left;
    allocatable.Read(left);
    // What the list leaves out is usable as a whole.
    for (const auto& [name, milli] : left.entries()) {
      const Status status = SetAllocatable(name, milli, type);
      if (!status.ok()) allocatable.Fail(status.message());
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
  std::set<std::string> names;
  for (TextReader& item : root.Field("types").Require().List()) {
    catalogue.types.push_back(ReadType(item, zones));
    if (!errors.ok()) return std::unexpected(errors.status());
    // Of this type alone: the first that is wrong is named with its line.
    const planner::MachineType& type = catalogue.types.back();
    const Status status = CheckStructure(planner::Catalogue{.types = {type}});
    if (!status.ok()) item.Fail(status.message());
    if (!names.insert(type.name).second) item.Fail(fmt::format("machine type {}: it is listed twice", type.name));
  }
  root.RefuseUnknown();
  if (!errors.ok()) return std::unexpected(errors.status());
  if (catalogue.types.empty()) root.Field("types").Fail(kNoTypes);
  if (!errors.ok()) return std::unexpected(errors.status());
  return catalogue;
}

}  // namespace muster::kube
