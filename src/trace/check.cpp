// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trace/check.hpp"

#include <algorithm>
#include <set>

#include "trn3sim/base/quantity.hpp"

#include "trace/activation.hpp"
#include "trace/nested.hpp"
#include <fmt/format.h>

namespace trn3sim::trace {
namespace {

// Ops run by a block with every `when` taken as true: an upper bound that must stay countable.
void check_length(const Program& program, Report& report) {
  std::vector<Int128> ops(program.blocks.size(), 0);
  const auto length_of = [&](std::size_t b) {
    for (const Op& op : program.blocks[b].ops) {
      const Nested nested = nested_of(op);
      ops[b] +=
          nested.block < 0 ? Int128(1) : ops[static_cast<std::size_t>(nested.block)] * nested.times;
      if (ops[b] >= kMaxSize) {
        report.add(op.line, "the program runs 2^60 operations or more; are the repeats right?");
        return false;
      }
    }
    return true;
  };
  // Blocks are defined before use, so the definition order is bottom-up; the top level is last.
  for (std::size_t b = 1; b < program.blocks.size(); ++b)
    if (!length_of(b)) return;
  length_of(0);
}

// Walks the distinct (block, known coordinates) pairs: a send or recv must have its peer on every
// rank that may run it.
class PeerCheck {
 public:
  PeerCheck(const Program& program, Report& report) : program_(program), report_(report) {}
  void run() {
    const bool any =
        std::any_of(program_.blocks.begin(), program_.blocks.end(), [](const Block& b) {
          return std::any_of(b.ops.begin(), b.ops.end(), [](const Op& op) {
            return std::holds_alternative<PointToPoint>(op.body);
          });
        });
    if (any) visit(0, std::vector<std::int64_t>(program_.header.mesh.axes().size(), kAny));
  }

 private:
  static constexpr std::int64_t kAny = -1;
  using Known = std::vector<std::int64_t>;  // coordinate per axis, or kAny

  void visit(std::int32_t block, const Known& known) {
    if (report_.full() || !seen_.insert({block, known}).second) return;
    for (const Op& op : program_.blocks[static_cast<std::size_t>(block)].ops) {
      Known here = known;
      bool reachable = true;
      for (const auto& [axis, coordinate] : op.when) {
        std::int64_t& k = here[static_cast<std::size_t>(axis)];
        reachable = reachable && (k == kAny || k == coordinate);
        k = coordinate;
      }
      if (!reachable) continue;
      if (const auto* p = std::get_if<PointToPoint>(&op.body)) check(op, *p, here);
      if (const Nested nested = nested_of(op); nested.block >= 0) visit(nested.block, here);
    }
  }

  void check(const Op& op, const PointToPoint& p, const Known& known) {
    const base::MeshAxis& axis = program_.header.mesh.axes()[static_cast<std::size_t>(p.axis)];
    const std::int64_t k = known[static_cast<std::size_t>(p.axis)];
    // The rank most likely to lack a peer: the last one for a positive offset, else the first.
    const std::int64_t at = k != kAny ? k : (p.offset > 0 ? axis.size - 1 : 0);
    const std::int64_t peer = at + p.offset;
    if (peer >= 0 && peer < axis.size) return;
    if (!reported_.insert(op.line).second) return;
    report_.add(op.line,
                fmt::format("{} \"{}\": the rank at {}={} has no peer \"{}{:+}\"; restrict "
                            "it with \"when\"",
                            p.send ? "send" : "recv", op.id, axis.name, at, axis.name, p.offset));
  }

  const Program& program_;
  Report& report_;
  std::set<std::pair<std::int32_t, Known>> seen_;
  std::set<std::uint32_t> reported_;
};

}  // namespace

void check_program(const Program& program, Report& report) {
  check_length(program, report);
  PeerCheck(program, report).run();
  if (!report.empty()) return;
  check_traffic(program, report);
  for (std::int64_t rank : representative_ranks(program)) {
    const ActivationRange range = activation_range(program, rank);
    if (range.lowest >= 0 && range.fits) continue;
    report.add(0, range.fits
                      ? fmt::format("rank {} frees {} bytes more than it has allocated", rank,
                                    -range.lowest)
                      : fmt::format("the allocations of rank {} do not fit in 64 bits", rank));
    return;
  }
}

}  // namespace trn3sim::trace
