// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernel profiles on disk, so that the next run need not measure them again. One file per profile,
// named by the hash of everything that decides it. A store never fails a run: an entry that cannot
// be read, or is not what was written, is a miss; what cannot be written is counted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "trn3sim/compile/kernel.hpp"
#include "trn3sim/config/chip_spec.hpp"
#include "trn3sim/models/kernel_profile.hpp"

namespace trn3sim::sim {

// Hash over the version of the model, every field of the chip but those that no kernel can see
// (name, headline, paths between stacks, collectives, host, energy), the kernel, and the least rate
// of its curve.
std::string profile_key(std::string_view version, const config::ChipSpec& chip,
                        const compile::KernelSpec& kernel, base::Rate least);

// The content of an entry: its key, every field of `profile` as "name value" lines, and a checksum.
std::string profile_to_text(const std::string& key, const models::KernelProfile& profile);
// Nothing unless `text` is exactly what profile_to_text() makes for `key`.
std::optional<models::KernelProfile> profile_from_text(const std::string& key,
                                                       std::string_view text);

class ProfileStore {
 public:
  // The directory is made when the first profile is saved.
  explicit ProfileStore(std::filesystem::path directory) : directory_(std::move(directory)) {}

  std::optional<models::KernelProfile> load(const std::string& key);
  // Writes beside the entry and renames, so a reader sees all or nothing and the last of several
  // writers wins. After the first error nothing more is written.
  void save(const std::string& key, const models::KernelProfile& profile);

  [[nodiscard]] std::filesystem::path entry(const std::string& key) const;
  [[nodiscard]] std::int64_t hits() const { return hits_; }
  [[nodiscard]] std::int64_t misses() const { return misses_; }
  [[nodiscard]] std::int64_t errors() const { return errors_; }
  // The first error in words, "" if there was none.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  void fail(const std::filesystem::path& path, const char* what, int error);
  bool prepare();
  void remove_stale();

  std::filesystem::path directory_;
  std::int64_t hits_ = 0, misses_ = 0, errors_ = 0;
  std::string problem_;
  bool prepared_ = false, writable_ = true;
};

}  // namespace trn3sim::sim
