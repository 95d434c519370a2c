// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/base/mesh.hpp"

#include <algorithm>

namespace trn3sim::base {

std::string_view name(RankUnit unit) {
  switch (unit) {
    case RankUnit::Chip:
      return "chip";
    case RankUnit::LogicalCore:
      return "logical_core";
    case RankUnit::Core:
      return "core";
  }
  return "";
}

std::int64_t Mesh::ranks() const {
  std::int64_t n = 1;
  for (const MeshAxis& a : axes_) n *= a.size;
  return n;
}

int Mesh::axis(std::string_view name) const {
  for (std::size_t i = 0; i < axes_.size(); ++i)
    if (axes_[i].name == name) return static_cast<int>(i);
  return -1;
}

std::int64_t Mesh::stride(int axis) const {
  std::int64_t s = 1;
  for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < axes_.size(); ++i)
    s *= axes_[i].size;
  return s;
}

std::int64_t Mesh::coordinate(std::int64_t rank, int axis) const {
  return rank / stride(axis) % axes_[static_cast<std::size_t>(axis)].size;
}

std::int64_t Mesh::with_coordinate(std::int64_t rank, int axis, std::int64_t value) const {
  return rank + (value - coordinate(rank, axis)) * stride(axis);
}

std::vector<std::int64_t> Mesh::group_of(std::int64_t rank, const std::vector<int>& axes) const {
  std::vector<std::int64_t> members{rank};
  std::vector<int> order = axes;
  std::sort(order.begin(), order.end());
  for (int a : order) {
    std::vector<std::int64_t> next;
    for (std::int64_t r : members)
      for (std::int64_t c = 0; c < axes_[static_cast<std::size_t>(a)].size; ++c)
        next.push_back(with_coordinate(r, a, c));
    members = std::move(next);
  }
  std::sort(members.begin(), members.end());
  return members;
}

std::vector<std::vector<std::int64_t>> Mesh::groups(const std::vector<int>& axes) const {
  std::vector<std::vector<std::int64_t>> all;
  for (std::int64_t r = 0; r < ranks(); ++r) {
    std::vector<std::int64_t> members = group_of(r, axes);
    if (members.front() == r) all.push_back(std::move(members));
  }
  return all;
}

}  // namespace trn3sim::base
