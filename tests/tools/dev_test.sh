#!/usr/bin/env bash
# ./dev explains itself, refuses what it does not know, and knows what is installed, all without building anything.
set -euo pipefail
repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
cd /
die() { echo "FAILED: $*" >&2; exit 1; }

help=$("$repo/dev")
for command in build test up bench sim lint fmt asan tsan fuzz e2e fresh; do
  grep -q -E "^  $command( |\$).* {2,}[^ ]" <<<"$help" || die "no line of help for '$command'"
done

if output=$("$repo/dev" frobnicate 2>&1); then die "an unknown command succeeded"; fi
grep -q "there is no command 'frobnicate'" <<<"$output" || die "the unknown command is not named: $output"

source "$repo/tools/lib.sh"
packages build | grep -q -x ninja-build || die "the build group lacks ninja-build"
if packages build | grep -q clang; then die "a release build must not need clang"; fi
[[ $(packages quick) == clang-19 ]] || die "a quick build needs the second compiler and no more"
packages build test | grep -q -x libgtest-dev || die "groups do not add up"
installed bash || die "bash is installed"
if installed no-such-package-here; then die "no-such-package-here is not installed"; fi

# need() starts apt-get through env and sudo: stand-ins show whether it would.
env() { echo "started: $*"; }
sudo() { "$@"; }
output=$(need build test)
[[ -z $output ]] || die "with all packages there, need must do nothing, but: $output"

packages() { echo no-such-package-here; }
output=$(need build)
grep -q 'started: .*apt-get .*update' <<<"$output" || die "apt-get update was not called: $output"
grep -q 'install 1 packages: no-such-package-here' <<<"$output" || die "the missing package is not named: $output"
echo ok
