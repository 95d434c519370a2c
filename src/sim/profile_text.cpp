// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Keys and contents of profile entries. Fields are named through structured bindings: a field added
// to one of the structs does not compile until it is named here.
#include <array>
#include <charconv>

#include "trn3sim/base/sha256.hpp"
#include "trn3sim/config/chip_describe.hpp"

#include "profile_store.hpp"
#include <fmt/format.h>

namespace trn3sim::sim {
namespace {

constexpr std::string_view kMagic = "trn3sim kernel profile 1\n";
// Points of a curve; a count above is no profile.
constexpr std::int64_t kMostPoints = 1000;

// Appends "path value" lines for what a kernel can see of a chip.
class ChipText {
 public:
  static constexpr bool kReads = false;
  ChipText(std::string& out, std::string path) : out_(out), path_(std::move(path)) {}

  template <class S>
  void section(std::string_view key, S& spec, std::string_view) {
    static constexpr std::array<std::string_view, 4> kUnseen = {"on_chip", "collectives", "host",
                                                                "energy"};
    if (path_.empty())
      for (std::string_view unseen : kUnseen)
        if (key == unseen) return;
    ChipText inner(out_, fmt::format("{}{}.", path_, key));
    describe(inner, spec);
  }
  template <class S>
  void optional_section(std::string_view key, S& spec, bool present, std::string_view doc) {
    if (present) section(key, spec, doc);
  }
  void count(std::string_view key, std::int64_t value, std::int64_t, std::int64_t,
             std::string_view) {
    put(key, value);
  }
  void number(std::string_view key, double value, double, double, std::string_view) {
    if (!path_.empty() || key != "headline_bf16_tflops") put(key, value);
  }
  void share(std::string_view key, double value, std::string_view) { put(key, value); }
  void flag(std::string_view key, bool value, std::string_view) { put(key, value); }
  void text(std::string_view key, const std::string& value, std::string_view) {
    if (!path_.empty() || key != "name") put(key, value);
  }
  template <class Names>
  void choice(std::string_view key, const std::string& value, const Names&, std::string_view) {
    put(key, value);
  }
  void option_flag(std::string_view key, bool value, std::string_view) { put(key, value); }
  void option_text(std::string_view key, const std::string& value, std::string_view) {
    put(key, value);
  }
  template <class Names>
  void option_choice(std::string_view key, const std::string& value, const Names&,
                     std::string_view) {
    put(key, value);
  }
  template <class Q>
  void positive(std::string_view key, Q value, std::string_view) {
    put(key, value.count());
  }
  template <class Q>
  void non_negative(std::string_view key, Q value, std::string_view) {
    put(key, value.count());
  }

 private:
  template <class T>
  void put(std::string_view key, const T& value) {
    out_ += fmt::format("{}{} {}\n", path_, key, value);
  }
  std::string& out_;
  std::string path_;
};

// Texts carry their length, so no two kernels have the same text.
std::string kernel_text(const compile::KernelSpec& spec) {
  const auto& [kind, m, n, k, batch, heads, kv_heads, sq, skv, d, causal, fn, elems, rd, wr, in,
               out, accumulate, a_weight, b_weight, a_format, b_format, conversion, a_transposed,
               b_transposed, sparse_kept, sparse_block, flash, fast_exponential, memory_reuse,
               fusion, double_accumulators, streaming_loads, epilogues, cores] = spec;
  const auto format = [](const std::optional<base::DType>& t) {
    return t ? base::name(*t) : std::string_view("-");
  };
  std::string text = fmt::format(
      "{} {} {} {} {} {} {} {} {} {} {} {}:{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} "
      "{} {} {} {} {} {} {} {}\n",
      static_cast<int>(kind), m, n, k, batch, heads, kv_heads, sq, skv, d, causal, fn.size(), fn,
      elems, rd, wr, base::name(in), base::name(out), accumulate, a_weight, b_weight,
      format(a_format), format(b_format), static_cast<int>(conversion), a_transposed, b_transposed,
      sparse_kept, sparse_block, flash, fast_exponential, memory_reuse, fusion, double_accumulators,
      streaming_loads, cores);
  for (const auto& [name, elements] : epilogues)
    text += fmt::format("{}:{} {}\n", name.size(), name, elements);
  return text;
}

template <class V, class Counts>
void visit_counts(V& v, Counts& counts) {
  auto& [macs, transpose_macs, sbuf_read, sbuf_write, psum_read, psum_write, vector_ops, scalar_ops,
         gpsimd_ops, vector_transcendental, scalar_transcendental, quantize_ops, hbm_read,
         hbm_write, hbm_activates, hbm_scale, spill_save, spill_reload, hbm_refreshes, dma,
         die_crossing, link] = counts;
  for (auto& n : macs) v("macs", n);
  v("transpose_macs", transpose_macs);
  v("sbuf_read_bytes", sbuf_read);
  v("sbuf_write_bytes", sbuf_write);
  v("psum_read_bytes", psum_read);
  v("psum_write_bytes", psum_write);
  v("vector_ops", vector_ops);
  v("scalar_ops", scalar_ops);
  v("gpsimd_ops", gpsimd_ops);
  v("vector_transcendental_ops", vector_transcendental);
  v("scalar_transcendental_ops", scalar_transcendental);
  v("quantize_ops", quantize_ops);
  v("hbm_read_bytes", hbm_read);
  v("hbm_write_bytes", hbm_write);
  v("hbm_activates", hbm_activates);
  v("hbm_scale_bytes", hbm_scale);
  v("spill_save_bytes", spill_save);
  v("spill_reload_bytes", spill_reload);
  v("hbm_refreshes", hbm_refreshes);
  v("dma_bytes", dma);
  v("die_crossing_bytes", die_crossing);
  v("link_bytes", link);
}

template <class V, class Profile>
void visit_profile(V& v, Profile& profile) {
  auto& [duration, curve, lead_in, drain, compute_active, tensor_ideal, engine_busy, dma_busy,
         counts, copies, shared, ahead, tensor, sbuf, instructions] = profile;
  v("duration_fs", duration);
  v.points("points", curve);
  for (auto& point : curve) {
    auto& [served, point_duration] = point;
    v("served", served);
    v("duration_fs", point_duration);
  }
  v("lead_in_fs", lead_in);
  v("drain_fs", drain);
  v("compute_active_fs", compute_active);
  v("tensor_ideal_fs", tensor_ideal);
  for (auto& busy : engine_busy) v("engine_busy_fs", busy);
  v("dma_busy_fs", dma_busy);
  visit_counts(v, counts);
  v("copies", copies);
  v("shared_fs", shared);
  auto& [ahead_bytes, ahead_duration, ahead_saves, ahead_sbuf] = ahead;
  v("ahead_bytes", ahead_bytes);
  v("ahead_duration_fs", ahead_duration);
  v("ahead_saves_fs", ahead_saves);
  v("ahead_sbuf_bytes_per_partition", ahead_sbuf);
  auto& [head, tail, age, idle, passes, cost, active, tensor_saves, passes_less] = tensor;
  v("tensor_head_fs", head);
  v("tensor_tail_fs", tail);
  v("tensor_age_fs", age);
  v("tensor_idle_fs", idle);
  v("limited_passes_fs", passes);
  v("limited_cost_fs", cost);
  v("limited_active_fs", active);
  v("hot_saves_fs", tensor_saves);
  v("hot_passes_less_fs", passes_less);
  v("sbuf_bytes_per_partition", sbuf);
  v("instructions", instructions);
}

struct TextWriter {
  std::string text;
  void operator()(const char* name, std::int64_t value) {
    text += fmt::format("{} {}\n", name, value);
  }
  template <class Q>
  requires requires(const Q& q) { q.count(); }
  void operator()(const char* name, const Q& value) { (*this)(name, value.count()); }
  void points(const char* name, const std::vector<models::ProfilePoint>& curve) {
    (*this)(name, static_cast<std::int64_t>(curve.size()));
  }
};

// Takes "name value" lines off the front of `text`; `ok` is false from the first that differs.
struct TextReader {
  std::string_view text;
  bool ok = true;
  void operator()(std::string_view name, std::int64_t& value) {
    ok = ok && text.starts_with(name) && text.substr(name.size()).starts_with(' ');
    if (!ok) return;
    text.remove_prefix(name.size() + 1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    ok = error == std::errc() && end != text.data() + text.size() && *end == '\n';
    if (ok) text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  }
  template <class Q>
  requires requires(const Q& q) { q.count(); }
  void operator()(std::string_view name, Q& value) {
    std::int64_t count = 0;
    (*this)(name, count);
    value = Q(count);
  }
  void points(std::string_view name, std::vector<models::ProfilePoint>& curve) {
    std::int64_t count = 0;
    (*this)(name, count);
    ok = ok && count >= 0 && count <= kMostPoints;
    if (ok) curve.resize(static_cast<std::size_t>(count));
  }
};

}  // namespace

std::string profile_key(std::string_view version, const config::ChipSpec& chip,
                        const compile::KernelSpec& kernel, base::Rate least) {
  std::string text = fmt::format("{}\n{}\n", version, least.count());
  config::ChipSpec copy = chip;  // describe() also serves readers
  ChipText visitor(text, "");
  config::describe(visitor, copy);
  return base::sha256(text + kernel_text(kernel));
}

std::string profile_to_text(const std::string& key, const models::KernelProfile& profile) {
  TextWriter writer{fmt::format("{}key {}\n", kMagic, key)};
  visit_profile(writer, profile);
  return writer.text + base::sha256(writer.text) + "\n";
}

std::optional<models::KernelProfile> profile_from_text(const std::string& key,
                                                       std::string_view text) {
  constexpr std::size_t kSumSize = 65;  // digest and newline
  const std::string head = fmt::format("{}key {}\n", kMagic, key);
  if (!text.starts_with(head) || text.size() < head.size() + kSumSize) return std::nullopt;
  const std::string_view content = text.substr(0, text.size() - kSumSize);
  if (text.substr(content.size()) != base::sha256(content) + "\n") return std::nullopt;
  TextReader reader{content.substr(head.size())};
  models::KernelProfile profile;
  visit_profile(reader, profile);
  if (!reader.ok || !reader.text.empty()) return std::nullopt;
  return profile;
}

}  // namespace trn3sim::sim
