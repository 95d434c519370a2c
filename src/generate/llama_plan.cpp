// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "generate/llama_plan.hpp"

#include <algorithm>
#include <array>

#include "trn3sim/base/error.hpp"
#include "trn3sim/base/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace trn3sim::generate {
namespace {

struct Preset {
  std::string_view name;
  LlamaDims dims;
};
// Sources: the models' config.json on Hugging Face (meta-llama/Llama-2-7b-hf, -13b-hf, -70b-hf,
// meta-llama/Llama-3.1-8B, -70B): num_hidden_layers, hidden_size, num_attention_heads,
// num_key_value_heads, intermediate_size, vocab_size.
constexpr std::array<Preset, 5> kPresets = {{{"llama2-7b", {32, 4096, 32, 32, 11008, 32000}},
                                             {"llama2-13b", {40, 5120, 40, 40, 13824, 32000}},
                                             {"llama2-70b", {80, 8192, 64, 8, 28672, 32000}},
                                             {"llama3.1-8b", {32, 4096, 32, 8, 14336, 128256}},
                                             {"llama3.1-70b", {80, 8192, 64, 8, 28672, 128256}}}};

constexpr std::int64_t kMaxDimension = std::int64_t{1} << 30;

bool tp_works(const LlamaPlan& p, std::int64_t tp) {
  const LlamaDims& d = p.dims;
  return d.heads % tp == 0 && d.kv_heads % tp == 0 && d.ffn % tp == 0 && d.vocab % tp == 0 &&
         p.seq % tp == 0;
}

// The tp nearest to the plan's that works; the smaller of two equally near ones. 1 always works.
std::int64_t nearest_tp(const LlamaPlan& p) {
  std::int64_t best = 1;
  for (std::int64_t tp = 1; tp <= p.dims.kv_heads; ++tp)
    if (tp_works(p, tp) && std::abs(tp - p.tp) < std::abs(best - p.tp)) best = tp;
  return best;
}

void check_tp(const LlamaPlan& p, base::Problems& problems) {
  if (tp_works(p, p.tp)) return;
  const std::array<std::pair<std::string_view, std::int64_t>, 5> split = {
      {{"heads", p.dims.heads},
       {"kv_heads", p.dims.kv_heads},
       {"ffn", p.dims.ffn},
       {"vocab", p.dims.vocab},
       {"seq", p.seq}}};
  std::vector<std::string> broken;
  for (const auto& [name, size] : split)
    if (size % p.tp != 0) broken.push_back(fmt::format("{} {}", name, size));
  problems.add("llama: tp", fmt::format("{} does not divide {}; the nearest that works is {}", p.tp,
                                        fmt::join(broken, ", "), nearest_tp(p)));
}

}  // namespace

std::string_view recompute_name(Recompute recompute) {
  switch (recompute) {
    case Recompute::None:
      return "none";
    case Recompute::Selective:
      return "selective";
    case Recompute::Full:
      return "full";
  }
  return "";
}

std::int64_t LlamaDims::parameters_per_rank(std::int64_t tp) const {
  return layers * layer_parameters(*this, tp) + 2 * (vocab / tp) * hidden + hidden;
}

std::int64_t LlamaDims::parameters() const {
  return parameters_per_rank(1);
}

std::int64_t layer_parameters(const LlamaDims& d, std::int64_t tp) {
  const std::int64_t qkv = (d.heads + 2 * d.kv_heads) * d.head_dim() / tp * d.hidden;
  const std::int64_t o = d.heads * d.head_dim() / tp * d.hidden;
  const std::int64_t mlp = 3 * (d.ffn / tp) * d.hidden;
  return qkv + o + mlp + 2 * d.hidden;
}

std::vector<std::string> llama_preset_names() {
  std::vector<std::string> names;
  for (const Preset& p : kPresets) names.emplace_back(p.name);
  return names;
}

LlamaDims llama_preset(std::string_view name) {
  for (const Preset& p : kPresets)
    if (p.name == name) return p.dims;
  const std::vector<std::string> names = llama_preset_names();
  throw base::UserError("llama: preset",
                        fmt::format("unknown model \"{}\"{}; known: {}", name,
                                    base::did_you_mean(name, names), fmt::join(names, ", ")));
}

void check_plan(const LlamaPlan& p) {
  base::Problems problems;
  const std::array<std::pair<std::string_view, std::int64_t>, 11> sizes = {
      {{"layers", p.dims.layers},
       {"hidden", p.dims.hidden},
       {"heads", p.dims.heads},
       {"kv_heads", p.dims.kv_heads},
       {"ffn", p.dims.ffn},
       {"vocab", p.dims.vocab},
       {"tp", p.tp},
       {"dp", p.dp},
       {"seq", p.seq},
       {"mbs", p.mbs},
       {"gbs", p.gbs}}};
  for (const auto& [name, size] : sizes)
    if (size < 1 || size > kMaxDimension)
      problems.add(fmt::format("llama: {}", name),
                   fmt::format("expected 1 to {}, got {}", kMaxDimension, size));
  problems.throw_if_any();
  if (p.dims.hidden % p.dims.heads != 0)
    problems.add("llama: heads",
                 fmt::format("{} does not divide hidden {}", p.dims.heads, p.dims.hidden));
  if (p.dims.heads % p.dims.kv_heads != 0)
    problems.add("llama: kv_heads",
                 fmt::format("{} does not divide heads {}", p.dims.kv_heads, p.dims.heads));
  check_tp(p, problems);
  const std::int64_t step = p.dp * p.mbs;
  if (p.gbs % step != 0) {
    const std::int64_t below = p.gbs / step * step;
    const std::int64_t near =
        below > 0 && p.gbs - below <= below + step - p.gbs ? below : below + step;
    problems.add("llama: gbs", fmt::format("{} is not a multiple of dp x mbs = {} x {} = {}; the "
                                           "nearest that works is {}",
                                           p.gbs, p.dp, p.mbs, step, near));
  }
  if (p.bucket_bytes < 4 * p.dp || p.all_reduce_bucket_bytes < 4)
    problems.add("llama: bucket_bytes",
                 fmt::format("expected at least 4 bytes per data-parallel rank = {}, got {}",
                             4 * p.dp, p.bucket_bytes));
  problems.throw_if_any();
}

}  // namespace trn3sim::generate
