// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Each CASE but 0 must not compile: units do not mix.
#include "trn3sim/base/quantity.hpp"

using namespace trn3sim::base;

#if CASE == 0  // the control: the same operations on equal units
[[maybe_unused]] auto value = Bytes(1) + Bytes(2);
[[maybe_unused]] bool less = Time(1) < Time(2);
[[maybe_unused]] Time time = Time(1);
#elif CASE == 1
[[maybe_unused]] auto value = Bytes(1) + Cycles(2);
#elif CASE == 2
[[maybe_unused]] bool less = Time(1) < Cycles(2);
#elif CASE == 3
[[maybe_unused]] Time time = Cycles(1);
#elif CASE == 4
[[maybe_unused]] Time time = 5;
#elif CASE == 5
[[maybe_unused]] auto value = Energy(1) - Power(1);
#elif CASE == 6
[[maybe_unused]] auto value = Bytes(1) * Bytes(2);
#elif CASE == 7
[[maybe_unused]] Time time = transfer_time(Rate(1), Bytes(1));
#endif
