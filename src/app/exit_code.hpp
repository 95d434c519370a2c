// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// How the program ends, and the one place that turns exceptions into messages.
#pragma once

#include <functional>

namespace trn3sim::app {

inline constexpr int kOk = 0;
inline constexpr int kCheckFailed = 1;  // a check that the user asked for
inline constexpr int kUserError = 2;    // input, options or environment
inline constexpr int kBug = 3;          // a mistake of trn3sim, physics checks included

// Runs `body` and returns its exit code. A UserError prints "error: <place>: <what>" per problem on
// stderr and gives kUserError; any other exception is a bug of ours.
int guarded(const std::function<int()>& body);

}  // namespace trn3sim::app
