"""no_clock_test.py NM LIBRARY...: the libraries behind a plan refer to no clock, timer, thread or environment.

A plan is bounded by steps. As long as none of these libraries can ask for the time, no stop by the clock can be in them;
the caller's `go_on` is the only way in, and PlanProperties.ASlowMachineMakesTheSamePlan shows that a slow one changes
nothing.
"""
import re
import subprocess
import sys
import unittest

NM, LIBRARIES = sys.argv[1], sys.argv[2:]
CLOCKS = re.compile(r"\b(?:clock_gettime|gettimeofday|timespec_get|time|clock|times|getrusage|timer_create|nanosleep"
                    r"|pthread_create|getenv|secure_getenv)(?:@|$)|_clock\w*3now|__rdtsc")


def undefined(library):
    """The symbols that the library needs from elsewhere."""
    listing = subprocess.run([NM, "--undefined-only", library], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1] for line in listing.splitlines() if line.strip().startswith("U ")}


class NoClock(unittest.TestCase):
    def test_the_pattern_knows_clocks(self):
        for name in ("clock_gettime", "time", "_ZNSt6chrono3_V212steady_clock3nowEv", "getenv@GLIBC_2.2.5"):
            self.assertIsNotNone(CLOCKS.search(name), name)
        for name in ("memcpy", "_ZN6muster9planner8MakePlanERKNS0_7RequestE", "strftime"):
            self.assertIsNone(CLOCKS.search(name), name)

    def test_no_library_refers_to_one(self):
        for library in LIBRARIES:
            symbols = undefined(library)
            self.assertGreater(len(symbols), 20, library)
            self.assertEqual([name for name in sorted(symbols) if CLOCKS.search(name)], [], library)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
