// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules across values, reported at the place of a value.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "trn3sim/base/error.hpp"
#include "trn3sim/config/system_spec.hpp"

#include "config/validate.hpp"

namespace trn3sim::config {

// Adds the problems of broken rules at the places of the values.
class Rules {
 public:
  Rules(std::string root, const PlaceOf& place_of, base::Problems& problems)
      : root_(std::move(root)), place_of_(place_of), problems_(problems) {}

  // `path` is dotted, below the root.
  void require(bool holds, const std::string& path, const std::string& what) {
    if (holds) return;
    std::vector<std::string> keys{root_};
    std::istringstream stream(path);
    for (std::string key; std::getline(stream, key, '.');) keys.push_back(key);
    problems_.add(place_of_(keys), what);
  }

 private:
  std::string root_;
  const PlaceOf& place_of_;
  base::Problems& problems_;
};

// Shape, names and reachability of a fabric; `rules` has the root "fabric".
void check_fabric(const FabricSpec& fabric, Rules& rules);

}  // namespace trn3sim::config
