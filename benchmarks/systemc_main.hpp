// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs the benchmarks of one program inside SystemC. It elaborates once, so setup() makes all
// modules before the first benchmark runs. Include it in one file per program.
#pragma once

#include <cstdlib>
#include <systemc>

#include <benchmark/benchmark.h>

namespace trn3sim::benchmarks {
void setup();
}  // namespace trn3sim::benchmarks

int sc_main(int argc, char** argv) {
  sc_core::sc_set_time_resolution(1, sc_core::SC_FS);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  trn3sim::benchmarks::setup();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

int main(int argc, char** argv) {
  setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
  return sc_core::sc_elab_and_sim(argc, argv);
}
