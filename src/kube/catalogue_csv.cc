#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kube/catalogue_file.h"
#include "kube/catalogue_type.h"
#include "model/names.h"
#include "model/text_scalars.h"
#include "model/text_value.h"
#include "model/utf8.h"

namespace muster::kube {
namespace {

using planner::MachineType;
using planner::Offer;

// --- Lines and cells, as RFC 4180 has them.

struct Cell {
  std::string text;
  int column = 1;  // in bytes, from 1
};
struct Row {
  int line = 1;
  std::vector<Cell> cells;
};

class CsvLines {
 public:
  CsvLines(std::string_view text, std::string_view source) : rest_(text), source_(source) {}

  // The next line that is not blank; nothing at the end. A quote that never closes is an error.
  Result<std::optional<Row>> Next() {
    while (!rest_.empty()) {
      Row row{.line = line_};
      const char* const begin = rest_.data();
      bool more = true;
      while (more) {
        Cell cell{.column = static_cast<int>(rest_.data() - begin) + 1};
        const Status status = ReadCell(cell.text, more);
        if (!status.ok()) return std::unexpected(status);
        row.cells.push_back(std::move(cell));
      }
      if (row.cells.size() == 1 && row.cells[0].text.empty()) continue;
      if (row.cells[0].text.starts_with('#')) continue;
      return row;
    }
    return std::nullopt;
  }

 private:
  // `more` is set if another cell of the same line follows.
  Status ReadCell(std::string& cell, bool& more) {
    const bool quoted = rest_.starts_with('"');
    const int first_line = line_;
    if (quoted) {
      rest_.remove_prefix(1);
      for (;;) {
        const size_t quote = rest_.find('"');
        if (quote == std::string_view::npos) {
          return model::TextError(source_, {.line = first_line, .column = 1}, "", "a quote is not closed");
        }
        cell += rest_.substr(0, quote);
        rest_.remove_prefix(quote + 1);
        if (!rest_.starts_with('"')) break;
        cell += '"';
        rest_.remove_prefix(1);
      }
      for (const char c : cell) line_ += c == '\n' ? 1 : 0;
    }
    const size_t end = std::min(rest_.find_first_of(",\n"), rest_.size());
    std::string_view tail = rest_.substr(0, end);
    if (tail.ends_with('\r')) tail.remove_suffix(1);
    if (quoted && !tail.empty()) {
      return model::TextError(source_, {.line = line_, .column = 1}, "", "text follows a closing quote");
    }
    cell += tail;
    more = end < rest_.size() && rest_[end] == ',';
    if (!more) ++line_;
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return {};
  }

  std::string_view rest_;
  const std::string_view source_;
  int line_ = 1;
};

// --- Columns.

enum class Column : uint8_t {
  kName,
  kArch,
  kOs,
  kCpu,
  kMemory,
  kMemoryMib,
  kSlots,
  kGpu,
  kAllocatableCpu,
  kAllocatableMemory,
  kReservedCpu,
  kReservedMemory,
  kZones,
  kCapacityType,
  kPrice,
  kInterruption,
  kOther,
};
constexpr auto kColumns = std::to_array<model::NameRow<Column>>({{Column::kName, "name"},
                                                                 {Column::kName, "type"},
                                                                 {Column::kArch, "arch"},
                                                                 {Column::kOs, "os"},
                                                                 {Column::kCpu, "cpu"},
                                                                 {Column::kCpu, "vcpu"},
                                                                 {Column::kMemory, "memory"},
                                                                 {Column::kMemoryMib, "memory_mib"},
                                                                 {Column::kSlots, "slots"},
                                                                 {Column::kSlots, "pods"},
                                                                 {Column::kGpu, "gpu"},
                                                                 {Column::kAllocatableCpu, "alloc_cpu"},
                                                                 {Column::kAllocatableMemory, "alloc_memory"},
                                                                 {Column::kReservedCpu, "reserved_cpu"},
                                                                 {Column::kReservedMemory, "reserved_memory"},
                                                                 {Column::kZones, "zones"},
                                                                 {Column::kCapacityType, "capacity_type"},
                                                                 {Column::kPrice, "price"},
                                                                 {Column::kPrice, "on_demand_usd_per_hour"},
                                                                 {Column::kInterruption, "interruption_probability"},
                                                                 {Column::kOther, "gpu_name"},
                                                                 {Column::kOther, "local_nvme_gb"}});

struct Head {
  std::vector<std::string> names;
  std::vector<Column> columns;
  std::vector<std::string> resources;  // of a column that is a resource, its name
};

// One line of the file, being read.
class TypeRow {
 public:
  TypeRow(const Head& head, const Row& row, std::string_view source) : head_(head), row_(row), source_(source) {}

  Status Read() {
    for (at_ = 0; at_ < row_.cells.size() && status_.ok(); ++at_) {
      if (!row_.cells[at_].text.empty()) Take(row_.cells[at_].text);
    }
    if (type.name.empty()) FailRow("name", kRequiredField);
    for (const auto& [name, allocatable] : allocatable_) {
      at_ = allocatable.at;
      if (!type.reserved.empty()) Fail(kReservedAndAllocatable);
    }
    for (const auto& [name, allocatable] : allocatable_) {
      at_ = allocatable.at;
      if (const Status status = SetAllocatable(name, allocatable.milli, type); !status.ok()) Fail(status.message());
    }
    if (!has_price_) FailRow("price", kRequiredField);
    SetDevices(type);
    if (zones_.empty()) zones_.emplace_back();
    for (const std::string& zone : zones_) {
      offer_.zone = zone;
      type.offers.push_back(offer_);
    }
    return status_;
  }

  MachineType type;

 private:
  void Take(const std::string& text) {
    switch (head_.columns[at_]) {
      case Column::kName: type.name = text; break;
      case Column::kArch: type.arch = text; break;
      case Column::kOs: type.os = text; break;
      case Column::kCpu: return Capacity("cpu", text);
      case Column::kMemory: return Capacity("memory", text);
      case Column::kMemoryMib: return Capacity("memory", text + "Mi");
      case Column::kSlots: return Check(SetSlots(text, type));
      case Column::kGpu: return Capacity("nvidia.com/gpu", text);
      case Column::kAllocatableCpu: return Allocatable("cpu", text);
      case Column::kAllocatableMemory: return Allocatable("memory", text);
      case Column::kReservedCpu: return Amount("cpu", text, type.reserved);
      case Column::kReservedMemory: return Amount("memory", text, type.reserved);
      case Column::kZones: return Zones(text);
      case Column::kCapacityType: return Parsed(model::ParseCapacityType(text), offer_.capacity);
      case Column::kPrice: has_price_ = true; return Parsed(model::ParseMoney(text), offer_.price);
      case Column::kInterruption: return Parsed(model::ParseProbability(text), offer_.interruption);
      case Column::kOther:
        if (!head_.resources[at_].empty()) Capacity(head_.resources[at_], text);
        break;
    }
  }

  void Capacity(std::string_view name, const std::string& text) { Amount(name, text, type.capacity); }

  void Allocatable(const std::string& name, const std::string& text) {
    model::Resources amount;
    Amount(name, text, amount);
    allocatable_[name] = {.milli = amount.Get(name), .at = at_};
  }

  void Amount(std::string_view name, const std::string& text, model::Resources& into) {
    const Status status = into.Parse(name, text);
    std::string_view what = status.message();
    // The path is the column already.
    if (what.starts_with(name) && what.substr(name.size()).starts_with(": ")) what.remove_prefix(name.size() + 2);
    if (!status.ok()) Fail(what);
  }

  void Check(const Status& status) {
    if (!status.ok()) Fail(status.message());
  }

  void Zones(std::string_view text) {
    while (!text.empty()) {
      const size_t end = std::min(text.find_first_of(" ;"), text.size());
      if (end > 0) zones_.emplace_back(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  template <class T>
  void Parsed(const Result<T>& parsed, T& into) {
    if (parsed) {
      into = *parsed;
    } else {
      Fail(parsed.error().message());
    }
  }

  // At the cell that is being read.
  void Fail(std::string_view what) {
    if (!status_.ok()) return;
    status_ = model::TextError(source_, {.line = row_.line, .column = row_.cells[at_].column}, head_.names[at_], what);
  }
  void FailRow(std::string_view column, std::string_view what) {
    if (!status_.ok()) return;
    status_ = model::TextError(source_, {.line = row_.line, .column = 1}, column, what);
  }

  const Head& head_;
  const Row& row_;
  const std::string_view source_;
  size_t at_ = 0;
  Offer offer_;
  bool has_price_ = false;
  std::vector<std::string> zones_;
  struct Usable {
    int64_t milli = 0;
    size_t at = 0;  // its cell
  };
  std::map<std::string, Usable> allocatable_;
  Status status_;
};

Result<Head> ReadHead(const Row& row, std::string_view source) {
  Head head;
  std::vector<bool> seen(kColumns.size());
  for (const Cell& cell : row.cells) {
    const auto fail = [&](std::string_view what) {
      return std::unexpected(model::TextError(source, {.line = row.line, .column = cell.column}, "", what));
    };
    std::string resource;
    Column column = Column::kOther;
    if (const auto known = model::ParseName(kColumns, "column", cell.text)) {
      column = *known;
    } else if (cell.text.contains('/')) {
      resource = cell.text;
    } else {
      return fail(known.error().message() + ", or a resource such as nvidia.com/gpu");
    }
    if (column != Column::kOther && seen[static_cast<size_t>(column)]) {
      return fail(fmt::format("there are two columns for {}", model::Quoted(cell.text)));
    }
    if (column != Column::kOther) seen[static_cast<size_t>(column)] = true;
    head.names.push_back(cell.text);
    head.columns.push_back(column);
    head.resources.push_back(std::move(resource));
  }
  const auto has = [&](Column column) { return bool{seen[static_cast<size_t>(column)]}; };
  std::string_view missing;
  if (!has(Column::kPrice)) missing = "price";
  if (!has(Column::kMemory) && !has(Column::kMemoryMib)) missing = "memory";
  if (!has(Column::kCpu)) missing = "cpu";
  if (!has(Column::kName)) missing = "name";
  if (missing.empty()) return head;
  return std::unexpected(
      model::TextError(source, {.line = row.line, .column = 1}, "", fmt::format("there is no column {}", missing)));
}

// Lines of one type, such as an on-demand and a spot price, are one type with several offers.
Status Merge(planner::Catalogue& catalogue, std::map<std::string, size_t>& known, MachineType type, int line,
             std::string_view source) {
  const auto [at, is_new] = known.emplace(type.name, catalogue.types.size());
  if (is_new) {
    catalogue.types.push_back(std::move(type));
  } else {
    MachineType& first = catalogue.types[at->second];
    std::vector<Offer> offers = first.offers;
    offers.insert(offers.end(), type.offers.begin(), type.offers.end());
    type.offers = first.offers;
    if (!(type == first)) {
      return model::TextError(source, {.line = line, .column = 1}, type.name,
                              "lines of one type differ in more than zones, capacity type and price");
    }
    first.offers = std::move(offers);
  }
  const Status status = CheckStructure(planner::Catalogue{.types = {catalogue.types[at->second]}});
  return status.ok() ? status : model::TextError(source, {.line = line, .column = 1}, "", status.message());
}

}  // namespace

Result<planner::Catalogue> ReadCatalogueCsv(std::string_view text, std::string_view source) {
  text = WithoutByteOrderMark(text);
  if (const size_t bad = model::FindInvalidUtf8(text); bad != std::string_view::npos) {
    const std::string_view before = text.substr(0, bad);
    const model::TextPosition position{.line = static_cast<int>(std::ranges::count(before, '\n')) + 1,
                                       .column = static_cast<int>(bad - (before.rfind('\n') + 1)) + 1};
    return std::unexpected(model::TextError(
        source, position, "",
        fmt::format("byte 0x{:02x} is not UTF-8; save the file as UTF-8", static_cast<uint8_t>(text[bad]))));
  }
  CsvLines lines(text, source);
  MUSTER_ASSIGN_OR_RETURN(const std::optional<Row> first, lines.Next());
  if (!first) return std::unexpected(model::TextError(source, {}, "", "the file is empty"));
  MUSTER_ASSIGN_OR_RETURN(const Head head, ReadHead(*first, source));
  planner::Catalogue catalogue{.source = std::string(source)};
  std::map<std::string, size_t> known;
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(const std::optional<Row> row, lines.Next());
    if (!row) break;
    if (row->cells.size() != head.columns.size()) {
      return std::unexpected(
          model::TextError(source, {.line = row->line, .column = 1}, "",
                           fmt::format("{} cells, but the first line has {}", row->cells.size(), head.columns.size())));
    }
    TypeRow type(head, *row, source);
    Status status = type.Read();
    if (status.ok()) status = Merge(catalogue, known, std::move(type.type), row->line, source);
    if (!status.ok()) return std::unexpected(std::move(status));
  }
  if (catalogue.types.empty()) return std::unexpected(model::TextError(source, {}, "", kNoTypes));
  return catalogue;
}

Result<planner::Catalogue> ReadCatalogue(std::string_view text, std::string_view source) {
  std::string_view line = WithoutByteOrderMark(text);
  // Comments may stand before either.
  while (line.starts_with('#') || line.starts_with('\n')) {
    const size_t end = line.find('\n');
    line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  }
  line = line.substr(0, line.find('\n'));
  const bool is_csv = line.contains(',') && !line.contains(':');
  return is_csv ? ReadCatalogueCsv(text, source) : ReadCatalogueYaml(text, source);
}

}  // namespace muster::kube
