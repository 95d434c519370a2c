// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>
#include <tuple>

#include "trn3sim/base/error.hpp"
#include "trn3sim/config/run_spec.hpp"

#include "unit/config/config_files.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace trn3sim::config {
namespace {

bool is_assumed(const RunSpec& run, const std::string& path) {
  for (const AssumedNumber& number : run.assumed)
    if (number.path == path) return true;
  return false;
}

TEST(LoadRun, ShippedSystemsLoad) {
  EXPECT_EQ(load_run("chip1.json", {}).system.chips(), 1);
  EXPECT_EQ(load_run("instance16.json", {}).system.chips(), 16);
  EXPECT_EQ(load_run("ultraserver64.json", {}).system.chips(), 64);
  EXPECT_EQ(load_run("ring64.json", {}).system.chips(), 64);
  EXPECT_EQ(load_run("torus16.json", {}).system.chips(), 16);
  for (const auto& [file, name, cores] : {std::tuple{"trn1_chip.json", "Trainium1", 2},
                                          std::tuple{"trn2_chip.json", "Trainium2", 8},
                                          std::tuple{"chip1.json", "Trainium3", 8}}) {
    const SystemSpec system = load_run(file, {}).system;
    EXPECT_EQ(system.chips(), 1);
    EXPECT_EQ(system.chip.name, name);
    EXPECT_EQ(system.chip.cores, cores);
  }
}

TEST(LoadRun, Trainium3HasThePublishedPeaks) {
  const ChipSpec chip = load_run("chip1.json", {}).system.chip;
  // 2 x 128 x 128 PEs x 2.4 GHz x 8 cores = 629.1 TFLOPS bf16; x 4 = 2516.6 MXFP8 (published:
  // 2517).
  EXPECT_NEAR(chip.peak_flops_per_core(base::DType::Bf16) * 8, 629.1456e12, 1e6);
  EXPECT_NEAR(chip.peak_flops_per_core(base::DType::Mxfp8) * 8, 2517e12, 1e12);
  // 4 stacks x 36 GiB = 144 GiB; 128 engines x 38.4 GB/s = the HBM's 4915.2 GB/s.
  EXPECT_EQ(chip.hbm.capacity.count() * chip.stacks, 144LL << 30);
  EXPECT_EQ(chip.dma.bus_rate.count() * chip.dma.engines * chip.cores, chip.hbm.bandwidth.count());
  // 36 GiB / (32 pseudo-channels x 48 banks x 1 KiB) = 24,576 rows.
  const std::int64_t banks = chip.hbm.channels * chip.hbm.pseudo_channels * chip.hbm.sids *
                             chip.hbm.bank_groups * chip.hbm.banks_per_group;
  EXPECT_EQ(chip.hbm.capacity.count() / (banks * chip.hbm.row.count()), 24'576);
  EXPECT_EQ(chip.energy.mac[static_cast<std::size_t>(base::DType::Bf16)].count(), Int128(420'000));
}

TEST(LoadRun, EnergyReproducesTheBillOfWatts) {
  const config::ChipSpec chip = load_run("chip1.json", {}).system.chip;
  const auto picojoules = [](base::Energy e) { return base::to_joules(e) * 1e12; };
  const auto mac = [&](base::DType t) {
    return picojoules(chip.energy.mac[static_cast<std::size_t>(t)]);
  };
  // MACs per second of the chip: 8 x 128 x 128 x 2.4e9 = 3.146e14; at 90 % and 0.42 pJ 118.9 W;
  // MXFP8 does four times as many at 0.20 pJ: 226.5 W.
  const double pe_cycles = static_cast<double>(chip.cores * chip.tensor.rows * chip.tensor.columns *
                                               chip.tensor.clock.count());
  EXPECT_NEAR(0.9 * pe_cycles * mac(base::DType::Bf16) * 1e-12, 118.9, 0.1);
  EXPECT_NEAR(0.9 * 4 * pe_cycles * mac(base::DType::Mxfp8) * 1e-12, 226.5, 0.1);
  // Refresh of one stack: 32 pseudo-channels x 2.7 nJ per 3900 ns / 48 banks = 1.06 W.
  const double per_bank = base::to_seconds(chip.hbm.t_refi) / 48;
  EXPECT_NEAR(32 * picojoules(chip.energy.hbm_refresh_bank) * 1e-12 / per_bank, 1.06, 0.01);
  // Clocks of 8 cores and the uncore: 8 x 8 + 10 = 74 W.
  EXPECT_EQ((chip.energy.clock_core * chip.cores + chip.energy.clock_uncore).count(), 74'000'000);
}

// Whatever a file holds, it loads or the user is told: nothing else is thrown.
TEST(LoadRun, DamagedFilesAreUserErrors) {
  const Folder folder;
  const std::string dump = load_run("ultraserver64.json", {}).resolved_json;
  std::uint64_t state = 20'261'130;  // linear congruential generator
  const auto next = [&](std::size_t bound) {
    state = state * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    return static_cast<std::size_t>(state >> 33U) % bound;
  };
  const std::vector<std::string> pieces = {"null", "[]", "{}", "-1", "1e308", "\"\"", "true",
                                           "{",    "}",  "\"", ",",  "\xff",  "0.5",  "\"1 GB/s\""};
  int refused = 0;
  for (int i = 0; i < 400; ++i) {
    std::string text = dump;
    for (std::size_t n = next(3) + 1; n > 0; --n) {
      const std::size_t at = next(text.size());
      const std::size_t colon = std::min(text.find(": ", at), text.size() - 2) + 2;
      if (next(2) == 0)
        text.replace(colon, std::min(text.find_first_of(",\n", colon), text.size()) - colon,
                     pieces[next(pieces.size())]);
      else
        text.replace(at, next(20), pieces[next(pieces.size())]);
    }
    try {
      load_run(folder.write("damaged.json", text).string(), {});
    } catch (const base::UserError& error) {
      EXPECT_FALSE(error.problems().empty());
      ++refused;
    }
  }
  EXPECT_GT(refused, 300);  // most damage is noticed; a changed source text may pass
}

TEST(LoadRun, DumpLoadsBackToTheSameRun) {
  const Folder folder;
  for (const char* name : {"chip1.json", "instance16.json", "ultraserver64.json"}) {
    const RunSpec run = load_run(name, {"compile.level=stock", "run.seed=7"});
    const RunSpec again = load_run(folder.write("dump.json", run.resolved_json).string(), {});
    EXPECT_EQ(again.resolved_json, run.resolved_json);
    EXPECT_EQ(again.assumed.size(), run.assumed.size());
    EXPECT_EQ(again.seed, 7U);
    EXPECT_FALSE(again.compile.fusion);
  }
}

TEST(LoadRun, AssumedNumbersAreSortedAndHaveReasons) {
  const RunSpec run = load_run("ultraserver64.json", {});
  ASSERT_GT(run.assumed.size(), 0U);
  for (std::size_t i = 0; i < run.assumed.size(); ++i) {
    EXPECT_FALSE(run.assumed[i].reason.empty());
    if (i > 0) {
      EXPECT_LT(run.assumed[i - 1].path, run.assumed[i].path);
    }
  }
  EXPECT_TRUE(is_assumed(run, "chip.on_chip.stack_link"));
  EXPECT_TRUE(is_assumed(run, "fabric.switch_latency"));
  EXPECT_FALSE(is_assumed(run, "chip.hbm.bandwidth"));  // published
  EXPECT_FALSE(
      is_assumed(run, "chip.energy.mac.bf16"));  // its table overrides the section's "assumed"
}

TEST(Overrides, ReplaceValuesOfEveryKind) {
  const RunSpec run =
      load_run("ultraserver64.json",
               {"chip.hbm.bandwidth=6.0TB/s", "chip.dma.engines=8", "chip.hbm.derate=1",
                "chip.hbm.refresh=none", "chip.tensor.background_transpose=false",
                "fabric.pair.bandwidth=256 GB/s", "name=what if", "chip.energy.mac.bf16=0.5 pJ",
                "run.seed=9", "run.shuffle=3"});
  EXPECT_EQ(run.system.chip.hbm.bandwidth.count(), 6'000'000'000'000);
  EXPECT_EQ(run.system.chip.dma.engines, 8);
  EXPECT_EQ(run.system.chip.hbm.derate, 1.0);
  EXPECT_EQ(run.system.chip.hbm.refresh, "none");
  EXPECT_FALSE(run.system.chip.tensor.background_transpose);
  EXPECT_EQ(run.system.fabric.pair.bandwidth.count(), 256'000'000'000);
  EXPECT_EQ(run.system.name, "what if");
  EXPECT_EQ(run.system.chip.energy.mac[static_cast<std::size_t>(base::DType::Bf16)].count(),
            Int128(500'000));
  EXPECT_EQ(run.seed, 9U);
  EXPECT_EQ(run.shuffle, 3U);
}

TEST(Overrides, LastOneWins) {
  EXPECT_EQ(
      load_run("chip1.json", {"chip.dma.engines=8", "chip.dma.engines=4"}).system.chip.dma.engines,
      4);
}

TEST(Overrides, SetNumbersAreNoLongerAssumed) {
  EXPECT_TRUE(is_assumed(load_run("chip1.json", {}), "chip.energy.tdp"));
  const RunSpec run = load_run("chip1.json", {"chip.energy.tdp=900 W"});
  EXPECT_FALSE(is_assumed(run, "chip.energy.tdp"));
  const auto tdp = nlohmann::json::parse(run.resolved_json)["chip"]["energy"]["tdp"];
  EXPECT_EQ(tdp["value"], "900 W");
  EXPECT_EQ(tdp["source"], "--set");
}

TEST(Overrides, PrecisionHasNamedPolicies) {
  EXPECT_EQ(load_run("chip1.json", {}).precision.matmul, "trace");
  const RunSpec run = load_run("chip1.json", {"precision.matmul=mxfp8", "precision.sparsity=none"});
  EXPECT_EQ(run.precision.matmul, "mxfp8");
  EXPECT_NE(run.resolved_json.find("\"mxfp8\""), std::string::npos);
  EXPECT_NE(error_of("chip1.json", {"precision.matmul=mxfp6"}).find("got \"mxfp6\""),
            std::string::npos);
  EXPECT_NE(error_of("chip1.json", {"precision.sparsity=4:15"}).find("\"4:16\""),
            std::string::npos);
}

TEST(Overrides, MistakesNameTheOverride) {
  EXPECT_EQ(error_of("chip1.json", {"chip.hbm.bandwith=6TB/s"}),
            "--set chip.hbm.bandwith=6TB/s: unknown key \"bandwith\" in chip.hbm; did you mean "
            "\"bandwidth\"?");
  EXPECT_EQ(error_of("chip1.json", {"chip.hbn.bandwidth=6TB/s"}),
            "--set chip.hbn.bandwidth=6TB/s: unknown key \"hbn\" in chip; did you mean \"hbm\"?");
  EXPECT_EQ(error_of("chip1.json", {"chap.hbm.bandwidth=6TB/s"}),
            "--set chap.hbm.bandwidth=6TB/s: unknown path \"chap.hbm.bandwidth\"; it starts with "
            "one of chip, fabric, "
            "name, compile, precision, collectives, run; did you mean \"chip\"?");
  EXPECT_EQ(error_of("chip1.json", {"chip.hbm.bandwidth=6"}),
            "--set chip.hbm.bandwidth=6: expected a quantity such as \"4.9 TB/s\", got \"6\"");
  EXPECT_EQ(error_of("chip1.json", {"chip.dma.engines=3.7"}),
            "--set chip.dma.engines=3.7: expected a whole number, got 3.7");
  EXPECT_EQ(error_of("chip1.json", {"chip.hbm=6TB/s"}),
            "--set chip.hbm=6TB/s: expected an object, got \"6TB/s\"");
  EXPECT_EQ(error_of("chip1.json", {"chip.hbm.bandwidth.value=6TB/s"}),
            "--set chip.hbm.bandwidth.value=6TB/s: chip.hbm.bandwidth is a single value, it has no "
            "\"value\"");
  EXPECT_EQ(error_of("chip1.json", {"chip.hbm.bandwidth"}),
            "--set chip.hbm.bandwidth: expected path=value, such as chip.hbm.bandwidth=6.0TB/s");
  EXPECT_EQ(error_of("chip1.json", {"run.seed=-1"}),
            "--set run.seed=-1: expected a whole number of at least 0, got -1");
}

// Visits every value of a dump by its keys.
void visit_values(
    const nlohmann::json& node, const std::vector<std::string>& keys,
    const std::function<void(const std::vector<std::string>&, const nlohmann::json&)>& visit) {
  if (!node.is_object() || node.contains("value")) return visit(keys, node);
  for (const auto& [key, value] : node.items()) {
    std::vector<std::string> below = keys;
    below.push_back(key);
    visit_values(value, below, visit);
  }
}

TEST(Overrides, EveryValueCanBeSetToItself) {
  const nlohmann::json dump =
      nlohmann::json::parse(load_run("ultraserver64.json", {}).resolved_json);
  std::vector<std::string> overrides;
  visit_values(dump, {}, [&](const std::vector<std::string>& keys, const nlohmann::json& node) {
    if (keys.back() == "kind") return;
    const nlohmann::json value = node.is_object() ? node["value"] : node;
    std::string text = keys[0];
    for (std::size_t i = 1; i < keys.size(); ++i) text += "." + keys[i];
    overrides.push_back(text + "=" + (value.is_string() ? value.get<std::string>() : value.dump()));
  });
  EXPECT_GT(overrides.size(), 140U);  // a chip alone has that many
  const nlohmann::json again =
      nlohmann::json::parse(load_run("ultraserver64.json", overrides).resolved_json);
  visit_values(dump, {}, [&](const std::vector<std::string>& keys, const nlohmann::json& node) {
    nlohmann::json other = again;
    for (const std::string& key : keys) other = nlohmann::json(other[key]);
    const nlohmann::json value = node.is_object() ? node["value"] : node;
    EXPECT_EQ(other.is_object() ? other["value"] : other, value) << keys.back();
  });
}

// No number of the machine has a hidden default.
TEST(LoadRun, EveryValueOfTheMachineIsRequired) {
  const Folder folder;
  const nlohmann::json dump =
      nlohmann::json::parse(load_run("ultraserver64.json", {}).resolved_json);
  int checked = 0;
  visit_values(dump, {}, [&](const std::vector<std::string>& keys, const nlohmann::json&) {
    if (keys[0] == "compile" || keys[0] == "precision" || keys[0] == "collectives" || keys[0] == "run") return;
    // How the model works, not a number of the machine.
    const std::set<std::string> choices = {"mode", "page_policy", "mapping", "channel_hash"};
    if (keys.size() > 2 && keys[1] == "hbm" && choices.contains(keys[2])) return;
    std::string pointer;
    for (const std::string& key : keys) pointer += "/" + key;
    nlohmann::json broken = dump;
    broken[nlohmann::json::json_pointer(pointer).parent_pointer()].erase(keys.back());
    const std::string message = error_of(folder.write("broken.json", broken.dump()).string(), {});
    EXPECT_NE(message.find("broken.json: " + pointer + ": required, but missing"),
              std::string::npos)
        << pointer << "\n"
        << message;
    ++checked;
  });
  EXPECT_GT(checked, 140);
}

TEST(Overrides, TextMustBeUtf8) {
  EXPECT_EQ(error_of("chip1.json", {"name=\xff"}), "--set: the text is not UTF-8");
}

TEST(Compile, LevelsSetTheSwitches) {
  const CompileSpec tuned = load_run("chip1.json", {}).compile;
  EXPECT_EQ(tuned.level, "tuned");
  EXPECT_TRUE(tuned.fusion && tuned.flash_attention && tuned.memory_reuse && tuned.prefetch &&
              tuned.fast_exponential && tuned.merge_gathers && tuned.double_accumulators && tuned.streaming_loads);
  EXPECT_FALSE(tuned.overlap_collectives);
  const CompileSpec stock = load_run("chip1.json", {"compile.level=stock"}).compile;
  EXPECT_FALSE(stock.fusion || stock.flash_attention || stock.memory_reuse || stock.prefetch ||
               stock.fast_exponential || stock.merge_gathers || stock.overlap_collectives);
  EXPECT_TRUE(stock.double_accumulators && stock.streaming_loads);
  const CompileSpec ideal = load_run("chip1.json", {"compile.level=ideal"}).compile;
  EXPECT_TRUE(ideal.fusion && ideal.flash_attention && ideal.memory_reuse && ideal.prefetch &&
              ideal.fast_exponential && ideal.merge_gathers && ideal.double_accumulators && ideal.streaming_loads &&
              ideal.overlap_collectives);
}

TEST(Compile, SwitchesWinOverTheLevelInAnyOrder) {
  for (const auto& overrides :
       {std::vector<std::string>{"compile.prefetch=true", "compile.level=stock"},
        std::vector<std::string>{"compile.level=stock", "compile.prefetch=true"}}) {
    const CompileSpec compile = load_run("chip1.json", overrides).compile;
    EXPECT_TRUE(compile.prefetch);
    EXPECT_FALSE(compile.fusion);
  }
  EXPECT_EQ(error_of("chip1.json", {"compile.level=tunned"}),
            "--set compile.level=tunned: expected \"stock\", \"tuned\" or \"ideal\", got "
            "\"tunned\"; did you mean \"tuned\"?");
  EXPECT_EQ(error_of("chip1.json", {"compile.fusion=1"}),
            "--set compile.fusion=1: expected true or false, got \"1\"");
}

TEST(LoadRun, SystemWithoutAssumedSourcesOfItsOwnIsAccepted) {
  const Folder folder;
  const fs::path system =
      folder.write("s.json", R"({"kind": "system", "name": "s", "chip": "chips/trn3.json", "fabric":
      {"type": "paired_planes", "servers": 2, "chips_per_server": 2, "servers_per_rack": 2,
       "pair": {"bandwidth": "1 GB/s", "latency": "1ns"}, "switched": {"bandwidth": "1GB/s", "latency": "1 ns"},
       "switch_latency": "1 ns"}})");
  EXPECT_EQ(load_run(system.string(), {}).system.chips(), 4);
}

}  // namespace
}  // namespace trn3sim::config
