// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "app/hbm_command.hpp"

#include <charconv>
#include <cmath>

#include "trn3sim/config/run_spec.hpp"
#include "trn3sim/models/hbm_drive.hpp"

#include "app/exit_code.hpp"
#include "app/hbm_help.hpp"
#include "app/output.hpp"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace trn3sim::app {
namespace {

constexpr std::int64_t kBurstsMost = 1'000'000'000;

double share_of(const po::variables_map& values, const char* name) {
  const std::string text = text_of(values, name);
  double share = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, share);
  if (error != std::errc() || end != last || !(share >= 0 && share <= 1))
    fail(fmt::format("--{} is \"{}\", expected a number from 0 to 1", name, text));
  return share;
}

void take_number(const po::variables_map& values, const char* name, std::int64_t most,
                 std::int64_t& number) {
  if (values.count(name) == 0) return;
  number = number_of(values, name, 1);
  if (number > most) fail(fmt::format("--{} is {}, expected at most {}", name, number, most));
}

std::string text_report(const config::HbmSpec& spec, const DriveHbm& o,
                        const models::HbmDriven& d) {
  return fmt::format(
      "HBM alone  {} {}, mode {}, {} of {} channels, refresh {}\n"
      "Bandwidth  {:.1f} % of the peak, {:.2f} GB/s\n"
      "Latency    mean {:.1f} ns, p99 {:.1f} ns of a read, queue to end of data\n"
      "Rows       {} activations, {:.1f} % of bursts found their row open\n"
      "Refreshes  {} of one bank\n",
      o.random ? "random blocks of" : "streams in turns of", fmt::format("{} B", o.block),
      spec.mode, o.channels, spec.channels, spec.refresh, d.share * 100, d.bytes_per_second / 1e9,
      d.mean_latency_ns, d.p99_latency_ns, d.activates, d.row_hit_rate * 100, d.refreshes);
}

std::string json_report(const config::HbmSpec& spec, const models::HbmDriven& d) {
  const auto rounded = [](double value) { return std::round(value * 1e6) / 1e6; };
  const nlohmann::json json = {
      {"mode", spec.mode},
      {"bandwidth_fraction", rounded(d.share)},
      {"gb_per_s", rounded(d.bytes_per_second / 1e9)},
      {"mean_latency_ns", rounded(d.mean_latency_ns)},
      {"p99_latency_ns", rounded(d.p99_latency_ns)},
      {"activations", d.activates},
      {"row_hit_rate", rounded(d.row_hit_rate)},
      {"refreshes", d.refreshes},
  };
  return json.dump(2) + "\n";
}

}  // namespace

Command parse_hbm(const Arguments& arguments) {
  po::options_description options;
  options.add_options()("help,h", "")("set", po::value<Arguments>()->composing(), "");
  for (const char* name : {"config", "pattern", "block", "streams", "reads", "turn", "queue-depth",
                           "refresh", "mapping", "mode", "channels", "bursts", "seed", "format"}) {
    options.add_options()(name, po::value<std::string>(), "");
  }
  Arguments words;
  const po::variables_map values = parse_options(arguments, options, words, "trn3sim hbm --help");
  if (values.count("help") > 0) return ShowText{kHbmHelp};
  if (!words.empty())
    fail(fmt::format("unexpected \"{}\"; the file is given as --config FILE", words[0]));
  DriveHbm drive;
  drive.config = text_of(values, "config");
  if (drive.config.empty()) fail("--config FILE is missing; see trn3sim hbm --help");
  drive.random = choice(values, "pattern", {"stream", "random"}) == "random";
  take_number(values, "block", std::int64_t{1} << 40, drive.block);
  take_number(values, "streams", 4096, drive.streams);
  take_number(values, "turn", kBurstsMost, drive.turn);
  take_number(values, "channels", 256, drive.channels);
  take_number(values, "bursts", kBurstsMost, drive.bursts);
  if (drive.bursts < 100) fail("--bursts: expected at least 100");
  if (values.count("seed") > 0) drive.seed = number_of(values, "seed", 0);
  if (values.count("reads") > 0) drive.reads = share_of(values, "reads");
  if (drive.random && values.count("streams") > 0)
    fail("--streams is for --pattern stream; random blocks have none");
  drive.overrides.emplace_back("chip.hbm.channel_hash=false");
  std::string mode = choice(values, "mode", {"exact", "runs"});
  drive.overrides.push_back("chip.hbm.mode=" + (mode.empty() ? "exact" : mode));
  for (const auto& [name, path] : {std::pair("queue-depth", "chip.hbm.queue_depth"),
                                   {"refresh", "chip.hbm.refresh"},
                                   {"mapping", "chip.hbm.mapping"}}) {
    if (const std::string text = text_of(values, name); !text.empty())
      drive.overrides.push_back(fmt::format("{}={}", path, text));
  }
  for (std::string& set : overrides_of(values)) drive.overrides.push_back(std::move(set));
  drive.format = format_of(values);
  return drive;
}

int drive_hbm_stack(const DriveHbm& o) {
  const config::ChipSpec chip = config::load_run(o.config, o.overrides).system.chip;
  models::HbmPattern pattern;
  pattern.random = o.random;
  pattern.block = o.block;
  pattern.streams = o.streams;
  pattern.reads = o.reads;
  pattern.turn = o.turn;
  pattern.bursts = o.bursts;
  pattern.seed = static_cast<std::uint64_t>(o.seed);
  const models::HbmDriven d = models::drive_hbm(chip.hbm, chip.stacks, o.channels, pattern);
  print(o.format == Format::Json ? json_report(chip.hbm, d) : text_report(chip.hbm, o, d));
  return kOk;
}

}  // namespace trn3sim::app
