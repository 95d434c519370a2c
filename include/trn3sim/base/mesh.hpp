// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The rank mesh of a workload: named axes, outermost first, row-major rank numbers (the last axis
// is fastest), as in NxD's parallel_state. A group along a set of axes holds the ranks that agree
// on every other axis.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trn3sim::base {

// What one rank of a trace is: a whole chip, a logical NeuronCore (LNC 2: the cores of one HBM
// stack) or one physical NeuronCore.
enum class RankUnit : std::uint8_t { Chip, LogicalCore, Core };

// The unit as traces write it: "chip", "logical_core", "core".
std::string_view name(RankUnit unit);

struct MeshAxis {
  std::string name;
  std::int64_t size = 1;
};

class Mesh {
 public:
  Mesh() = default;
  explicit Mesh(std::vector<MeshAxis> axes) : axes_(std::move(axes)) {}

  [[nodiscard]] const std::vector<MeshAxis>& axes() const { return axes_; }
  [[nodiscard]] std::int64_t ranks() const;
  // Index of the named axis, or -1.
  [[nodiscard]] int axis(std::string_view name) const;
  // Coordinate of `rank` on axis `axis`.
  [[nodiscard]] std::int64_t coordinate(std::int64_t rank, int axis) const;
  // Rank whose coordinate on `axis` is replaced by `value`.
  [[nodiscard]] std::int64_t with_coordinate(std::int64_t rank, int axis, std::int64_t value) const;
  // The members, ascending in the given axes (last fastest), of the group of `rank` along `axes`
  // (indices). An empty `axes` gives {rank}.
  [[nodiscard]] std::vector<std::int64_t> group_of(std::int64_t rank,
                                                   const std::vector<int>& axes) const;
  // All groups along `axes`, ordered by their lowest rank. They partition the ranks.
  [[nodiscard]] std::vector<std::vector<std::int64_t>> groups(const std::vector<int>& axes) const;

 private:
  [[nodiscard]] std::int64_t stride(int axis) const;
  std::vector<MeshAxis> axes_;
};

}  // namespace trn3sim::base
