"""tools/check_determinism catches each kind of impurity in pure folders and leaves the rest alone."""
import sys

sys.dont_write_bytecode = True
import planted  # noqa: E402

BREACHES = (
    ("clock", "auto t = std::chrono::steady_clock::now();"),
    ("clock", "auto t = std::chrono::system_clock::now();"),
    ("clock", "timespec t; clock_gettime(CLOCK_REALTIME, &t);"),
    ("clock", "auto t = time(nullptr);"),
    ("clock", "auto t = std::time(&x);"),
    ("entropy", "std::random_device device;"),
    ("entropy", "std::mt19937_64 generator(1);"),
    ("entropy", "int n = rand();"),
    ("entropy", "getrandom(buffer, 8, 0);"),
    ("entropy", "#include <random>"),
    ("thread", "std::thread worker(run);"),
    ("thread", "std::jthread worker(run);"),
    ("thread", "std::shared_mutex mu;"),
    ("thread", "std::atomic<int> count;"),
    ("thread", "thread_local int depth;"),
    ("thread", "#include <mutex>"),
    ("sleep", "std::this_thread::sleep_for(1s);"),
    ("sleep", "usleep(10);"),
    ("log", '#include "base/log.h"'),
    ("log", 'log::Info("decided");'),
    ("log", "std::cerr << 1;"),
    ("log", 'printf("x");'),
    ("environment", 'auto home = std::getenv("HOME");'),
    ("file", "std::ifstream in(path);"),
    ("file", "FILE* f = fopen(path, mode);"),
    ("file", "int fd = ::open(path, 0);"),
    ("file", "#include <sys/socket.h>"),
    ("file", "if (std::filesystem::exists(path)) return;"),
    ("unordered", "std::unordered_map<int, std::vector<int>> m;\nvoid F() { for (auto& [k, v] : m) Use(k); }"),
    ("unordered", "std::unordered_set<int> s_;\nvoid F() { for (int k : this->s_) Use(k); }"),
    ("unordered", "std::unordered_set<int> s;\nstd::vector<int> v(s.begin(), s.end());"),
    ("unordered", "using Table = std::unordered_map<int, int>;\nvoid F(const Table& t) { for (auto& e : t) Use(e); }"),
    ("unordered", "absl::flat_hash_map<int, int> m;\nvoid F() { for (auto& e : m) Use(e); }"),
    ("unordered", "std::unordered_set<int> s;\nvoid F() { std::ranges::for_each(s, Use); }"),
    ("unordered", "const std::unordered_set<int>& All();\nvoid F() { for (int k : All()) Use(k); }"),
)

HARMLESS = """
// std::thread, rand() and steady_clock::now() in a comment
/* std::random_device
   for (auto& e : m) */
const char* text = "std::mutex getenv(";
const char* raw = R"x(std::ifstream in; "sleep_for" )x";
int big = 1'000'000;
std::unordered_map<int, int> m;
bool Has(int k) { return m.find(k) != m.end() && m.contains(k); }
std::map<int, int> sorted;
void F() {
  for (auto& [k, v] : sorted) m.emplace(k, v);
  for (const int i : std::views::iota(0, 3)) queue.time(i);
  for (int i = a ? b : 0; i < 3; ++i) m.erase(i);
  VirtualClock clock(now);
  job.sleep(1);
  runtime.open(2);
  obj->rand();
}
"""


class CheckDeterminism(planted.PlantedTreeTest):
    check = "check_determinism"

    def test_each_breach_in_a_core(self):
        for rule, code in BREACHES:
            with self.subTest(code=code):
                self.plant("src/core/counter/core.cc", f"int first;\n{code}\n")
                line = 2 + code.count("\n")
                self.assert_caught(f"src/core/counter/core.cc:{line}: {rule}: ")

    def test_each_pure_folder(self):
        for folder in ("base", "model", "contract", "engine", "engine/reference", "core/shard"):
            with self.subTest(folder=folder):
                self.plant(f"src/{folder}/planted.h", "inline int Draw() { return rand(); }\n")
                self.assert_caught(f"src/{folder}/planted.h:1: entropy: ")
                (self.root / f"src/{folder}/planted.h").unlink()

    def test_member_of_a_header_walked_in_its_source(self):
        self.plant("src/engine/table.h", "struct Table { std::unordered_map<int, int> rows_; };\n")
        self.plant("src/engine/table.cc", '#include "engine/table.h"\nvoid F(Table& t) { for (auto& r : t.rows_) Use(r); }\n')
        self.assert_caught("src/engine/table.cc:2: unordered: ")

    def test_harmless_code(self):
        self.plant("src/engine/good.cc", HARMLESS)
        self.assert_passes()

    def test_shells_may(self):
        self.plant("src/host/loop.cc", "#include <thread>\nauto t = std::chrono::steady_clock::now();\n")
        self.assert_passes()

    def test_tests_of_pure_code(self):
        self.plant("src/model/good_test.cc", "#include <fstream>\nstd::thread worker(run);\n")
        self.assert_passes()
        self.plant("src/model/bad_test.cc", "std::random_device device;\n")
        self.assert_caught("src/model/bad_test.cc:1: entropy: ")

    def test_no_test_sleeps(self):
        self.plant("src/host/loop_test.cc", "\nstd::this_thread::sleep_for(1s);\n")
        self.assert_caught("src/host/loop_test.cc:2: sleep: ")

    def test_exceptions_are_for_one_rule(self):
        self.plant("src/base/probe.cc", "std::mutex mu;\n")
        self.assert_passes()
        self.plant("src/base/probe.cc", "std::mutex mu;\nint n = rand();\n")
        self.assert_caught("src/base/probe.cc:2: entropy: ")


planted.main()
