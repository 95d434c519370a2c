// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "op_names.hpp"

#include <algorithm>
#include <set>

#include "trn3sim/base/text.hpp"

#include <fmt/ranges.h>

namespace trn3sim::compile {
namespace {

constexpr std::string_view kPlace = "precision.ops";
constexpr std::size_t kShown = 3;

const std::string& id_of(const trace::Op& op) {
  return op.whole.empty() ? op.id : op.whole;
}

// "block.op"; ops of the top level have no block.
std::string full_name(const trace::Block& block, const trace::Op& op) {
  return block.id.empty() ? id_of(op) : block.id + "." + id_of(op);
}

bool is_gemm(const trace::Op& op) {
  return std::holds_alternative<trace::Gemm>(op.body);
}

std::string quoted(const std::vector<std::string>& names) {
  return fmt::format("\"{}\"", fmt::join(names, "\", \""));
}

// Up to three GEMMs whose name, or whose name with the block, is near to `name`; else some GEMMs.
std::string suggestion(const trace::Program& program, const std::string& name) {
  std::set<std::string> unique;
  for (const trace::Block& block : program.blocks)
    for (const trace::Op& op : block.ops) {
      if (!is_gemm(op)) continue;
      unique.insert(id_of(op));
      unique.insert(full_name(block, op));
    }
  std::vector<std::string> left(unique.begin(), unique.end());
  if (left.empty()) return "; the trace has no gemm";
  std::vector<std::string> near;
  while (near.size() < kShown) {
    const std::string best = base::nearest(name, left);
    if (best.empty()) break;
    near.push_back(best);
    left.erase(std::ranges::find(left, best));
  }
  if (!near.empty()) return "; did you mean " + quoted(near) + "?";
  std::erase_if(left, [](const std::string& n) { return n.find('.') == std::string::npos; });
  if (left.empty()) left.assign(unique.begin(), unique.end());
  const bool more = left.size() > 2 * kShown;
  if (more) left.resize(2 * kShown);
  return fmt::format("; its gemms are {}{}", quoted(left), more ? ", ..." : "");
}

}  // namespace

std::vector<NamedGemm> find_gemms(const trace::Program& program,
                                  const std::vector<std::string>& names, base::Problems& problems) {
  std::vector<NamedGemm> found;
  std::vector<const trace::Op*> other(names.size(), nullptr);
  std::vector<bool> known(names.size(), false);
  if (names.empty()) return found;
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    const trace::Block& block = program.blocks[b];
    for (std::size_t i = 0; i < block.ops.size(); ++i) {
      const trace::Op& op = block.ops[i];
      const std::string full = full_name(block, op);
      NamedGemm named{b, i, names.size()};
      for (std::size_t n = 0; n < names.size(); ++n) {
        const bool by_full = names[n] == full;
        if (!by_full && names[n] != id_of(op)) continue;
        if (!is_gemm(op)) {
          other[n] = &op;
          continue;
        }
        known[n] = true;
        if (by_full || named.name == names.size()) named.name = n;
      }
      if (named.name < names.size()) found.push_back(named);
    }
  }
  for (std::size_t n = 0; n < names.size(); ++n) {
    if (known[n]) continue;
    const std::string hint = suggestion(program, names[n]);
    if (other[n] == nullptr)
      problems.add(std::string(kPlace),
                   fmt::format("{} has no op \"{}\"{}", program.file.string(), names[n], hint));
    else
      problems.add(std::string(kPlace),
                   fmt::format("\"{}\" ({}:{}) is no gemm{}{}", names[n], program.file.string(),
                               other[n]->line,
                               std::holds_alternative<trace::Attention>(other[n]->body)
                                   ? "; attention keeps the format of the trace"
                                   : "",
                               hint));
  }
  return found;
}

}  // namespace trn3sim::compile
