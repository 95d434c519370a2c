#!/usr/bin/env bash
# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds everything and runs all tests; then the quick ones again under
# AddressSanitizer and UndefinedBehaviorSanitizer.
#
#   TRN3SIM_SKIP_ASAN=1 scripts/test.sh    without the second part
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib/packages.sh

install_packages
if [ -z "${TRN3SIM_SAMPLES_DIR:-}" ] && [ -d ../shared/samples ]; then
  TRN3SIM_SAMPLES_DIR=$(cd ../shared/samples && pwd)
  export TRN3SIM_SAMPLES_DIR
fi
# No test may depend on what an earlier run left in the user's cache.
TRN3SIM_CACHE_DIR=$(mktemp -d)
export TRN3SIM_CACHE_DIR
trap 'rm -rf "$TRN3SIM_CACHE_DIR"' EXIT

build release
ctest --preset release -j 2

if [ "${TRN3SIM_SKIP_ASAN:-0}" != 1 ]; then
  build asan
  # SystemC keeps its context until the process ends.
  ASAN_OPTIONS="detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}" \
    ctest --preset asan -j 2 -L '^(unit|kernel|config_errors)$'
fi
