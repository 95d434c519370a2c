// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace trn3sim::app {

// Opens closed standard descriptors (0 to 2) such that using them fails: the next file opened would
// otherwise become standard output.
void reserve_standard_descriptors();

// Writes all of `text` to standard output. Throws base::UserError if it is closed or full.
void print(const std::string& text);

}  // namespace trn3sim::app
