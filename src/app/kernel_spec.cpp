// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include "trn3sim/base/error.hpp"
#include "trn3sim/base/text.hpp"
#include "trn3sim/trace/program.hpp"

#include "app/kernel_command.hpp"
#include <fmt/format.h>

namespace trn3sim::app {
namespace {

using base::DType;
using compile::KernelKind;
using compile::KernelSpec;

constexpr const char* kPlace = "command line";

class SpecMaker {
 public:
  SpecMaker(const RunKernel& options, const config::RunSpec& run) : o_(options), run_(run) {}

  KernelSpec make() {
    common();
    if (o_.kind == "gemm")
      gemm();
    else if (o_.kind == "attention")
      attention();
    else if (o_.kind == "scan")
      scan();
    else if (o_.kind == "copy")
      copy();
    else
      vector();
    problems_.throw_if_any();
    return spec_;
  }

 private:
  std::int64_t number(const char* name, std::int64_t otherwise) const {
    const auto it = o_.numbers.find(name);
    return it == o_.numbers.end() ? otherwise : it->second;
  }
  std::optional<DType> format(const char* name) const {
    const auto it = o_.texts.find(name);
    return it == o_.texts.end() ? std::nullopt : base::dtype_from(it->second);
  }
  bool flag(const char* name) const { return o_.flags.count(name) > 0; }
  void wrong(std::string what) { problems_.add(kPlace, std::move(what)); }

  void common() {
    const config::CompileSpec& c = run_.compile;
    spec_.flash = c.flash_attention;
    spec_.fast_exponential = c.fast_exponential;
    spec_.fusion = c.fusion;
    spec_.memory_reuse = c.memory_reuse;
    spec_.double_accumulators = c.double_accumulators;
    spec_.streaming_loads = c.streaming_loads;
    spec_.in = format("dtype").value_or(DType::Bf16);
    spec_.cores = number("cores", 1);
    if (const std::int64_t there = run_.system.chip.cores_per_stack(); spec_.cores > there)
      wrong(fmt::format("--cores is {}; {} has {} cores on an HBM stack", spec_.cores,
                        run_.system.chip.name, there));
    if (run_.precision.matmul != "trace" && o_.kind != "gemm")
      wrong("--set precision.matmul: only a gemm has it; give --dtype");
    if (!run_.precision.ops.empty() || run_.precision.parts != "all")
      wrong("--set precision.ops and precision.parts are about the ops of a trace");
  }

  // Tensors of so many elements must fit the stack; `doubles` cannot overflow.
  void fits(const char* what, double elements, DType format) {
    const double bytes = elements * base::element_bits(format) / 8;
    const auto capacity = static_cast<double>(run_.system.chip.hbm.capacity.count());
    if (bytes <= capacity) return;
    wrong(fmt::format("{} would be {}; an HBM stack of {} has {}", what, base::format_si(bytes, "B"),
                      run_.system.chip.name, base::format_si(capacity, "B")));
  }
  template <class... N>
  static double product(N... sizes) {
    return (static_cast<double>(sizes) * ...);
  }

  void gemm() {
    spec_.kind = KernelKind::Gemm;
    spec_.m = number("m", 0);
    spec_.n = number("n", 0);
    spec_.k = number("k", 0);
    spec_.batch = number("batch", 1);
    spec_.a_format = format("a-format");
    spec_.b_format = format("b-format");
    const DType given = spec_.in;
    if (run_.precision.matmul != "trace") convert_to(*base::dtype_from(run_.precision.matmul));
    spec_.out = format("out").value_or(base::element_bits(given) > 8 ? given : DType::Bf16);
    spec_.a_transposed = flag("ta");
    spec_.b_transposed = flag("tb");
    spec_.accumulate = flag("accumulate");
    sparsity();
    fits("A", product(spec_.batch, spec_.m, spec_.k), spec_.a_format.value_or(spec_.in));
    fits("B", product(spec_.batch, spec_.k, spec_.n), spec_.b_format.value_or(spec_.in));
    fits("C", product(spec_.batch, spec_.m, spec_.n), spec_.out);
    if (!problems_.empty()) return;
    for (const std::string& fn : o_.fuse) {
      if (function(fn, "--fuse") != nullptr)
        spec_.epilogues.push_back({fn, spec_.batch * spec_.m * spec_.n});
    }
  }

  // As of a step: operands lie in the format of --dtype; MXFP4 weights are kept so.
  void convert_to(DType format) {
    const DType there = spec_.in;
    spec_.in = format == DType::Mxfp4 ? DType::Mxfp8 : format;
    if (!spec_.a_format) spec_.a_format = there;
    if (!spec_.b_format) spec_.b_format = format == DType::Mxfp4 ? format : there;
  }

  void sparsity() {
    std::string text = run_.precision.sparsity == "none" ? "" : run_.precision.sparsity;
    if (const auto it = o_.texts.find("sparsity"); it != o_.texts.end()) text = it->second;
    if (text.empty()) return;
    const std::size_t colon = text.find(':');
    const auto number_at = [&](std::size_t begin, std::size_t end, std::int64_t& value) {
      const auto [at, error] = std::from_chars(text.data() + begin, text.data() + end, value);
      return error == std::errc() && at == text.data() + end && value > 0 && value < 1000;
    };
    if (colon != std::string::npos && number_at(0, colon, spec_.sparse_kept) &&
        number_at(colon + 1, text.size(), spec_.sparse_block))
      return;
    wrong(fmt::format("--sparsity is \"{}\", expected KEPT:BLOCK, for example 4:16", text));
  }

  void attention() {
    spec_.kind = flag("backward") ? KernelKind::AttentionBackward : KernelKind::AttentionForward;
    spec_.batch = number("batch", 1);
    spec_.heads = number("heads", 0);
    spec_.kv_heads = number("kv-heads", spec_.heads);
    spec_.sq = number("seq", 0);
    spec_.skv = number("kv-seq", spec_.sq);
    spec_.d = number("head-dim", 0);
    spec_.causal = flag("causal");
    spec_.out = spec_.in;
    fits("Q", product(spec_.batch, spec_.heads, spec_.sq, spec_.d), spec_.in);
    fits("K", product(spec_.batch, spec_.kv_heads, spec_.skv, spec_.d), spec_.in);
  }

  const trace::VecFunction* function(const std::string& name, const char* option) {
    const trace::VecFunction* f = trace::vec_function(name);
    if (f != nullptr) return f;
    const std::vector<std::string> names = trace::vec_function_names();
    wrong(fmt::format("{} \"{}\" is no vector function{}", option, name,
                      base::did_you_mean(name, names)));
    return nullptr;
  }

  void vector() {
    spec_.kind = KernelKind::Vector;
    spec_.fn = o_.texts.at("fn");
    spec_.out = spec_.in;
    const double elements =
        o_.numbers.count("elems") > 0 ? product(number("elems", 0))
                                      : product(number("rows", 0), number("cols", 0));
    fits("a tensor", elements, spec_.in);
    const trace::VecFunction* const f = function(spec_.fn, "--fn");
    if (f == nullptr || !problems_.empty()) return;
    spec_.elems = o_.numbers.count("elems") > 0 ? number("elems", 0)
                                                : number("rows", 0) * number("cols", 0);
    const std::int64_t tensor = base::storage_bytes(spec_.in, spec_.elems);
    spec_.rd = f->inputs * tensor;
    spec_.wr = f->outputs * tensor;
  }

  void scan() {
    spec_.kind = KernelKind::Scan;
    spec_.batch = number("batch", 1);
    spec_.m = number("channels", 0);
    spec_.n = number("state", 0);
    spec_.k = number("seq", 0);
    spec_.out = spec_.in;
    fits("delta", product(spec_.batch, spec_.m, spec_.k), spec_.in);
    fits("B", product(spec_.batch, spec_.n, spec_.k), spec_.in);
  }

  void copy() {
    spec_.kind = KernelKind::Copy;
    spec_.m = number("partitions", 128);
    spec_.k = number("bytes", 0);
    spec_.n = number("count", 1);
    spec_.batch = number("queues", 1);
    const auto it = o_.texts.find("direction");
    spec_.fn = it == o_.texts.end() ? "load" : it->second;
    if (spec_.fn != "load" && spec_.fn != "store" && spec_.fn != "both")
      wrong(fmt::format("--direction is \"{}\", expected load, store or both", spec_.fn));
    fits("all tiles", product(spec_.m, spec_.k, spec_.n), DType::Fp8);
    const std::int64_t usable = run_.system.chip.sbuf.usable_per_partition.count();
    if (spec_.k > usable)
      wrong(fmt::format("--bytes is {}; an SBUF partition of {} holds {}", spec_.k,
                        run_.system.chip.name, usable));
  }

  const RunKernel& o_;
  const config::RunSpec& run_;
  KernelSpec spec_;
  base::Problems problems_;
};

}  // namespace

KernelSpec kernel_spec(const RunKernel& options, const config::RunSpec& run) {
  return SpecMaker(options, run).make();
}

}  // namespace trn3sim::app
