// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The keys of configuration files as documents for people and editors, made from the same
// describe() that reads the files.
#pragma once

#include <string>

namespace trn3sim::config {

// JSON Schema (draft 2020-12) of a chip file and of a system file. Every key that the reader knows
// is there and no other is allowed. Rules across values, the largest value of each unit, and that a
// number of a chip file needs a source are left to the reader.
std::string chip_schema();
std::string system_schema();

// The same as tables in Markdown.
std::string reference_markdown();

}  // namespace trn3sim::config
