"""tools/check_layers catches every kind of forbidden include and nothing else."""
import sys

sys.dont_write_bytecode = True
import planted  # noqa: E402


class CheckLayers(planted.PlantedTreeTest):
    check = "check_layers"

    def test_good_tree(self):
        self.plant("src/base/status.h", "#include <string>\n")
        self.plant("src/model/machine.cc", '#include "base/status.h"\n#include <yaml-cpp/yaml.h>\n')
        self.plant("src/core/counter/core.cc", '#include "core/counter/core.h"\n#include "model/machine.h"\n')
        self.plant("src/role/shard/role.cc", '#include "core/shard/core.h"\n#include "rpc/server.h"\n')
        self.plant("src/role/diagnostic/role.cc", '#include "core/counter/core.h"\n')
        self.plant("src/sim/run.cc", '#include "core/counter/core.h"\n#include "host/loop.h"\n')
        self.plant("src/cli/main.cc", '#include <CLI/CLI.hpp>\n#include "role/shard/role.h"\n')
        self.assert_passes()

    def test_upward_include(self):
        self.plant("src/base/status.cc", '#include <string>\n\n#include "model/machine.h"\n')
        self.assert_caught("src/base/status.cc:3: base may not include model (model/machine.h)")

    def test_core_includes_host(self):
        self.plant("src/core/counter/core.cc", '#include "host/loop.h"\n')
        self.assert_caught("core/counter may not include host")

    def test_peer_cores(self):
        self.plant("src/core/shard/core.cc", '#include "core/scheduler/core.h"\n')
        self.assert_caught("core/shard may not include core/scheduler")

    def test_peer_roles(self):
        self.plant("src/role/shard/role.cc", '#include "role/scheduler/role.h"\n')
        self.assert_caught("role/shard may not include role/scheduler")

    def test_role_and_another_core(self):
        self.plant("src/role/shard/role.cc", '#include "core/scheduler/core.h"\n')
        self.assert_caught("role/shard may not include core/scheduler")

    def test_spaces_and_tests_count(self):
        self.plant("src/base/status_test.cc", '  #  include "host/loop.h"\n')
        self.assert_caught("src/base/status_test.cc:1: base may not include host")

    def test_third_party_headers_in_the_wrong_folder(self):
        for header, folder, owner in (
                ("grpcpp/grpcpp.h", "role/shard", "rpc"), ("google/protobuf/message.h", "cli", "rpc"),
                ("muster/v1/api.pb.h", "host", "rpc"), ("yaml-cpp/yaml.h", "cli", "model"),
                ("spdlog/spdlog.h", "base", "host"), ("prometheus/registry.h", "rpc", "host"),
                ("httplib.h", "web", "host"), ("sqlite3.h", "sim", "host"), ("CLI/CLI.hpp", "role/shard", "cli")):
            with self.subTest(header=header):
                self.plant(f"src/{folder}/planted.cc", f"#include <{header}>\n")
                self.assert_caught(f"src/{folder}/planted.cc:1: {header} may only be included in {owner}")
                (self.root / f"src/{folder}/planted.cc").unlink()

    def test_unknown_folder(self):
        self.plant("src/surprise/x.cc", "int x;\n")
        self.assert_caught("src/surprise/x.cc: its folder has no line in tools/layers.txt")

    def test_include_without_folder(self):
        self.plant("src/base/status.cc", '#include "status.h"\n')
        self.assert_caught('"status.h" is in no folder')

    def test_comments_and_strings_are_not_code(self):
        self.plant("src/base/status.cc",
                   '// #include "model/machine.h"\n/*\n#include "model/machine.h"\n*/\n'
                   'const char* text = R"(\n#include "model/machine.h"\n)";\n')
        self.assert_passes()

    def test_namespaces_follow_folders(self):
        self.plant("src/model/node.cc", "namespace muster::model {\nnamespace {\nint x;\n}\n}  // namespace muster::model\n")
        self.plant("src/host/internal.cc", "namespace muster::host::internal {}\nnamespace absl {}\n")
        self.assert_passes()
        for namespace in ("muster", "muster::hostile", "muster::model"):
            with self.subTest(namespace=namespace):
                self.plant("src/host/stray.cc", f"// namespace muster {{\nnamespace {namespace} {{}}\n")
                self.assert_caught(f"src/host/stray.cc:2: namespace {namespace} does not follow the folder: muster::host")

    def test_namespaces_that_the_table_excepts(self):
        self.plant("tools/layers.txt", "core/*:\nhost:\nsrc/core/* = muster::*\nsrc/host = muster::host muster::v1  # why\n")
        self.plant("src/core/shard/core.cc", "namespace muster::shard {}\n")
        self.plant("src/host/core.cc", "namespace muster::v1 {}\nnamespace muster::host {}\n")
        self.assert_passes()
        self.plant("src/core/agent/core.cc", "namespace muster::shard {}\n")
        self.assert_caught("src/core/agent/core.cc:1: namespace muster::shard does not follow the folder: muster::agent")


planted.main()
