// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/compile/kernel.hpp"

#include "trn3sim/base/error.hpp"
#include "trn3sim/base/text.hpp"

#include "compile/kernel/gemm_operand.hpp"
#include "compile/kernel/kernels.hpp"
#include <fmt/format.h>

namespace trn3sim::compile {
namespace {

constexpr std::int64_t kMostSparsity = 4;  // of the documented 16-bit rate

void require_positive(const KernelSpec& spec, base::Problems& problems, const char* what,
                      std::int64_t value) {
  if (value < 1)
    problems.add(spec.label(), fmt::format("{} is {}; expected at least 1", what, value));
}

// The array must support the format of a GEMM or an attention.
void require_format(const KernelSpec& spec, const config::ChipSpec& chip, base::Problems& problems,
                    base::DType dtype) {
  if (chip.tensor.macs_per_pe_cycle[static_cast<std::size_t>(dtype)] > 0) return;
  std::string supported;
  for (std::size_t t = 0; t < base::kDTypes; ++t) {
    if (chip.tensor.macs_per_pe_cycle[t] <= 0) continue;
    supported +=
        fmt::format("{}{}", supported.empty() ? "" : ", ", base::name(static_cast<base::DType>(t)));
  }
  problems.add(spec.label(), fmt::format("TensorE of {} does not support {}; supported: {}",
                                         chip.name, base::name(dtype), supported));
}

// MX results need the quantize_mx instruction, which makes MXFP8 only.
void require_quantize(const KernelSpec& spec, const config::ChipSpec& chip,
                      base::Problems& problems) {
  if (spec.out != base::DType::Mxfp8 && spec.out != base::DType::Mxfp4) return;
  if (chip.vector.quantize_speedup <= 0) {
    problems.add(spec.label(), fmt::format("VectorE of {} cannot make {} results", chip.name,
                                           base::name(spec.out)));
  } else if (spec.out == base::DType::Mxfp4) {
    problems.add(spec.label(), "quantize_mx makes mxfp8 results only, not mxfp4");
  }
}

// What is done to the operands of a GEMM in SBUF, and compressed weights.
void require_operands(const KernelSpec& spec, const config::ChipSpec& chip,
                      base::Problems& problems) {
  const auto is_mx = [](base::DType t) {
    return t == base::DType::Mxfp8 || t == base::DType::Mxfp4;
  };
  for (const bool a : {true, false}) {
    const GemmOperand o = operand_of(spec, a);
    if (is_mx(o.hbm) && (o.convert || o.transpose)) {
      problems.add(spec.label(),
                   fmt::format("an operand in {} cannot be {} in SBUF", base::name(o.hbm),
                               o.convert ? "converted" : "transposed"));
    } else if (o.convert && o.array == base::DType::Mxfp4) {
      problems.add(spec.label(), "quantize_mx makes mxfp8 only, not mxfp4");
    } else if (o.convert && is_mx(o.array) && chip.vector.quantize_speedup <= 0) {
      problems.add(spec.label(), fmt::format("VectorE of {} has no quantize_mx", chip.name));
    }
  }
  if (spec.sparse_block == 0) return;
  if (spec.sparse_kept < 1 || spec.sparse_block % spec.sparse_kept != 0 ||
      spec.sparse_block / spec.sparse_kept > kMostSparsity || spec.sparse_block > 16) {
    problems.add(spec.label(), fmt::format("no sparsity of {} values in {}", spec.sparse_kept,
                                           spec.sparse_block));
  }
  if (!chip.tensor.sparse_weights || base::element_bits(spec.in) == 8 || is_mx(spec.in))
    problems.add(spec.label(),
                 fmt::format("{} has no sparse weights in {}", chip.name, base::name(spec.in)));
}

void check(const KernelSpec& spec, const config::ChipSpec& chip) {
  base::Problems problems;
  require_positive(spec, problems, "cores", spec.cores);
  switch (spec.kind) {
    case KernelKind::Gemm:
      require_positive(spec, problems, "m", spec.m);
      require_positive(spec, problems, "n", spec.n);
      require_positive(spec, problems, "k", spec.k);
      require_positive(spec, problems, "batch", spec.batch);
      require_quantize(spec, chip, problems);
      require_format(spec, chip, problems, spec.in);
      require_operands(spec, chip, problems);
      break;
    case KernelKind::Vector:
      require_positive(spec, problems, "elems", spec.elems);
      if (spec.fn == "cast") require_quantize(spec, chip, problems);
      if (spec.rd < 0 || spec.wr < 0) problems.add(spec.label(), "negative HBM bytes");
      break;
    case KernelKind::AttentionForward:
    case KernelKind::AttentionBackward:
      require_positive(spec, problems, "batch", spec.batch);
      require_positive(spec, problems, "heads", spec.heads);
      require_positive(spec, problems, "kv_heads", spec.kv_heads);
      require_positive(spec, problems, "sq", spec.sq);
      require_positive(spec, problems, "skv", spec.skv);
      require_positive(spec, problems, "d", spec.d);
      if (spec.kv_heads > 0 && spec.heads % spec.kv_heads != 0) {
        problems.add(spec.label(), fmt::format("{} heads are not a multiple of {} kv heads",
                                               spec.heads, spec.kv_heads));
      }
      if (spec.causal && spec.skv < spec.sq) {
        problems.add(spec.label(),
                     fmt::format("causal attention of {} queries over {} keys; expected at "
                                 "least as many keys",
                                 spec.sq, spec.skv));
      }
      if (spec.in == base::DType::Mxfp8 || spec.in == base::DType::Mxfp4) {
        problems.add(spec.label(),
                     fmt::format("attention in {} is not available; use bf16, fp16 or fp8",
                                 base::name(spec.in)));
      }
      require_format(spec, chip, problems, spec.in);
      break;
    case KernelKind::Copy:
      require_positive(spec, problems, "partitions", spec.m);
      require_positive(spec, problems, "bytes", spec.k);
      require_positive(spec, problems, "count", spec.n);
      require_positive(spec, problems, "queues", spec.batch);
      break;
    case KernelKind::Scan:
      require_positive(spec, problems, "batch", spec.batch);
      require_positive(spec, problems, "channels", spec.m);
      require_positive(spec, problems, "state", spec.n);
      require_positive(spec, problems, "seq", spec.k);
      if (base::element_bits(spec.in) < 16)
        problems.add(spec.label(), fmt::format("a scan in {} is not available; use fp32 or bf16",
                                               base::name(spec.in)));
      require_format(spec, chip, problems, spec.in);
      break;
  }
  problems.throw_if_any();
}

}  // namespace

std::string KernelSpec::label() const {
  std::string text;
  switch (kind) {
    case KernelKind::Gemm:
      text = batch > 1 ? fmt::format("gemm {}x {}x{}x{}", batch, m, n, k)
                       : fmt::format("gemm {}x{}x{}", m, n, k);
      text += fmt::format(" {}", base::name(in));
      if (a_weight && a_format == base::DType::Mxfp4) text += " (A mxfp4)";
      if (b_weight && b_format == base::DType::Mxfp4) text += " (B mxfp4)";
      if (conversion == Conversion::Free) text += " (free conversion)";
      if (conversion == Conversion::None) text += " (no conversion)";
      if (sparse_block > 0) text += fmt::format(" {}:{} sparse", sparse_kept, sparse_block);
      if (out != in) text += fmt::format("->{}", base::name(out));
      if (accumulate) text += " accumulate";
      for (const Epilogue& e : epilogues) text += " +" + e.fn;
      return text;
    case KernelKind::Vector:
      text = fmt::format("{} {} {}", fn, base::format_si(static_cast<double>(elems), "elems"),
                         base::name(in));
      for (const Epilogue& e : epilogues) text += " +" + e.fn;
      return text;
    case KernelKind::AttentionForward:
    case KernelKind::AttentionBackward:
      text = fmt::format("{}attention {} b{} h{}", flash ? "flash_" : "",
                         kind == KernelKind::AttentionForward ? "fwd" : "bwd", batch, heads);
      if (kv_heads != heads) text += fmt::format("/{}", kv_heads);
      text += fmt::format(" {}x{} d{}{} {}", sq, skv, d, causal ? " causal" : "", base::name(in));
      return text;
    case KernelKind::Copy:
      return fmt::format("copy {} {}x {}x{} B", fn, n, m, k);
    case KernelKind::Scan:
      return fmt::format("scan b{} c{} n{} {} {}", batch, m, n, k, base::name(in));
  }
  return text;
}

models::TileProgram compile_kernel(const KernelSpec& spec, const config::ChipSpec& chip,
                                   const config::MappingSpec* mapping) {
  check(spec, chip);
  TRN3SIM_CHECK(mapping == nullptr || spec.kind == KernelKind::Gemm,
                "only a gemm has explicit mappings");
  models::TileProgram program;
  switch (spec.kind) {
    case KernelKind::Gemm:
      program = compile_gemm(spec, chip, mapping);
      break;
    case KernelKind::Vector:
      program = compile_vector(spec, chip);
      break;
    case KernelKind::AttentionForward:
      program = spec.flash ? compile_attention_forward(spec, chip)
                           : compile_unfused_attention(spec, chip);
      break;
    case KernelKind::AttentionBackward:
      program = spec.flash ? compile_attention_backward(spec, chip)
                           : compile_unfused_attention(spec, chip);
      break;
    case KernelKind::Copy:
      program = compile_copy(spec, chip);
      break;
    case KernelKind::Scan:
      program = compile_scan(spec, chip);
      break;
  }
  if (program.sbuf_bytes_per_partition > chip.sbuf.usable_per_partition.count() ||
      program.psum_banks > chip.psum.banks) {
    throw base::UserError(
        spec.label(),
        fmt::format("needs {} of {} SBUF bytes per partition and {} of {} "
                    "PSUM banks",
                    program.sbuf_bytes_per_partition, chip.sbuf.usable_per_partition.count(),
                    program.psum_banks, chip.psum.banks));
  }
  for (const models::CoreProgram& core : program.cores)
    if (static_cast<std::int64_t>(core.semaphores.size()) > chip.sync.semaphores)
      throw base::UserError(spec.label(),
                            fmt::format("needs {} semaphores; chip.sync.semaphores gives {}",
                                        core.semaphores.size(), chip.sync.semaphores));
  return program;
}

std::string describe_mapping(const KernelSpec& spec, const config::ChipSpec& chip,
                             const config::MappingSpec* mapping) {
  check(spec, chip);
  const bool attention =
      spec.kind == KernelKind::AttentionForward || spec.kind == KernelKind::AttentionBackward;
  if (attention && !spec.flash) return describe_unfused_attention(spec, chip);
  switch (spec.kind) {
    case KernelKind::Gemm:
      return describe_gemm(spec, chip, mapping);
    case KernelKind::Vector:
      return describe_vector(spec, chip);
    case KernelKind::AttentionForward:
      return describe_attention_forward(spec, chip);
    case KernelKind::AttentionBackward:
      return describe_attention_backward(spec, chip);
    case KernelKind::Copy:
      return describe_copy(spec, chip);
    case KernelKind::Scan:
      return describe_scan(spec, chip);
  }
  return spec.label();
}

}  // namespace trn3sim::compile
