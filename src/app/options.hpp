// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Options of the commands. Boost.Program_options is seen by the parsers of the commands only. All
// mistakes throw base::UserError (place "command line").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/cli.hpp"
#include <boost/program_options.hpp>

namespace trn3sim::app {

namespace po = boost::program_options;
using Arguments = std::vector<std::string>;

[[noreturn]] void fail(const std::string& what);

// Parses `arguments`; words that belong to no option go to `words` in order. `help` is the command
// that an unknown option is answered with.
po::variables_map parse_options(const Arguments& arguments, const po::options_description& options,
                                Arguments& words, const char* help);

// The text of option `name`; empty if not given, an error if given empty.
std::string text_of(const po::variables_map& values, const char* name);

// The same, one of `allowed`.
std::string choice(const po::variables_map& values, const char* name, const Arguments& allowed);

// --format text | json
Format format_of(const po::variables_map& values);

// A whole number of at least `least`.
std::int64_t number_of(const po::variables_map& values, const char* name, std::int64_t least);

// The values of --set in order, each with a path and "=".
Arguments overrides_of(const po::variables_map& values);

// The one file of `command`.
std::string only_file(const Arguments& words, const char* command);

}  // namespace trn3sim::app
