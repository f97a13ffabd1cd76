#include "model/compose.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace muster::model {
namespace {

constexpr std::string_view kWhole = R"(version: "3.8"
services:
  web:
    image: localhost/web:${TAG}
    command: serve --port "80 81" it\'s
    entrypoint: [/bin/sh, -c]
    environment:
      GREETING: ${GREETING:-good day}
      PRICE: 5$$
      FROM_ENV:
    ports:
      - 8080:80
      - 127.0.0.1:5353:53/udp
      - {target: 443, published: 8443}
    volumes:
      - /etc/app:/app:ro
      - data:/data
      - {type: volume, source: data, target: /again, read_only: true}
    depends_on: {cache: , db: {condition: service_started}}
    restart: on-failure:3
    deploy: {resources: {limits: {cpus: "0.5", memory: 512m}}}
  db:
    image: localhost/db
    environment: [A=b=c, FROM_ENV]
    depends_on: [cache]
    restart: unless-stopped
    mem_limit: 1.5g
    cpus: 2
  cache:
    image: localhost/cache
volumes:
  data:
)";

TEST(Compose, ReadsEveryKeyItKnows) {
  const auto file = ReadCompose(kWhole, {{"TAG", "v2"}, {"FROM_ENV", "given"}, {"GREETING", ""}});
  ASSERT_TRUE(file.has_value()) << file.error().ToString();
  ASSERT_EQ(file->services.size(), 3U);
  const ComposeService web{
      .name = "web",
      .image = "localhost/web:v2",
      .entrypoint = {"/bin/sh", "-c"},
      .command = {"serve", "--port", "80 81", "it's"},
      .env = {{"GREETING", "good day"}, {"PRICE", "5$"}, {"FROM_ENV", "given"}},
      .ports = {{.container = 80, .host = 8080},
                {.container = 53, .host = 5353, .protocol = PortProtocol::kUdp, .host_ip = "127.0.0.1"},
                {.container = 443, .host = 8443}},
      .volumes = {{.source = "/etc/app", .target = "/app", .read_only = true},
                  {.source = "data", .target = "/data"},
                  {.source = "data", .target = "/again", .read_only = true}},
      .depends_on = {"cache", "db"},
      .restart = RestartPolicy::kOnFailure,
      .max_restarts = 3,
      .limits = {{"cpu", 500}, {"memory", int64_t{512} * 1024 * 1024 * 1000}},
      .depth = 2};
  EXPECT_EQ(file->services[0].name, "cache") << "what others depend on comes first";
  EXPECT_EQ(file->services[1].name, "db");
  EXPECT_EQ(file->services[1].env, (std::map<std::string, std::string>{{"A", "b=c"}, {"FROM_ENV", "given"}}));
  EXPECT_EQ(file->services[1].restart, RestartPolicy::kAlways);
  EXPECT_EQ(file->services[1].limits, (Resources{{"cpu", 2000}, {"memory", int64_t{1536} * 1024 * 1024 * 1000}}));
  EXPECT_EQ(file->services[1].depth, 1);
  EXPECT_EQ(file->services[2], web);
  EXPECT_EQ(file->volumes, std::vector<std::string>{"data"});
}

std::string Refusal(const std::string& text) {
  const auto file = ReadCompose(text, {});
  return file ? "read" : file.error().message();
}
// A service with an image and one line more.
std::string Web(const std::string& line) { return "services:\n  web:\n    image: i\n    " + line + "\n"; }

TEST(Compose, RefusesEverythingElseByItsPath) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {Web("build: ."), "compose:4:12: services.web.build: not supported by the agent; supported here: image, "},
      {Web("privileged: true"), "services.web.privileged: not supported"},
      {Web("network_mode: host"), "services.web.network_mode: not supported"},
      {Web("cap_add: [ALL]"), "services.web.cap_add: not supported"},
      {Web("deploy: {replicas: 2}"), "services.web.deploy.replicas: not supported"},
      {Web("deploy: {resources: {limits: {pids: 2}}}"), "services.web.deploy.resources.limits.pids: not supported"},
      {Web("depends_on: {web: {condition: service_healthy}}"), "services.web.depends_on.web.condition: "},
      {Web("depends_on: [web]"), "services.web.depends_on: services depend on each other in a circle"},
      {Web("depends_on: [db]"), "services.web.depends_on: there is no service \"db\""},
      {Web("ports: ['80']"), "services.web.ports[0]: \"80\" has no port of the host"},
      {Web("ports: ['80-90:80']"), "services.web.ports[0]: \"80-90\" is no port"},
      {Web("ports: ['80:80/sctp']"), "services.web.ports[0]: unknown protocol \"sctp\""},
      {Web("ports: ['80:80', '80:81']"), "services.web.ports: port 80 of the host is taken by service \"web\""},
      {Web("ports: [{target: 80, published: 80, mode: host}]"), "services.web.ports[0].mode: not supported"},
      {Web("volumes: [./here:/data]"), "services.web.volumes[0]: source \"./here\" is no absolute path"},
      {Web("volumes: [/a/../b:/data]"), "services.web.volumes[0]: source \"/a/../b\" must not contain"},
      {Web("volumes: [/a:/data:z]"), "services.web.volumes[0]: mode \"z\" is not supported"},
      {Web("volumes: [/data]"), "services.web.volumes[0]: \"/data\" has no source"},
      {Web("volumes: [{type: tmpfs, source: a, target: /b}]"), "services.web.volumes[0].type: \"tmpfs\""},
      {Web("environment: [A B=c]"), "services.web.environment[0]: \"A B\" is no name of a variable"},
      {Web("environment: [A]"), "services.web.environment[0]: variable \"A\" has no value"},
      {Web("command: 'a \"b'"), "services.web.command: a quote \" without its end"},
      {Web("command: run $NAME"), "services.web.command: variable \"NAME\" has no value"},
      {Web("command: run ${NAME:?no}"), "services.web.command: ${NAME:?no} is not supported"},
      {Web("command: 5$"), "services.web.command: $ without a name"},
      {Web("restart: sometimes"), "services.web.restart: unknown policy \"sometimes\""},
      {Web("restart: on-failure:x"), "services.web.restart: \"x\" is no number of restarts"},
      {Web("mem_limit: lots"), "services.web.mem_limit: \"lots\" is no size"},
      {Web("cpus: 500m"), "services.web.cpus: \"500m\" is no number of processors"},
      {"services:\n  web: {command: x}\n", "services.web.image: this field is required"},
      {"services:\n  ../x: {image: x}\n", "is no name of a service"},
      {"services: {}\n", "services: there is no service"},
      {"networks: {}\nservices:\n  a: {image: x}\n", "networks: not supported by the agent; supported here: version"},
      {"services:\n  a: {image: x}\nvolumes: {d: {driver: nfs}}\n", "volumes.d: options of a volume are not supported"},
      {"services: &a\n  a: {image: x}\n", "compose:1:"},
      {"plain text", "compose:1:1: expected a map"},
  };
  for (const auto& [text, words] : cases) {
    const std::string refusal = Refusal(text);
    EXPECT_TRUE(refusal.contains(words)) << text << "\n  " << refusal << "\n  expected: " << words;
  }
}

TEST(Compose, PublishedPortsAreReadFromAnyFile) {
  const std::string text =
      "services:\n  a:\n    build: .\n    ports: [\"${P}:80\", \"127.0.0.1:90:90/udp\", \"70000:1\", \"80\"]\n"
      "  b: {ports: [{target: 1, published: 2, protocol: tcp}]}\n  c: {image: x}\n  d: 5\n";
  EXPECT_EQ(PublishedPorts(text, {{"P", "8080"}}), (std::vector<Port>{{80, 8080, PortProtocol::kTcp, ""},
                                                                      {90, 90, PortProtocol::kUdp, "127.0.0.1"},
                                                                      {1, 2, PortProtocol::kTcp, ""}}));
  EXPECT_EQ(PublishedPorts(text, {}).size(), 2u) << "a variable without a value";
  for (const char* none : {"", "ports", "ports: [\"1:1\"]", "services: {ports: 5}", "services: [ports]",
                           "services:\n  a: {ports: 5}\n", ": ports : ["}) {
    EXPECT_TRUE(PublishedPorts(none, {}).empty()) << none;
  }
}

TEST(Compose, VariablesMakeNoFileWithoutBound) {
  const std::map<std::string, std::string> env = {{"A", std::string(300U << 10, '1')}};
  const auto with = [](int items, const std::string& item) {
    std::string text = "services:\n  a:\n    image: i\n    ports:\n";
    for (int i = 0; i < items; ++i) text += "      - \"" + item + "\"\n";
    return text;
  };
  std::string repeated;
  for (int i = 0; i < 60'000; ++i) repeated += "$A";
  for (const std::string& text : {with(1, repeated), with(20'000, "$A")}) {
    EXPECT_TRUE(PublishedPorts(text, env).empty());
    const auto read = ReadCompose(text, env);
    ASSERT_FALSE(read.has_value());
    EXPECT_TRUE(read.error().message().contains("its variables make the file too long")) << read.error().message();
  }
}

TEST(Compose, IsBounded) {
  EXPECT_TRUE(Refusal(std::string(kMostComposeBytes + 1, ' ')).contains("bytes"));
  std::string many = "services:\n";
  for (size_t i = 0; i <= kMostComposeServices; ++i) many += "  s" + std::to_string(i) + ": {image: i}\n";
  EXPECT_TRUE(Refusal(many).contains("more than 50 services"));
}

TEST(Compose, CommandLinesAreSplitIntoWords) {
  EXPECT_EQ(*SplitWords(R"( a  'b  c' "d\"e" f\ g '' )"), (std::vector<std::string>{"a", "b  c", "d\"e", "f g", ""}));
  EXPECT_TRUE(SplitWords("")->empty());
  EXPECT_FALSE(SplitWords("a\\").has_value());
}

}  // namespace
}  // namespace muster::model
