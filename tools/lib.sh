# Shared by ./dev, .ci/run and tools/fresh: messages, package installation, time per stage. Sourced, never run.

say() { printf '== %s\n' "$*"; }
fail() { printf 'dev: %s\n' "$*" >&2; exit 1; }

# packages GROUP...: the names in those groups of packaging/packages.txt.
packages() {
  awk -v wanted=" $* " '
    /^\[/ { group = $1; gsub(/[][]/, "", group); next }
    { sub(/#.*/, "") }
    NF && index(wanted, " " group " ") { print $1 }' "$repo/packaging/packages.txt" | sort -u
}

installed() { [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

# need GROUP...: installs what is missing of those groups; touches nothing when all is there.
need() {
  command -v dpkg-query >/dev/null ||
    fail "this is not Debian: install the equivalents of packaging/packages.txt ($*), then call cmake --preset by hand"
  local name missing=()
  for name in $(packages "$@"); do installed "$name" || missing+=("$name"); done
  ((${#missing[@]})) || return 0

  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || fail "packages are missing; as root run: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "install ${#missing[@]} packages: ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
  "${apt[@]}" update || fail "apt-get update failed: check the network and /etc/apt/sources.list, then run this again"
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null ||
    fail "apt-get install failed (see above): Debian 12 (bookworm) with its main archive has all of these packages"
}
