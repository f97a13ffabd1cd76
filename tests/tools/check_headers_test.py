"""tools/check_headers catches headers that lean on what their users include, and warnings in headers."""
import sys

sys.dont_write_bytecode = True
import planted  # noqa: E402


class CheckHeaders(planted.PlantedTreeTest):
    check = "check_headers"

    def setUp(self):
        super().setUp()
        self.plant("src/base/good.h", "#pragma once\n#include <string>\nstruct Good { std::string name; };\n")

    def test_good_tree(self):
        self.plant("src/model/user.h", '#pragma once\n#include "base/good.h"\nstruct User { Good good; };\n')
        self.assert_passes()

    def test_missing_include(self):
        self.plant("src/model/bad.h", "#pragma once\nstruct Bad { std::vector<int> rows; };\n")
        self.assert_caught("src/model/bad.h: does not compile alone:", "2 headers, 1 do not compile alone")

    def test_warning(self):
        self.plant("src/model/bad.h", "#pragma once\ninline short Narrow(long value) { return value; }\n")
        self.assert_caught("src/model/bad.h: does not compile alone:", "conversion")


planted.main()
