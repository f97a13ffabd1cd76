#include "model/compose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <set>
#include <utility>

#include "model/names.h"
#include "model/quantity.h"
#include "model/text_reader.h"
#include "model/yaml_reader.h"

namespace muster::model {
namespace {

using Env = std::map<std::string, std::string>;
using Kind = TextValue::Kind;

constexpr int kMostDepth = 12;
constexpr size_t kLongestName = 63;
constexpr int32_t kLargestPort = 65535;

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsName(std::string_view name) {
  const auto inside = [](char c) { return IsLetter(c) || IsDigit(c) || c == '_' || c == '.' || c == '-'; };
  return !name.empty() && name.size() <= kLongestName && (IsLetter(name[0]) || IsDigit(name[0])) &&
         std::ranges::all_of(name, inside);
}

bool IsVariable(std::string_view name) {
  const auto inside = [](char c) { return IsLetter(c) || IsDigit(c) || c == '_'; };
  return !name.empty() && !IsDigit(name[0]) && std::ranges::all_of(name, inside);
}

// --- variables

// The end of a plain name that begins at `at`.
size_t NameEnd(std::string_view text, size_t at) {
  while (at < text.size() && (IsLetter(text[at]) || text[at] == '_' || IsDigit(text[at]))) ++at;
  return at;
}

Result<std::string> ValueOf(std::string_view name, const Env& env) {
  const auto found = env.find(std::string(name));
  if (found != env.end()) return found->second;
  return InvalidArgument(fmt::format("variable {} has no value; give it in the workload's env", Quoted(name)));
}

// What stands between ${ and }.
Result<std::string> ReadBraced(std::string_view inside, const Env& env) {
  const size_t end = NameEnd(inside, 0);
  const std::string_view name = inside.substr(0, end);
  const std::string_view rest = inside.substr(end);
  if (!IsVariable(name) || (!rest.empty() && !rest.starts_with(":-"))) {
    return InvalidArgument(fmt::format("${{{}}} is not supported; use ${{NAME}} or ${{NAME:-text}}", inside));
  }
  const auto found = env.find(std::string(name));
  if (rest.empty()) return ValueOf(name, env);
  return found != env.end() && !found->second.empty() ? found->second : std::string(rest.substr(2));
}

// `left`: how many bytes it may become; what it became is taken from it.
Result<std::string> Interpolate(std::string_view text, const Env& env, size_t& left) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (out.size() > left) return InvalidArgument("its variables make the file too long");
    const size_t dollar = text.find('$', at);
    out.append(text.substr(at, dollar - at));
    if (dollar == std::string_view::npos) break;
    const std::string_view rest = text.substr(dollar + 1);
    if (rest.starts_with('$')) {
      out += '$';
      at = dollar + 2;
    } else if (rest.starts_with('{')) {
      const size_t close = rest.find('}');
      if (close == std::string_view::npos) return InvalidArgument("${ without }; write $$ for a dollar sign");
      MUSTER_ASSIGN_OR_RETURN(const std::string value, ReadBraced(rest.substr(1, close - 1), env));
      out += value;
      at = dollar + close + 2;
    } else {
      const size_t end = NameEnd(text, dollar + 1);
      const std::string_view name = text.substr(dollar + 1, end - dollar - 1);
      if (!IsVariable(name)) return InvalidArgument("$ without a name; write $$ for a dollar sign");
      MUSTER_ASSIGN_OR_RETURN(const std::string value, ValueOf(name, env));
      out += value;
      at = end;
    }
  }
  if (out.size() > left) return InvalidArgument("its variables make the file too long");
  left -= out.size();
  return out;
}

// In values only: a key says what it is.
Status InterpolateAll(TextValue& value, const std::string& path, const Env& env, size_t& left) {
  if (value.kind == Kind::kScalar && value.scalar.contains('$')) {
    auto text = Interpolate(value.scalar, env, left);
    if (!text) return TextError("compose", value.position, path, text.error().message());
    value.scalar = *std::move(text);
  }
  for (size_t i = 0; i < value.items.size(); ++i) {
    MUSTER_RETURN_IF_ERROR(InterpolateAll(value.items[i], ItemPath(path, i), env, left));
  }
  for (TextField& field : value.fields) {
    MUSTER_RETURN_IF_ERROR(InterpolateAll(field.value, FieldPath(path, field.key), env, left));
  }
  return {};
}

// --- reading

// A value and the reader of it: which kind a value is decides how it is read.
struct Part {
  TextReader reader;
  const TextValue* value = nullptr;  // nullptr: absent

  bool Is(Kind kind) const { return value != nullptr && value->kind == kind; }
  bool absent() const { return value == nullptr || value->kind == Kind::kNull; }
  Part Field(std::string_view key) {
    const TextField* const field = Is(Kind::kMap) ? value->Find(key) : nullptr;
    return {reader.Field(key), field == nullptr ? nullptr : &field->value};
  }
  std::vector<Part> List() {
    std::vector<Part> items;
    if (absent()) return items;
    for (TextReader& item : reader.List()) items.push_back({item, &value->items[items.size()]});
    return items;
  }
  std::vector<std::pair<std::string, Part>> Entries() {
    std::vector<std::pair<std::string, Part>> entries;
    if (absent()) return entries;
    for (auto& [key, entry] : reader.Entries())
      entries.emplace_back(key, Part{entry, &value->fields[entries.size()].value});
    return entries;
  }
  // Refuses every key but these.
  void Only(std::initializer_list<std::string_view> known) {
    for (auto& [key, entry] : Entries()) {
      if (std::ranges::find(known, key) == known.end()) {
        entry.reader.Fail(fmt::format("not supported by the agent; supported here: {}", fmt::join(known, ", ")));
      }
    }
  }
};

template <class T>
T Fail(Part& node, std::string_view what) {
  node.reader.Fail(what);
  return T();
}

// "npm start" or [npm, start].
std::vector<std::string> ReadWords(Part node) {
  std::vector<std::string> words;
  if (!node.Is(Kind::kScalar)) {
    if (!node.absent()) node.reader.Read(words);
    return words;
  }
  node.reader.Read(words, [](std::string_view text) { return SplitWords(text); });
  return words;
}

void AddVariable(Part& node, const std::string& name, const std::string& value, Env& into) {
  if (!IsVariable(name)) return node.reader.Fail(fmt::format("{} is no name of a variable", Quoted(name)));
  if (value.contains('\0')) return node.reader.Fail("a value must not contain NUL");
  if (!into.try_emplace(name, value).second) node.reader.Fail(fmt::format("{} is given twice", Quoted(name)));
}

// {A: b} or [A=b]; a name alone takes its value from the workload's env.
Env ReadEnvironment(Part node, const Env& given) {
  Env env;
  const auto take = [&](Part& from, const std::string& name) {
    auto value = ValueOf(name, given);
    if (!value) return from.reader.Fail(value.error().message());
    AddVariable(from, name, *value, env);
  };
  if (node.Is(Kind::kList)) {
    for (Part& item : node.List()) {
      std::string text;
      item.reader.Read(text);
      const size_t equals = text.find('=');
      if (equals == std::string::npos) {
        take(item, text);
      } else {
        AddVariable(item, text.substr(0, equals), text.substr(equals + 1), env);
      }
    }
    return env;
  }
  for (auto& [name, entry] : node.Entries()) {
    if (entry.absent()) {
      take(entry, name);
      continue;
    }
    std::string value;
    entry.reader.Read(value);
    AddVariable(entry, name, value, env);
  }
  return env;
}

int32_t ReadPortNumber(Part& node, std::string_view text) {
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1 || number > kLargestPort) {
    return Fail<int32_t>(
        node, fmt::format("{} is no port from 1 to {}; ranges are not supported", Quoted(text), kLargestPort));
  }
  return number;
}

void ReadProtocol(Part& node, std::string_view text, Port& port) {
  if (text == "tcp") {
    port.protocol = PortProtocol::kTcp;
  } else if (text == "udp") {
    port.protocol = PortProtocol::kUdp;
  } else {
    node.reader.Fail(fmt::format("unknown protocol {}: use tcp or udp", Quoted(text)));
  }
}

bool IsIpV4(std::string_view text) {
  return !text.empty() && std::ranges::count(text, '.') == 3 &&
         text.find_first_not_of("0123456789.") == std::string_view::npos;
}

// "8080:80", "127.0.0.1:8080:80/udp"
Port ReadShortPort(Part& node) {
  std::string whole;
  node.reader.Read(whole);
  std::string_view text = whole;
  Port port;
  if (const size_t slash = text.find('/'); slash != std::string_view::npos) {
    ReadProtocol(node, text.substr(slash + 1), port);
    text = text.substr(0, slash);
  }
  const size_t last = text.rfind(':');
  if (last == std::string_view::npos) {
    return Fail<Port>(node, fmt::format("{} has no port of the host; write 8080:{}", Quoted(whole), text));
  }
  port.container = ReadPortNumber(node, text.substr(last + 1));
  text = text.substr(0, last);
  if (const size_t before = text.rfind(':'); before != std::string_view::npos) {
    port.host_ip = text.substr(0, before);
    text = text.substr(before + 1);
    if (!IsIpV4(port.host_ip)) node.reader.Fail(fmt::format("{} is no IPv4 address", Quoted(port.host_ip)));
  }
  port.host = ReadPortNumber(node, text);
  return port;
}

Port ReadLongPort(Part& node) {
  node.Only({"target", "published", "protocol", "host_ip"});
  Port port;
  std::string target;
  std::string published;
  std::string protocol = "tcp";
  node.Field("target").reader.Require().Read(target);
  node.Field("published").reader.Require().Read(published);
  node.Field("protocol").reader.Read(protocol);
  node.Field("host_ip").reader.Read(port.host_ip);
  if (!node.reader.ok()) return port;
  port.container = ReadPortNumber(node, target);
  port.host = ReadPortNumber(node, published);
  ReadProtocol(node, protocol, port);
  if (!port.host_ip.empty() && !IsIpV4(port.host_ip)) {
    node.reader.Fail(fmt::format("host_ip: {} is no IPv4 address", Quoted(port.host_ip)));
  }
  return port;
}

bool HasDots(std::string_view path) {
  return path.ends_with("/..") || path.contains("/../") || path.ends_with("/.") || path.contains("/./");
}

void CheckMount(Part& node, const VolumeMount& mount, const ComposeFile& file) {
  if (!node.reader.ok()) return;
  const auto unreadable = [](std::string_view path) {
    return path.contains(':') || path.contains('\0') || HasDots(path);
  };
  if (!mount.target.starts_with('/') || unreadable(mount.target)) {
    return node.reader.Fail(fmt::format("target {} must be an absolute path without .. and :", Quoted(mount.target)));
  }
  if (mount.source.starts_with('/')) {
    if (unreadable(mount.source))
      node.reader.Fail(fmt::format("source {} must not contain .. or :", Quoted(mount.source)));
  } else if (std::ranges::find(file.volumes, mount.source) == file.volumes.end()) {
    node.reader.Fail(
        fmt::format("source {} is no absolute path and no name below the file's volumes", Quoted(mount.source)));
  }
}

// "/etc/app:/app:ro"
VolumeMount ReadShortMount(Part& node) {
  std::string text;
  node.reader.Read(text);
  const size_t first = text.find(':');
  if (first == std::string::npos) {
    return Fail<VolumeMount>(node, fmt::format("{} has no source; write SOURCE:{}", Quoted(text), text));
  }
  VolumeMount mount{.source = text.substr(0, first), .target = text.substr(first + 1)};
  if (const size_t second = mount.target.find(':'); second != std::string::npos) {
    const std::string mode = mount.target.substr(second + 1);
    mount.target.resize(second);
    mount.read_only = mode == "ro";
    if (mode != "ro" && mode != "rw")
      node.reader.Fail(fmt::format("mode {} is not supported; use ro or rw", Quoted(mode)));
  }
  return mount;
}

VolumeMount ReadLongMount(Part& node) {
  node.Only({"type", "source", "target", "read_only"});
  VolumeMount mount;
  std::string type;
  Part kind = node.Field("type");
  kind.reader.Require().Read(type);
  node.Field("source").reader.Require().Read(mount.source);
  node.Field("target").reader.Require().Read(mount.target);
  node.Field("read_only").reader.Read(mount.read_only);
  if (node.reader.ok() && type != "bind" && type != "volume") {
    kind.reader.Fail(fmt::format("{} is not supported; use bind or volume", Quoted(type)));
  } else if (node.reader.ok() && (type == "bind") != mount.source.starts_with('/')) {
    kind.reader.Fail("bind goes with an absolute path, volume with a name");
  }
  return mount;
}

// A size as compose files write it: 512m, 1.5gb, 1024. Units are powers of 1024.
Result<int64_t> ParseBytes(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && (IsDigit(text[end]) || text[end] == '.')) ++end;
  std::string unit(text.substr(end));
  std::ranges::transform(unit, unit.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  static const std::map<std::string, int64_t> kUnits = {{"", 1},           {"b", 1},         {"k", 1LL << 10},
                                                        {"kb", 1LL << 10}, {"m", 1LL << 20}, {"mb", 1LL << 20},
                                                        {"g", 1LL << 30},  {"gb", 1LL << 30}};
  const auto factor = kUnits.find(unit);
  const auto number = ParseQuantity(text.substr(0, end));  // in thousandths
  int64_t thousandths = 0;
  if (factor == kUnits.end() || !number || *number <= 0 ||
      __builtin_mul_overflow(*number, factor->second, &thousandths)) {
    return InvalidArgument(fmt::format("{} is no size such as 512m or 2g", Quoted(text)));
  }
  return thousandths;
}

Result<int64_t> ParseCpus(std::string_view text) {
  const bool plain = !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
  const auto number = ParseQuantity(text);
  if (!plain || !number || *number <= 0)
    return InvalidArgument(fmt::format("{} is no number of processors such as 0.5", Quoted(text)));
  return *number;
}

Resources ReadLimits(Part& service) {
  Resources limits;
  const auto read = [&limits](Part node, std::string_view dimension, auto parse) {
    int64_t amount = 0;
    if (!node.absent()) node.reader.Read(amount, parse);
    if (amount > 0 && limits.Get(dimension) > 0) node.reader.Fail("this limit is given twice");
    if (amount > 0) limits.Set(dimension, amount);
  };
  Part deploy = service.Field("deploy");
  deploy.Only({"resources"});
  Part resources = deploy.Field("resources");
  resources.Only({"limits"});
  Part inside = resources.Field("limits");
  inside.Only({"cpus", "memory"});
  read(inside.Field("cpus"), "cpu", ParseCpus);
  read(inside.Field("memory"), "memory", ParseBytes);
  read(service.Field("cpus"), "cpu", ParseCpus);
  read(service.Field("mem_limit"), "memory", ParseBytes);
  return limits;
}

void ReadRestart(Part node, ComposeService& service) {
  std::string text;
  if (!node.absent()) node.reader.Read(text);
  constexpr std::string_view kOnFailure = "on-failure";
  if (text.empty() || text == "no") {
    service.restart = RestartPolicy::kNever;
  } else if (text == "always" || text == "unless-stopped") {
    service.restart = RestartPolicy::kAlways;
  } else if (text == kOnFailure) {
    service.restart = RestartPolicy::kOnFailure;
  } else if (text.starts_with("on-failure:")) {
    service.restart = RestartPolicy::kOnFailure;
    const std::string_view count = std::string_view(text).substr(kOnFailure.size() + 1);
    const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), service.max_restarts);
    if (error != std::errc() || end != count.data() + count.size() || service.max_restarts < 1) {
      node.reader.Fail(fmt::format("{} is no number of restarts", Quoted(count)));
    }
  } else {
    node.reader.Fail(
        fmt::format("unknown policy {}: use no, always, unless-stopped, on-failure or on-failure:N", Quoted(text)));
  }
}

// [db, cache] or {db: {condition: service_started}}.
std::vector<std::string> ReadDependsOn(Part node) {
  std::vector<std::string> names;
  if (node.Is(Kind::kList)) {
    node.reader.Read(names);
  } else {
    for (auto& [name, entry] : node.Entries()) {
      names.push_back(name);
      if (entry.absent()) continue;
      entry.Only({"condition"});
      std::string condition = "service_started";
      Part given = entry.Field("condition");
      if (!given.absent()) given.reader.Read(condition);
      if (condition != "service_started") {
        given.reader.Fail(fmt::format("{} is not supported; use service_started", Quoted(condition)));
      }
    }
  }
  std::ranges::sort(names);
  if (std::ranges::adjacent_find(names) != names.end()) node.reader.Fail("a service is named twice");
  return names;
}

ComposeService ReadService(const std::string& name, Part node, const ComposeFile& file, const Env& env) {
  ComposeService service{.name = name};
  if (!IsName(name)) {
    return Fail<ComposeService>(
        node, fmt::format("{} is no name of a service; use letters, digits, '.', '_' and '-'", Quoted(name)));
  }
  if (!node.Is(Kind::kMap)) return Fail<ComposeService>(node, "a service is a map with an image");
  node.Only({"image", "command", "entrypoint", "environment", "ports", "volumes", "depends_on", "restart", "deploy",
             "cpus", "mem_limit"});
  node.Field("image").reader.Require().Read(service.image);
  if (node.reader.ok() && service.image.empty()) node.Field("image").reader.Fail("missing");
  service.command = ReadWords(node.Field("command"));
  service.entrypoint = ReadWords(node.Field("entrypoint"));
  service.env = ReadEnvironment(node.Field("environment"), env);
  for (Part& port : node.Field("ports").List()) {
    service.ports.push_back(port.Is(Kind::kMap) ? ReadLongPort(port) : ReadShortPort(port));
  }
  for (Part& mount : node.Field("volumes").List()) {
    service.volumes.push_back(mount.Is(Kind::kMap) ? ReadLongMount(mount) : ReadShortMount(mount));
    CheckMount(mount, service.volumes.back(), file);
  }
  service.depends_on = ReadDependsOn(node.Field("depends_on"));
  ReadRestart(node.Field("restart"), service);
  service.limits = ReadLimits(node);
  return service;
}

std::vector<std::string> ReadVolumes(Part node) {
  std::vector<std::string> names;
  for (auto& [name, entry] : node.Entries()) {
    if (!IsName(name)) entry.reader.Fail(fmt::format("{} is no name of a volume", Quoted(name)));
    const bool plain = entry.absent() || (entry.Is(Kind::kMap) && entry.value->fields.empty());
    if (!plain) entry.reader.Fail("options of a volume are not supported; leave it empty");
    names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// --- the order of the start

// Sets the depths; the error names a service of a circle, or one that does not exist.
void SetDepths(Part& services, std::vector<ComposeService>& all) {
  std::map<std::string, ComposeService*> by_name;
  for (ComposeService& service : all) by_name[service.name] = &service;
  std::set<std::string> known;
  // Each round settles the services whose dependencies are settled.
  for (bool moved = true; moved;) {
    moved = false;
    for (ComposeService& service : all) {
      if (known.contains(service.name)) continue;
      int32_t depth = 0;
      bool settled = true;
      for (const std::string& below : service.depends_on) {
        const auto found = by_name.find(below);
        if (found == by_name.end()) {
          return services.Field(service.name)
              .Field("depends_on")
              .reader.Fail(fmt::format("there is no service {}", Quoted(below)));
        }
        settled = settled && known.contains(below);
        depth = std::max(depth, found->second->depth + 1);
      }
      if (!settled) continue;
      service.depth = depth;
      known.insert(service.name);
      moved = true;
    }
  }
  for (const ComposeService& service : all) {
    if (known.contains(service.name)) continue;
    return services.Field(service.name).Field("depends_on").reader.Fail("services depend on each other in a circle");
  }
}

// Two services of one file cannot have one port of the host.
void CheckPorts(Part& services, const std::vector<ComposeService>& all) {
  std::map<std::pair<int32_t, PortProtocol>, std::string> taken;
  for (const ComposeService& service : all) {
    for (const Port& port : service.ports) {
      const auto [at, is_new] = taken.try_emplace({port.host, port.protocol}, service.name);
      if (is_new) continue;
      services.Field(service.name)
          .Field("ports")
          .reader.Fail(fmt::format("port {} of the host is taken by service {}", port.host, Quoted(at->second)));
    }
  }
}

}  // namespace

Result<std::vector<std::string>> SplitWords(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;  // of a word, which may be empty
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\\' && quote != '\'') {
      if (++i == line.size()) return InvalidArgument("a backslash at the end");
      word += line[i];
      inside = true;
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      inside = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (inside) words.push_back(std::exchange(word, {}));
      inside = false;
    } else {
      word += c;
      inside = true;
    }
  }
  if (quote != 0) return InvalidArgument(fmt::format("a quote {} without its end", quote));
  if (inside) words.push_back(std::move(word));
  return words;
}

Result<ComposeFile> ReadCompose(std::string_view text, const Env& env) {
  MUSTER_ASSIGN_OR_RETURN(TextValue value,
                          ReadYamlDocument(text, "compose", {.max_bytes = kMostComposeBytes, .max_depth = kMostDepth}));
  size_t left = kMostInterpolatedBytes;
  if (Status status = InterpolateAll(value, "", env, left); !status.ok()) return std::unexpected(std::move(status));
  TextErrors errors("compose");
  Part root{TextReader(errors, value), &value};
  root.Only({"version", "services", "volumes"});  // `version` has no meaning any more, and most files have it
  ComposeFile file{.volumes = ReadVolumes(root.Field("volumes"))};
  Part services = root.Field("services");
  services.reader.Require();
  for (auto& [name, entry] : services.Entries()) {
    if (file.services.size() == kMostComposeServices) {
      entry.reader.Fail(fmt::format("more than {} services", kMostComposeServices));
      break;
    }
    file.services.push_back(ReadService(name, entry, file, env));
  }
  if (errors.ok() && file.services.empty()) services.reader.Fail("there is no service");
  if (errors.ok()) SetDepths(services, file.services);
  if (errors.ok()) CheckPorts(services, file.services);
  if (!errors.ok()) return std::unexpected(errors.status());
  std::ranges::sort(file.services, {},
                    [](const ComposeService& s) { return std::pair(s.depth, std::string_view(s.name)); });
  return file;
}

std::vector<Port> PublishedPorts(std::string_view text, const Env& env) {
  std::vector<Port> ports;
  if (!text.contains("ports")) return ports;  // most have none, and the whole file need not be read
  const auto value = ReadYamlDocument(text, "compose", {.max_bytes = kMostComposeBytes, .max_depth = kMostDepth});
  const TextField* const services = value && value->kind == Kind::kMap ? value->Find("services") : nullptr;
  if (services == nullptr || services->value.kind != Kind::kMap) return ports;
  size_t left = kMostInterpolatedBytes;
  for (const TextField& service : services->value.fields) {
    const TextField* const published = service.value.kind == Kind::kMap ? service.value.Find("ports") : nullptr;
    if (published == nullptr) continue;
    for (TextValue item : published->value.items) {
      if (!InterpolateAll(item, "", env, left).ok()) continue;
      TextErrors errors("compose");
      Part part{TextReader(errors, item), &item};
      Port port = item.kind == Kind::kMap ? ReadLongPort(part) : ReadShortPort(part);
      if (errors.ok()) ports.push_back(std::move(port));
    }
  }
  return ports;
}

}  // namespace muster::model
