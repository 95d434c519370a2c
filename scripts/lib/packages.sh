# shellcheck shell=bash
# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
# Sourced: install_packages installs the Debian 12 packages that are missing.

TRN3SIM_PACKAGES="build-essential cmake ninja-build pkg-config libsystemc-dev libboost-program-options-dev
  nlohmann-json3-dev libfmt-dev libspdlog-dev libgtest-dev libbenchmark-dev libsimdjson-dev libzstd-dev
  zlib1g-dev libssl-dev python3 zstd"

# Words of the list that are not installed.
missing_packages() {
  local package
  for package in $TRN3SIM_PACKAGES; do
    if ! dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed'; then
      printf '%s ' "$package"
    fi
  done
}

# Needs root or sudo only if something is missing. Says what it does on stderr.
install_packages() {
  local missing sudo=""
  missing=$(missing_packages)
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
      echo "error: these packages are missing and there is no sudo: $missing" >&2
      return 2
    }
    sudo=sudo
  fi
  echo "installing: $missing" >&2
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
  # shellcheck disable=SC2086 # one word per package
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2
}

# build PRESET [TARGET...]: configures and builds; output on stderr.
build() {
  local preset=$1 target
  shift
  local targets=()
  for target in "$@"; do targets+=(--target "$target"); done
  cmake --preset "$preset" >&2
  cmake --build --preset "$preset" -j "$(nproc)" "${targets[@]}" >&2
}
