#!/usr/bin/env bash
# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds the release program and runs the main job: one Llama-2 7B training
# step on a 64-chip UltraServer. Further arguments go to trn3sim. Standard output is the report.
#
#   scripts/run.sh
#   scripts/run.sh --set chip.hbm.bandwidth="6.0 TB/s" --out out/fast_hbm
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/scripts/lib/packages.sh"

install_packages
(cd "$root" && build release trn3sim)
exec "$root/build/release/bin/trn3sim" --config ultraserver64.json --trace llama7b.trace "$@"
