// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace trn3sim::app {

inline constexpr const char* kConfigHelp =
    R"(trn3sim config: look at machines, check your own.

  trn3sim config list                   systems, chips and traces on the search path
  trn3sim config show CONFIG [options]  every value with its unit, confidence and source
    --set PATH=VALUE    as in a run; repeatable, applied in order
    --compile LEVEL     stock, tuned (default) or ideal
    --format FORMAT     text (default) or json, which is a configuration file itself
  trn3sim config check FILE             read a system or chip file and report every problem
  trn3sim config schema chip|system     JSON Schema (draft 2020-12) of the files
  trn3sim config schema --format markdown    all keys as tables

list takes --format json too.

Examples
  What a machine is made of, and which of its numbers are assumed:
    trn3sim config show ultraserver64.json
    trn3sim config show chip1.json | grep assumed
  A machine of your own, started from one that comes with trn3sim:
    trn3sim config show torus16.json --set fabric.dims="[8, 8]" --format json > my.json
    trn3sim config check my.json
  Keys and ranges in your editor:
    trn3sim config schema system > system.schema.json
)";

}  // namespace trn3sim::app
