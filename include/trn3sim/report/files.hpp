// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Output files, whole or not at all: written under a temporary name beside the target, then
// renamed.
#pragma once

#include <filesystem>
#include <string>

#include "trn3sim/stats/results.hpp"
#include "trn3sim/stats/timeline.hpp"

namespace trn3sim::report {

// Writes `text` to `path`. A symbolic link is followed; a device or pipe is written directly.
// Throws base::UserError (missing directory, path is a directory, no permission, disk full).
void write_file(const std::filesystem::path& path, const std::string& text);

// Throws base::UserError if `directory` neither is a writable directory nor can be made one. Makes
// nothing: called before a long run so that the run does not end in this error.
void check_directory(const std::filesystem::path& directory);

// results.json, run_info.json, kernels.csv, collectives.csv and links.csv in `directory`, which is
// made if needed; timeline.json (or timeline.json.gz) if `timeline` is given. All are written
// before the first is renamed. Throws base::UserError.
void write_files(const std::filesystem::path& directory, const stats::Results& results,
                 const stats::RunInfo& info, const stats::Timeline* timeline = nullptr);

}  // namespace trn3sim::report
