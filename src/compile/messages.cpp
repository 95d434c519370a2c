// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "messages.hpp"

#include <map>

#include <fmt/format.h>

namespace trn3sim::compile {
namespace {

// The order of a group set's collectives as one number: equal sequences give equal numbers.
class Signature {
 public:
  Signature(const trace::Program& program, const std::string& group, std::int64_t rank)
      : program_(program), group_(group), rank_(rank) {}

  std::uint64_t of_block(std::int32_t block) {
    const auto known = blocks_.find(block);
    if (known != blocks_.end()) return known->second;
    std::uint64_t h = 0;
    const trace::Block& b = program_.blocks[static_cast<std::size_t>(block)];
    for (std::size_t i = 0; i < b.ops.size(); ++i) {
      const trace::Op& op = b.ops[i];
      if (!trace::runs_on(program_, op, rank_)) continue;
      if (const auto* c = std::get_if<trace::Collective>(&op.body);
          c != nullptr && c->group == group_)
        h = mix(h, op.line);
      std::uint64_t inner = 0;
      if (const auto* call = std::get_if<trace::Call>(&op.body)) inner = of_block(call->block);
      if (const auto* r = std::get_if<trace::Repeat>(&op.body)) {
        inner = of_block(r->block);
        if (inner != 0) inner = mix(inner, static_cast<std::uint64_t>(r->times));
      }
      if (inner != 0) h = mix(h, inner);
    }
    blocks_[block] = h;
    return h;
  }

 private:
  // FNV-1a over the eight bytes of x.
  static std::uint64_t mix(std::uint64_t h, std::uint64_t x) {
    if (h == 0) h = 14695981039346656037ULL;
    for (int i = 0; i < 8; ++i) h = (h ^ (x >> (8 * i) & 255)) * 1099511628211ULL;
    return h;
  }

  const trace::Program& program_;
  const std::string& group_;
  std::int64_t rank_;
  std::map<std::int32_t, std::uint64_t> blocks_;
};

// Line of the next collective of the group on this rank, 0 at the end.
std::uint32_t next_line(const trace::Program& program, trace::Cursor& cursor,
                        const std::string& group) {
  for (;;) {
    const trace::Cursor::Step step = cursor.next();
    if (step.event == trace::Cursor::Event::End) return 0;
    if (step.event != trace::Cursor::Event::Op) continue;
    const trace::Op& op =
        program.blocks[static_cast<std::size_t>(step.block)].ops[static_cast<std::size_t>(step.op)];
    const auto* c = std::get_if<trace::Collective>(&op.body);
    if (c != nullptr && c->group == group) return op.line;
  }
}

std::string difference(const trace::Program& program, const std::string& group, std::int64_t a,
                       std::int64_t b) {
  trace::Cursor first(program, a), second(program, b);
  for (std::int64_t n = 1;; ++n) {
    const std::uint32_t x = next_line(program, first, group);
    const std::uint32_t y = next_line(program, second, group);
    if (x == y && x != 0) continue;
    const auto text = [](std::uint32_t line) {
      return line == 0 ? std::string("has no more") : fmt::format("runs line {}", line);
    };
    return fmt::format(
        "members of a group of {} disagree on its collective {}: rank {} {}, rank {} {}; every "
        "member must run the same collectives in the same order",
        group, n, a, text(x), b, text(y));
  }
}

}  // namespace

void route_messages(const trace::Program& program, RouteCache& routes, Plan& plan,
                    base::Problems& problems) {
  const base::Mesh& mesh = program.header.mesh;
  for (const trace::Block& block : program.blocks)
    for (const trace::Op& op : block.ops) {
      const auto* p = std::get_if<trace::PointToPoint>(&op.body);
      if (p == nullptr) continue;
      for (std::int64_t r = 0; r < mesh.ranks(); ++r) {
        if (!trace::runs_on(program, op, r)) continue;
        const std::int64_t to = mesh.coordinate(r, p->axis) + p->offset;
        const std::int64_t size = mesh.axes()[static_cast<std::size_t>(p->axis)].size;
        if (to < 0 || to >= size || p->offset == 0) {
          problems.add(
              fmt::format("{}:{}", program.file.string(), op.line),
              fmt::format(
                  "rank {} has no peer at {} {} ({} ranks on that axis); add \"when\" for the "
                  "ranks that have one",
                  r, mesh.axes()[static_cast<std::size_t>(p->axis)].name, to, size));
          break;
        }
        const std::int64_t peer = mesh.with_coordinate(r, p->axis, to);
        plan.message_routes[{r, peer}] =
            routes.route(plan.places[static_cast<std::size_t>(r)].nodes.front(),
                         plan.places[static_cast<std::size_t>(peer)].nodes.front());
      }
    }
}

void check_members(const trace::Program& program, const Plan& plan, base::Problems& problems) {
  for (const GroupSet& set : plan.group_sets)
    for (const GroupPlan& group : set.groups) {
      const std::uint64_t expected =
          Signature(program, set.name, group.members.front()).of_block(0);
      for (std::int64_t r : group.members) {
        if (Signature(program, set.name, r).of_block(0) == expected) continue;
        problems.add(program.file.string(),
                     difference(program, set.name, group.members.front(), r));
        return;
      }
    }
}

}  // namespace trn3sim::compile
