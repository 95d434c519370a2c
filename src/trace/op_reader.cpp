// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trace/op_reader.hpp"

#include <algorithm>
#include <charconv>

#include "trn3sim/base/quantity.hpp"
#include "trn3sim/base/text.hpp"

#include <fmt/format.h>

namespace trn3sim::trace {
namespace {

std::vector<std::string> axis_names(const base::Mesh& mesh) {
  std::vector<std::string> names;
  for (const base::MeshAxis& a : mesh.axes()) names.push_back(a.name);
  return names;
}

int axis_of(std::string_view name, std::string_view key, const Fields& f, const OpScope& scope) {
  const base::Mesh& mesh = scope.header->mesh;
  const int axis = mesh.axis(name);
  if (axis < 0)
    f.problem(fmt::format("\"{}\": the mesh has no axis \"{}\"{}", key, name,
                          base::did_you_mean(name, axis_names(mesh))));
  return axis;
}

Role role(Fields& f, std::string_view key, Role fallback) {
  static const std::vector<std::string> kRoles = {"act", "weight", "grad"};
  const int index = f.choice(key, kRoles, false);
  return index < 0 ? fallback : static_cast<Role>(index);
}

void check_product(const Fields& f, std::string_view what, std::initializer_list<std::int64_t> v) {
  Int128 product = 1;
  for (std::int64_t x : v) {
    product *= x;
    if (product >= kMaxSize) {
      f.problem(fmt::format("{} reach 2^60; are the sizes right?", what));
      return;
    }
  }
}

Gemm read_gemm(Fields& f) {
  Gemm g;
  g.m = f.require_integer("m");
  g.n = f.require_integer("n");
  g.k = f.require_integer("k");
  g.batch = f.integer_or("batch", 1, 1);
  g.dtype = f.dtype("dtype");
  g.out = f.dtype("out");
  g.accumulate = f.flag("accumulate");
  g.a = role(f, "a", Role::Activation);
  g.b = role(f, "b", Role::Weight);
  check_product(f, "2 m n k batch FLOP", {2, g.m, g.n, g.k, g.batch});
  return g;
}

Attention read_attention(Fields& f) {
  static const std::vector<std::string> kPasses = {"fwd", "bwd"};
  Attention a;
  a.b = f.integer_or("b", 1, 1);
  a.heads = f.require_integer("heads");
  a.kv_heads = f.integer_or("kv_heads", 1, a.heads);
  a.sq = f.require_integer("sq");
  a.skv = f.require_integer("skv");
  a.d = f.require_integer("d");
  a.causal = f.flag("causal");
  a.backward = f.choice("pass", kPasses, false) == 1;
  a.dtype = f.dtype("dtype");
  if (a.heads % a.kv_heads != 0)
    f.problem(
        fmt::format("\"heads\" {} is not a multiple of \"kv_heads\" {}", a.heads, a.kv_heads));
  check_product(f, "10 b heads sq skv d FLOP", {10, a.b, a.heads, a.sq, a.skv, a.d});
  return a;
}

Scan read_scan(Fields& f) {
  Scan s;
  s.b = f.integer_or("b", 1, 1);
  s.channels = f.require_integer("channels");
  s.state = f.require_integer("state");
  s.seq = f.require_integer("seq");
  s.dtype = f.dtype("dtype");
  check_product(f, "the bytes of all states", {4, s.b, s.channels, s.state, s.seq});
  return s;
}

// A fused vec works on the result of its gemm: all of it, half of it (silu_mul: gate and up make
// one output) or a part of it (rope leaves v alone).
void check_fused_elems(const Fields& f, const Vec& v, const Gemm& g) {
  const Int128 results = Int128(g.m) * g.n * g.batch;
  const bool half = v.fn == "silu_mul" && Int128(v.elems) * 2 == results;
  const bool part = (v.fn == "rope" || v.fn == "rope_bwd") && v.elems <= results;
  if (v.elems == results || half || part) return;
  f.problem(
      fmt::format("\"elems\" {} does not fit the {} results of the gemm it is fused to "
                  "(all of them; half for silu_mul; at most for rope)",
                  v.elems, static_cast<std::int64_t>(results)));
}

void read_fuse(Fields& f, Vec& v, const Op& op, const OpScope& scope) {
  const auto value = f.any("fuse");
  if (!value) return;
  const std::optional<std::string> id = id_of(*value);
  if (!id) {
    f.problem(fmt::format("\"fuse\": expected the id of a gemm, got {}", shown(*value)));
    return;
  }
  const auto at = scope.ids->find(*id);
  const Gemm* gemm =
      at == scope.ids->end()
          ? nullptr
          : std::get_if<Gemm>(&scope.block->ops[static_cast<std::size_t>(at->second)].body);
  if (gemm == nullptr) {
    f.problem(fmt::format("\"fuse\": \"{}\" is no earlier gemm of this block", *id));
    return;
  }
  v.fuse = at->second;
  if (std::find(op.deps.begin(), op.deps.end(), v.fuse) == op.deps.end())
    f.problem(fmt::format("\"fuse\": \"deps\" must name the gemm \"{}\" too", *id));
  if (scope.block->ops[static_cast<std::size_t>(v.fuse)].when != op.when)
    f.problem(fmt::format("\"fuse\": \"when\" must be that of the gemm \"{}\"", *id));
  check_fused_elems(f, v, *gemm);
}

Vec read_vec(Fields& f, const Op& op, const OpScope& scope) {
  Vec v;
  v.fn = f.require_text("fn");
  if (!v.fn.empty() && vec_function(v.fn) == nullptr)
    f.problem(fmt::format("unknown vector function \"{}\"{}", v.fn,
                          base::did_you_mean(v.fn, vec_function_names())));
  v.elems = f.require_integer("elems");
  v.rd = f.integer("rd", 0, kMaxSize - 1);
  v.wr = f.integer("wr", 0, kMaxSize - 1);
  v.dtype = f.dtype("dtype");
  check_product(f, "the bytes of \"elems\"", {32, v.elems});
  read_fuse(f, v, op, scope);
  return v;
}

// Mesh axes of "dp+tp", ascending; the name is rewritten in mesh order so that equal groups have
// equal names.
void read_group(Fields& f, Collective& c, const OpScope& scope) {
  const std::string text = f.require_text("group");
  if (text.empty()) {
    if (f.has("group"))
      f.problem("\"group\" is empty; expected mesh axes such as \"tp\" or \"dp+tp\"");
    return;
  }
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find('+', start), text.size());
    const int axis = axis_of(text.substr(start, end - start), "group", f, scope);
    if (axis < 0) return;
    if (std::find(c.axes.begin(), c.axes.end(), axis) != c.axes.end()) {
      f.problem(fmt::format("\"group\": \"{}\" names an axis twice", text));
      return;
    }
    c.axes.push_back(axis);
    start = end + 1;
  }
  std::sort(c.axes.begin(), c.axes.end());
  for (int axis : c.axes) {
    if (!c.group.empty()) c.group += '+';
    c.group += scope.header->mesh.axes()[static_cast<std::size_t>(axis)].name;
  }
}

void check_collective(const Fields& f, const Collective& c, std::int64_t n) {
  const auto wrong = [&](std::string_view rule) {
    f.problem(fmt::format("{} over the {} ranks of \"{}\": {}, got in {} and out {}",
                          collective_name(c.kind), n, c.group, rule, c.in, c.out));
  };
  switch (c.kind) {
    case CollectiveKind::AllGather:
      if (Int128(c.in) * n != c.out) wrong(fmt::format("out must be {} x in", n));
      break;
    case CollectiveKind::ReduceScatter:
      if (Int128(c.out) * n != c.in) wrong(fmt::format("in must be {} x out", n));
      break;
    case CollectiveKind::AllToAll:
      if (c.in != c.out || c.in % n != 0)
        wrong(fmt::format("in and out must be equal and a multiple of {}", n));
      break;
    case CollectiveKind::AllReduce:
    case CollectiveKind::Broadcast:
      if (c.in != c.out) wrong("in and out must be equal");
      break;
    case CollectiveKind::Barrier:
      if (c.in != 0 || c.out != 0) wrong("in and out must be 0");
      break;
  }
}

Collective read_collective(Fields& f, const OpScope& scope) {
  static const std::vector<std::string> kKinds = {"all_reduce", "all_gather", "reduce_scatter",
                                                  "all_to_all", "broadcast",  "barrier"};
  Collective c;
  const int kind = f.choice("kind", kKinds, true);
  read_group(f, c, scope);
  c.dtype = f.dtype("dtype");
  if (kind < 0) {
    f.any("in");
    f.any("out");
    return c;
  }
  c.kind = static_cast<CollectiveKind>(kind);
  if (c.kind == CollectiveKind::Barrier) {
    c.in = f.integer_or("in", 0, 0);
    c.out = f.integer_or("out", 0, 0);
  } else {
    c.in = f.require_integer("in");
    c.out = f.require_integer("out");
  }
  if (c.axes.empty()) return c;
  std::int64_t n = 1;
  for (int axis : c.axes) n *= scope.header->mesh.axes()[static_cast<std::size_t>(axis)].size;
  check_collective(f, c, n);
  return c;
}

PointToPoint read_p2p(bool send, Fields& f, const OpScope& scope) {
  PointToPoint p;
  p.send = send;
  const std::string peer = f.require_text("peer");
  p.bytes = f.require_integer("bytes");
  p.tag = f.integer_or("tag", 0, 0);
  if (peer.empty()) return p;
  const std::size_t sign = peer.find_first_of("+-");
  const char* const first = peer.data() + (sign == std::string::npos ? peer.size() : sign + 1);
  const char* const last = peer.data() + peer.size();
  const auto [end, error] = std::from_chars(first, last, p.offset);
  if (sign == std::string::npos || sign == 0 || error != std::errc() || end != last ||
      p.offset <= 0) {
    f.problem(
        fmt::format("\"peer\": expected an axis and an offset such as \"pp+1\", got \"{}\"", peer));
    return p;
  }
  if (peer[sign] == '-') p.offset = -p.offset;
  p.axis = std::max(0, axis_of(peer.substr(0, sign), "peer", f, scope));
  return p;
}

Memory read_memory(Fields& f) {
  static const std::vector<std::string> kDirections = {"load", "store"};
  static const std::vector<std::string> kSpaces = {"hbm", "host", "storage"};
  Memory m;
  m.store = f.choice("dir", kDirections, true) == 1;
  m.space = static_cast<MemorySpace>(std::max(0, f.choice("space", kSpaces, true)));
  m.bytes = f.require_integer("bytes");
  return m;
}

Opaque read_opaque(Fields& f) {
  Opaque o;
  o.flop = f.integer_or("flop", 0, 0);
  o.bytes = f.integer_or("bytes", 0, 0);
  o.ns = f.integer_or("ns", 0, 0);
  o.dtype = f.dtype("dtype");
  if (o.flop == 0 && o.bytes == 0 && o.ns == 0)
    f.problem("needs at least one of \"flop\", \"bytes\" and \"ns\" above 0");
  return o;
}

std::int32_t read_block_ref(Fields& f, const OpScope& scope) {
  const std::string id = f.require_id("block");
  if (id.empty()) return -1;
  const auto at = scope.blocks->find(id);
  if (at != scope.blocks->end()) return at->second;
  if (id == scope.open_block) {
    f.problem(fmt::format("block \"{}\" calls itself", id));
    return -1;
  }
  std::vector<std::string> names;
  for (const auto& [name, index] : *scope.blocks) names.push_back(name);
  f.problem(fmt::format("block \"{}\" is not defined before this line{}", id,
                        base::did_you_mean(id, names)));
  return -1;
}

void read_deps(Fields& f, Op& op, const OpScope& scope) {
  for (const std::string& id : f.ids("deps")) {
    const auto at = scope.ids->find(id);
    const std::int32_t index =
        id == "^" ? kEntry : (at == scope.ids->end() ? kEntry - 1 : at->second);
    if (index < kEntry) {
      std::vector<std::string> names;
      for (const Op& earlier : scope.block->ops) names.push_back(earlier.id);
      f.problem(fmt::format("\"deps\": no earlier op \"{}\" in this block{}", id,
                            base::did_you_mean(id, names)));
    } else if (std::find(op.deps.begin(), op.deps.end(), index) != op.deps.end()) {
      f.problem(fmt::format("\"deps\": \"{}\" is given twice", id));
    } else {
      op.deps.push_back(index);
    }
  }
  if (op.deps.empty()) op.deps.push_back(kEntry);
}

void read_when(Fields& f, Op& op, const OpScope& scope) {
  const auto object = f.object("when");
  if (!object) return;
  for (const auto& [key, value] : *object) {
    const int axis = axis_of(key, "when", f, scope);
    if (axis < 0) continue;
    const std::int64_t size = scope.header->mesh.axes()[static_cast<std::size_t>(axis)].size;
    std::int64_t coordinate = -1;
    const bool integer = value.type() == simdjson::dom::element_type::INT64 &&
                         value.get(coordinate) == simdjson::SUCCESS;
    if (!integer || coordinate < 0 || coordinate >= size)
      f.problem(fmt::format("\"when\": \"{}\" has coordinates 0 to {}, got {}", key, size - 1,
                            shown(value)));
    else if (std::any_of(op.when.begin(), op.when.end(),
                         [&](const auto& w) { return w.first == axis; }))
      f.problem(fmt::format("\"when\": field \"{}\" is given twice", key));
    else
      op.when.emplace_back(axis, coordinate);
  }
}

Body read_body(const std::string& kind, Fields& f, const Op& op, const OpScope& scope) {
  if (kind == "gemm") return read_gemm(f);
  if (kind == "attn") return read_attention(f);
  if (kind == "vec") return read_vec(f, op, scope);
  if (kind == "scan") return read_scan(f);
  if (kind == "coll") return read_collective(f, scope);
  if (kind == "send" || kind == "recv") return read_p2p(kind == "send", f, scope);
  if (kind == "mem") return read_memory(f);
  if (kind == "delay") return Delay{f.require_integer("ns", 0)};
  if (kind == "opaque") return read_opaque(f);
  if (kind == "call") return Call{read_block_ref(f, scope)};
  TRN3SIM_CHECK(kind == "repeat", kind);
  Repeat r{read_block_ref(f, scope), 1};
  r.times = f.require_integer("times");
  return r;
}

}  // namespace

std::string_view collective_name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::AllReduce:
      return "all_reduce";
    case CollectiveKind::AllGather:
      return "all_gather";
    case CollectiveKind::ReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::AllToAll:
      return "all_to_all";
    case CollectiveKind::Broadcast:
      return "broadcast";
    case CollectiveKind::Barrier:
      break;
  }
  return "barrier";
}

const std::vector<std::string>& op_names() {
  static const std::vector<std::string> kNames = {"gemm",  "attn",   "vec",  "scan",
                                                  "coll",  "send",   "recv", "mem",
                                                  "delay", "opaque", "call", "repeat"};
  return kNames;
}

Op read_op(const std::string& kind, Fields& f, const OpScope& scope) {
  Op op;
  op.id = f.require_id("id");
  f.set_what(kind, op.id);
  if (!op.id.empty() && scope.ids->contains(op.id))
    f.problem(fmt::format(
        "the id is used in this block before (line {})",
        scope.block->ops[static_cast<std::size_t>(scope.ids->find(op.id)->second)].line));
  read_deps(f, op, scope);
  read_when(f, op, scope);
  op.alloc = f.integer_or("alloc", 0, 0);
  op.free = f.integer_or("free", 0, 0);
  op.recompute = f.flag("recompute");
  op.body = read_body(kind, f, op, scope);
  f.finish();
  return op;
}

}  // namespace trn3sim::trace
