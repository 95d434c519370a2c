// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "precision.hpp"

#include <algorithm>
#include <charconv>

#include "compile/kernel/gemm_operand.hpp"
#include "op_names.hpp"
#include <fmt/format.h>

namespace trn3sim::compile {
namespace {

using base::DType;

bool is_mx(DType t) {
  return t == DType::Mxfp8 || t == DType::Mxfp4;
}

// The optimizers that make the weights of the next step.
bool updates_weights(const trace::Vec& v) {
  return v.fn == "adamw" || v.fn == "lamb";
}

std::int64_t share(std::int64_t n, std::int64_t parts) {
  return (n + parts - 1) / parts;
}

// How often rank 0 runs each block in a step. Ops call blocks that stand before their own; block 0
// is the top level.
std::vector<Int128> runs_of_blocks(const trace::Program& program) {
  std::vector<Int128> runs(program.blocks.size(), 0);
  if (runs.empty()) return runs;
  runs[0] = 1;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::size_t b = i == 0 ? 0 : runs.size() - i;
    for (const trace::Op& op : program.blocks[b].ops) {
      if (!trace::runs_on(program, op, 0)) continue;
      if (const auto* c = std::get_if<trace::Call>(&op.body))
        runs[static_cast<std::size_t>(c->block)] += runs[b];
      if (const auto* r = std::get_if<trace::Repeat>(&op.body))
        runs[static_cast<std::size_t>(r->block)] += runs[b] * r->times;
    }
  }
  return runs;
}

std::int64_t number(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

Precision::Precision(const trace::Program& program, const config::RunSpec& run,
                     base::Problems& problems)
    : header_(program.header.dtype), trace_(header_) {
  Format all = format_of(run.precision.matmul);
  all.follow_trace = true;
  // Runs in another 2-byte format keep everything in it.
  if (base::element_bits(trace_) == 16 && base::element_bits(all.weight) == 16) trace_ = all.weight;
  formats_.push_back(all);
  choose_parts(run.precision.parts);
  for (const config::OpFormat& named : run.precision.formats)
    formats_.push_back(format_of(named.matmul));
  read_sparsity(run.precision.sparsity);
  find_names(program, run, problems);
  share_weights(program);
  if (run.precision.matmul != "trace")
    refused_ = !check(all, "precision.matmul", run.precision.matmul, run.system.chip, problems);
  for (std::size_t i = 1; i < formats_.size(); ++i) {
    const config::OpFormat& named = run.precision.formats[i - 1];
    if (named.matmul != "trace" &&
        !check(formats_[i], "precision.ops", named.matmul, run.system.chip, problems))
      refused_ = true;
  }
  if (!check_sparsity(run, problems)) refused_ = true;
}

Precision::Format Precision::format_of(const std::string& name) const {
  Format format{header_, header_};
  if (const auto given = base::dtype_from(name)) {
    format.array = format.weight = *given;
    if (format.weight == DType::Mxfp4) format.array = DType::Mxfp8;
    format.follow_trace = false;
  }
  return format;
}

// The parts that take no effect: weights as in the trace, conversions without work.
void Precision::choose_parts(const std::string& parts) {
  Format& all = formats_.front();
  if (parts == "all") return;
  all.conversion = parts == "rate" ? Conversion::None : Conversion::Free;
  if (parts == "rate") all.weight = trace_;
}

void Precision::read_sparsity(const std::string& pattern) {
  const std::size_t colon = pattern.find(':');
  if (colon == std::string::npos) return;
  sparse_kept_ = number(std::string_view(pattern).substr(0, colon));
  sparse_block_ = number(std::string_view(pattern).substr(colon + 1));
}

void Precision::find_names(const trace::Program& program, const config::RunSpec& run,
                           base::Problems& problems) {
  std::vector<std::string> names;
  for (const config::OpFormat& named : run.precision.formats) names.push_back(named.op);
  for (const trace::Block& block : program.blocks) format_of_op_.emplace_back(block.ops.size(), 0);
  for (const NamedGemm& found : find_gemms(program, names, problems))
    format_of_op_[found.block][found.op] = found.name + 1;
}

void Precision::share_weights(const trace::Program& program) {
  for (const trace::MemoryEntry& entry : program.header.memory) {
    if (entry.kind == "weights")
      weights_ += entry.bytes * 8 / base::element_bits(program.header.dtype);
  }
  // Per orientation and format; the last one: GEMMs that keep their dtype and need no copies.
  std::array<std::vector<Int128>, kOrientations> used;
  for (auto& of : used) of.assign(formats_.size() + 1, 0);
  const std::vector<Int128> runs = runs_of_blocks(program);
  for (std::size_t b = 0; b < runs.size(); ++b) {
    const std::vector<trace::Op>& ops = program.blocks[b].ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (!trace::runs_on(program, ops[i], 0)) continue;
      if (const auto* v = std::get_if<trace::Vec>(&ops[i].body);
          v != nullptr && updates_weights(*v))
        updated_ += runs[b] * v->elems;
      const auto* g = std::get_if<trace::Gemm>(&ops[i].body);
      if (g == nullptr || ops[i].recompute) continue;
      const bool a = g->a == trace::Role::Weight, w = g->b == trace::Role::Weight;
      if (!a && !w) continue;
      const bool backward = (a ? g->b : g->a) == trace::Role::Gradient;
      const std::size_t format = keeps_dtype({b, i}, *g) ? formats_.size() : format_of_op_[b][i];
      used[backward ? 1 : 0][first_like(format)] += runs[b] * g->k * g->batch * (a ? g->m : g->n);
    }
  }
  if (weights_ == 0) weights_ = static_cast<std::int64_t>(updated_);
  for (std::size_t o = 0; o < kOrientations; ++o) {
    Int128 total = 0;
    for (const Int128 n : used[o]) total += n;
    while (total >> 62 != 0) {  // products with the number of weights fit into 128 bits
      total = 0;
      for (Int128& n : used[o]) total += n /= 2;
    }
    if (total == 0) used[o][0] = total = 1;  // no such GEMM: the run's format
    for (std::size_t f = 0; f < formats_.size(); ++f)
      formats_[f].weights[o] = static_cast<std::int64_t>(weights_ * used[o][f] / total);
  }
}

std::size_t Precision::first_like(std::size_t index) const {
  if (index == formats_.size()) return index;
  const Format& f = formats_[index];
  const auto like = [&](const Format& g) {
    return g.array == f.array && g.weight == f.weight && g.conversion == f.conversion;
  };
  return static_cast<std::size_t>(std::ranges::find_if(formats_, like) - formats_.begin());
}

bool Precision::check(const Format& format, const char* key, const std::string& name,
                      const config::ChipSpec& chip, base::Problems& problems) const {
  const auto rate = [&](DType t) {
    return chip.tensor.macs_per_pe_cycle[static_cast<std::size_t>(t)];
  };
  const DType weight = format_of(name).weight;
  if (rate(format.array) <= 0 || rate(weight) <= 0) {
    problems.add(key, fmt::format("{} cannot multiply {}", chip.name, name));
    return false;
  }
  if (is_mx(format.array) && chip.vector.quantize_speedup <= 0) {
    problems.add(
        key, fmt::format("{} has no quantize_mx, which {} needs for activations", chip.name, name));
    return false;
  }
  return true;
}

bool Precision::check_sparsity(const config::RunSpec& run, base::Problems& problems) const {
  if (sparse_block_ == 0) return true;
  const config::ChipSpec& chip = run.system.chip;
  if (!chip.tensor.sparse_weights) {
    problems.add("precision.sparsity", fmt::format("{} has no sparse weights", chip.name));
    return false;
  }
  if (sparse(formats_.front())) return true;
  problems.add("precision.sparsity",
               fmt::format("{} is for bf16, fp16 or tf32 products, but precision.matmul makes "
                           "them {}; use \"none\" or another format",
                           run.precision.sparsity, base::name(formats_.front().array)));
  return false;
}

const Precision::Format& Precision::at(OpPlace place) const {
  return formats_[format_of_op_[place.block][place.op]];
}

bool Precision::sparse(const Format& f) const {
  return sparse_block_ > 0 &&
         (f.array == DType::Bf16 || f.array == DType::Fp16 || f.array == DType::Tf32);
}

bool Precision::keeps_dtype(OpPlace place, const trace::Gemm& gemm) const {
  return gemm.dtype && at(place).follow_trace;
}

void Precision::apply(OpPlace place, const trace::Gemm& gemm, KernelSpec& spec) const {
  const Format& f = at(place);
  spec.in = f.array;
  if (!gemm.out) spec.out = trace_;
  if (f.array != trace_) {
    spec.a_format = spec.a_weight ? f.weight : trace_;
    spec.b_format = spec.b_weight ? f.weight : trace_;
    spec.conversion = f.conversion;
  }
  if (!spec.a_weight && !spec.b_weight) return;
  if (sparse(f)) {
    spec.sparse_kept = sparse_kept_;
    spec.sparse_block = sparse_block_;
  }
  if (!copies(f)) return;
  // The copies of weights lie in both orientations.
  if (spec.a_weight) spec.a_transposed = false;
  if (spec.b_weight) spec.b_transposed = false;
}

std::int64_t Precision::copy_bytes(const Format& format, std::int64_t elements) const {
  GemmOperand copy;
  copy.hbm = format.weight;
  if (sparse(format)) {
    copy.kept = sparse_kept_;
    copy.block = sparse_block_;
  }
  return copy.hbm_bytes(elements);
}

std::int64_t Precision::source_bytes(const Format& f) const {
  return base::storage_bytes(trace_, std::max(f.weights[0], f.weights[1]));
}

std::int64_t Precision::weight_copy_bytes() const {
  std::int64_t bytes = 0;
  for (const Format& f : formats_)
    if (copies(f))
      for (const std::int64_t elements : f.weights) bytes += copy_bytes(f, elements);
  return bytes;
}

const char* Precision::copy_function(const Format& format) const {
  if (sparse(format)) return "compress";
  if (format.weight == DType::Mxfp4) return "quantize_mxfp4";
  return format.weight == DType::Mxfp8 ? "quantize_mxfp8" : "cast_weights";
}

// Weights that have copies of one format in both orientations are read once for both.
void Precision::add_weight_copies(const trace::Vec& v, std::int64_t stacks,
                                  KernelSpec& spec) const {
  if (!updates_weights(v) || updated_ == 0) return;
  const auto part = [&](std::int64_t total) {
    return share(static_cast<std::int64_t>(Int128(total) * v.elems / updated_), stacks);
  };
  for (const Format& f : formats_) {
    if (!copies(f)) continue;
    const auto [forward, backward] = f.weights;
    const std::int64_t both = std::min(forward, backward);
    const auto add = [&](const char* orientation, std::int64_t elements) {
      if (part(elements) > 0)
        spec.epilogues.push_back(
            {fmt::format("{}{}{}", f.conversion == Conversion::Charged ? "" : "free_",
                         copy_function(f), orientation),
             part(elements)});
    };
    add("", both);
    add("_forward", forward - both);
    add("_backward", backward - both);
    if (part(std::max(forward, backward)) == 0) continue;
    spec.rd += part(source_bytes(f));
    spec.wr += part(copy_bytes(f, forward) + copy_bytes(f, backward));
  }
}

}  // namespace trn3sim::compile
