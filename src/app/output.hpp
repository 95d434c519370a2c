// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace trn3sim::app {

// Writes all of `text` to standard output. Throws base::UserError if it is closed or full.
void print(const std::string& text);

}  // namespace trn3sim::app
