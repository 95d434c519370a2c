// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Fixture for tests that run the SystemC kernel. ctest runs each TEST in a process of its own,
// because SystemC elaborates once. Warnings and errors of the kernel fail the test. Include it in
// one file per test program: it defines main() and sc_main().
#pragma once

#include <cstdlib>
#include <systemc>

#include "trn3sim/modules/context.hpp"

#include <gtest/gtest.h>

namespace trn3sim::test {

class KernelTest : public ::testing::Test {
 protected:
  modules::Context context;
};

inline void report_as_failure(const sc_core::sc_report& report,
                              const sc_core::sc_actions& actions) {
  if (report.get_severity() >= sc_core::SC_WARNING)
    ADD_FAILURE() << report.get_msg_type() << ": " << report.get_msg();
  else
    sc_core::sc_report_handler::default_handler(report, actions);
}

}  // namespace trn3sim::test

int sc_main(int argc, char** argv) {
  sc_core::sc_report_handler::set_handler(trn3sim::test::report_as_failure);
  sc_core::sc_set_time_resolution(1, sc_core::SC_FS);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

int main(int argc, char** argv) {
  setenv("SC_COPYRIGHT_MESSAGE", "DISABLE", 1);  // ctest reads the list of tests from stdout
  return sc_core::sc_elab_and_sim(argc, argv);
}
