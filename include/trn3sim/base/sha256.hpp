// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4), for content keys.
#pragma once

#include <string>
#include <string_view>

namespace trn3sim::base {

// Lower-case hex digest of `data`.
std::string sha256(std::string_view data);

}  // namespace trn3sim::base
