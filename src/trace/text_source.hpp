// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The text of a trace file: plain, gzip or zstd, told apart by their first bytes.
#pragma once

#include <filesystem>
#include <string>

namespace trn3sim::trace {

// The decompressed text. Throws base::UserError (place = file) if the file cannot be read, is
// empty, is damaged or truncated, expands to more than 4 GiB, or is binary.
std::string load_text(const std::filesystem::path& file);

// What a trace that is no native one looks like, as " (this looks like ...)" or "".
std::string foreign_format(std::string_view text);

inline constexpr std::string_view kKnownFormats =
    "known: trn3sim native trace (JSON Lines), plain, gzip or zstd";

}  // namespace trn3sim::trace
