// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "app/cli.hpp"

#include "trn3sim/base/error.hpp"

#include <gtest/gtest.h>

namespace trn3sim::app {
namespace {

using Arguments = std::vector<std::string>;

std::string error_of(const Arguments& arguments) {
  try {
    parse(arguments);
  } catch (const base::UserError& e) {
    return e.what();
  }
  return "no error";
}

// `arguments` after a valid --config and --trace.
Arguments simulate(Arguments more) {
  Arguments all = {"--config", "c.json", "--trace", "t.trace"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(Cli, MainCommand) {
  const auto s = std::get<Simulate>(parse(simulate({})));
  EXPECT_EQ(s.config, "c.json");
  EXPECT_EQ(s.trace, "t.trace");
  EXPECT_TRUE(s.overrides.empty());
  EXPECT_EQ(s.format, Format::Text);
  EXPECT_TRUE(s.out.empty());
  EXPECT_FALSE(s.quiet);
  EXPECT_TRUE(s.cache);
}

TEST(Cli, AnOptionAndItsFileCanBeOneWord) {
  const auto s = std::get<Simulate>(parse({"--config=c.json", "--trace=t.trace"}));
  EXPECT_EQ(s.config, "c.json");
  EXPECT_EQ(s.trace, "t.trace");
}

TEST(Cli, ChipsInFullDetail) {
  EXPECT_FALSE(std::get<Simulate>(parse(simulate({"--fidelity", "profiled"}))).detailed);
  EXPECT_TRUE(std::get<Simulate>(parse(simulate({"--fidelity", "detailed"}))).detailed);
  EXPECT_EQ(std::get<Simulate>(parse(simulate({"--detailed-chips", "0,5"}))).detailed_chips,
            (std::vector<std::int64_t>{0, 5}));
  EXPECT_NE(error_of(simulate({"--fidelity", "detail"})).find("did you mean"), std::string::npos);
  for (const char* list : {"0,", ",1", "x", "-1", "1;2", "1.5"})
    EXPECT_NE(error_of(simulate({std::string("--detailed-chips=") + list})).find("whole numbers"),
              std::string::npos)
        << list;
  EXPECT_NE(error_of(simulate({"--fidelity", "detailed", "--detailed-chips", "0"})).find("give one"),
            std::string::npos);
}

TEST(Cli, FidelityHandsItsOptionsToBothRuns) {
  const auto f = std::get<Fidelity>(parse({"fidelity", "--trace", "t.trace", "--config", "c.json",
                                           "--set", "a=1", "--set", "b=2", "--format", "json"}));
  EXPECT_EQ(f.arguments, (Arguments{"--config=c.json", "--trace=t.trace", "--set=a=1", "--set=b=2"}));
  EXPECT_EQ(f.format, Format::Json);
  const auto some = std::get<Fidelity>(parse({"fidelity", "--trace", "t.trace", "--config", "c.json",
                                              "--no-cache", "--detailed-chips", "0,5"}));
  EXPECT_EQ(f.detail, "--fidelity=detailed");
  EXPECT_EQ(some.detail, "--detailed-chips=0,5");
  EXPECT_EQ(some.arguments.back(), "--no-cache");
  EXPECT_NE(error_of({"fidelity", "--config", "c.json"}).find("--trace FILE is missing"),
            std::string::npos);
}

TEST(Cli, PrecisionTakesTwoFormatsAndHandsOnTheRest) {
  const Arguments files = {"precision", "--config", "c.json", "--trace", "t.trace"};
  const auto with = [&](const Arguments& more) {
    Arguments all = files;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const auto p = std::get<AttributePrecision>(
      parse(with({"--set", "a=1", "--from", "bf16", "--to=mxfp4", "--compile", "stock"})));
  EXPECT_EQ(p.arguments,
            (Arguments{"--config=c.json", "--trace=t.trace", "--compile=stock", "--set=a=1"}));
  EXPECT_EQ(p.trace, "t.trace");
  EXPECT_EQ(p.from, "bf16");
  EXPECT_EQ(p.to, "mxfp4");
  const auto standard = std::get<AttributePrecision>(parse(files));
  EXPECT_EQ(standard.from, "trace");
  EXPECT_EQ(standard.to, "mxfp8");
  EXPECT_NE(error_of(with({"--to", "mxfp5"})).find("did you mean \"mxfp"), std::string::npos);
  EXPECT_NE(error_of(with({"--from", "mxfp8"})).find("expected trace, bf16, fp16"),
            std::string::npos);
  EXPECT_NE(error_of(with({"--set", "precision.matmul=fp8"})).find("--from and --to"),
            std::string::npos);
  EXPECT_NE(error_of({"precision", "--trace", "t"})
                .find("--config FILE is missing; see trn3sim "
                      "precision --help"),
            std::string::npos);
}

TEST(Cli, LevelComesBeforeOverridesAndOverridesKeepTheirOrder) {
  const auto s = std::get<Simulate>(
      parse(simulate({"--set", "chip.hbm.bandwidth=6.0 TB/s", "--set=run.seed=2", "--compile",
                      "stock", "--format", "json", "--out", "o", "--quiet", "--no-cache"})));
  EXPECT_EQ(s.overrides,
            (Arguments{"compile.level=stock", "chip.hbm.bandwidth=6.0 TB/s", "run.seed=2"}));
  EXPECT_EQ(s.format, Format::Json);
  EXPECT_EQ(s.out, "o");
  EXPECT_TRUE(s.quiet);
  EXPECT_FALSE(s.cache);
}

TEST(Cli, NoFastForwardIsAnOverrideThatAnExplicitOneBeats) {
  const auto s = std::get<Simulate>(parse(
      simulate({"--set", "run.fast_forward=true", "--no-fast-forward", "--compile", "ideal"})));
  EXPECT_EQ(s.overrides,
            (Arguments{"compile.level=ideal", "run.fast_forward=false", "run.fast_forward=true"}));
}

TEST(Cli, Timeline) {
  const auto plain = std::get<Simulate>(parse(simulate({"--out", "o"})));
  EXPECT_FALSE(plain.timeline);
  const auto s = std::get<Simulate>(parse(simulate(
      {"--out", "o", "--timeline", "--timeline-chips", "0,12,3", "--timeline-limit", "50"})));
  EXPECT_TRUE(s.timeline);
  EXPECT_EQ(s.timeline_chips, (std::vector<std::int64_t>{0, 12, 3}));
  EXPECT_EQ(s.timeline_limit, 50);
  EXPECT_NE(error_of(simulate({"--timeline"})).find("--out DIR"), std::string::npos);
  EXPECT_NE(error_of(simulate({"--timeline-limit", "5"})).find("needs --timeline"),
            std::string::npos);
  for (const char* bad : {"", "0,", ",1", "1;2", "-1", "0,x"}) {
    EXPECT_NE(
        error_of(simulate({"--out", "o", "--timeline", "--timeline-chips", bad})).find("chips"),
        std::string::npos)
        << bad;
  }
  EXPECT_NE(error_of(simulate({"--out", "o", "--timeline", "--timeline-limit", "0"})).find("limit"),
            std::string::npos);
}

TEST(Cli, TraceCommands) {
  EXPECT_EQ(std::get<TraceCheck>(parse({"trace", "check", "f"})).file, "f");
  const auto info =
      std::get<TraceInfo>(parse({"trace", "info", "f", "--format", "json", "--rank", "3"}));
  EXPECT_EQ(info.file, "f");
  EXPECT_EQ(info.rank, 3);
  EXPECT_EQ(info.format, Format::Json);
  const auto synthetic =
      std::get<GenerateSynthetic>(parse({"trace", "gen", "residual_add", "-o", "f"}));
  EXPECT_EQ(synthetic.name, "residual_add");
}

TEST(Cli, GenerateLlama) {
  const auto g = std::get<GenerateLlama>(parse(
      {"trace", "gen", "llama", "--preset", "llama2-7b", "--tp", "8", "--kv-heads=4", "--rank-unit",
       "chip", "--zero1", "off", "--recompute", "full", "--overlap-grad-reduce", "-o", "-"}));
  EXPECT_EQ(g.preset, "llama2-7b");
  ASSERT_EQ(g.values.size(), 2U);
  EXPECT_EQ(g.values[0], (std::pair<std::string, std::int64_t>("tp", 8)));
  EXPECT_EQ(g.values[1], (std::pair<std::string, std::int64_t>("kv-heads", 4)));
  EXPECT_EQ(g.rank_unit, "chip");
  EXPECT_FALSE(g.zero1);
  EXPECT_EQ(g.recompute, "full");
  EXPECT_TRUE(g.overlap_grad_reduce);
  EXPECT_EQ(g.out, "-");
}

TEST(Cli, HelpTeachesAndVersionAnswers) {
  const std::string help = std::get<ShowText>(parse({"--help"})).text;
  EXPECT_NE(help.find("--config ultraserver64.json --trace llama7b.trace"), std::string::npos);
  EXPECT_NE(help.find("Exit codes"), std::string::npos);
  EXPECT_EQ(std::get<ShowText>(parse({"--version"})).text, "trn3sim " + version() + "\n");
  // Help wins over what is missing, at every level.
  for (const Arguments& a : {Arguments{"-h"},
                             {"help"},
                             {"trace", "--help"},
                             {"trace", "gen", "--help"},
                             {"trace", "gen", "llama", "--help"},
                             {"trace", "info", "--help"}}) {
    EXPECT_TRUE(std::holds_alternative<ShowText>(parse(a)));
  }
}

TEST(Cli, MistakesAreNamedAndMended) {
  EXPECT_EQ(error_of({"--confg", "x"}),
            "command line: unknown option --confg; did you mean \"--config\"?; see trn3sim --help");
  EXPECT_EQ(error_of({"trac", "info", "x"}),
            "command line: unknown command \"trac\"; did you mean \"trace\"?; see trn3sim --help");
  EXPECT_EQ(error_of({"trace", "inf", "x"}),
            "command line: unknown command \"trace inf\"; did you mean \"info\"?; see trn3sim "
            "trace --help");
  EXPECT_EQ(
      error_of({"trace", "gen", "lama"}),
      "command line: unknown model \"lama\", expected llama, residual_add, optimizer_only; did you "
      "mean \"llama\"?");
  EXPECT_EQ(error_of(simulate({"--format", "jsn"})),
            "command line: --format is \"jsn\", expected text, json; did you mean \"json\"?");
  EXPECT_EQ(error_of(simulate({"--compile", "best"})),
            "command line: --compile is \"best\", expected stock, tuned, ideal");
  EXPECT_EQ(error_of(simulate({"--set", "chip.cores"})),
            "command line: --set \"chip.cores\": expected PATH=VALUE, for example --set "
            "chip.hbm.bandwidth=\"6.0 TB/s\"");
  EXPECT_EQ(
      error_of(simulate({"more.json"})),
      "command line: unexpected \"more.json\"; files are given as --config FILE and --trace FILE");
}

TEST(Cli, WhatIsMissing) {
  EXPECT_NE(error_of({}).find("--config FILE is missing"), std::string::npos);
  EXPECT_NE(error_of({"--config", "c"}).find("--trace FILE is missing"), std::string::npos);
  EXPECT_NE(error_of(simulate({"--out", ""})).find("--out"), std::string::npos);
  EXPECT_NE(error_of(simulate({"--out"})).find("--out"), std::string::npos);
  EXPECT_NE(error_of(simulate({"--config", "d"})).find("more than once"), std::string::npos);
  EXPECT_NE(error_of({"trace"}).find("trace needs a command"), std::string::npos);
  EXPECT_NE(error_of({"trace", "info"}).find("needs a file"), std::string::npos);
  EXPECT_NE(error_of({"trace", "check", "a", "b"}).find("takes one file"), std::string::npos);
  EXPECT_NE(error_of({"trace", "gen"}).find("needs a model"), std::string::npos);
  EXPECT_NE(error_of({"trace", "gen", "llama"}).find("-o FILE is missing"), std::string::npos);
}

TEST(Cli, NumbersAreWholeAndPositive) {
  for (const char* bad : {"0", "-1", "4.5", "4x", "99999999999999999999", " 4"}) {
    EXPECT_EQ(
        error_of({"trace", "gen", "llama", "--tp", bad, "-o", "f"}),
        std::string("command line: --tp is \"") + bad + "\", expected a whole number from 1 up");
  }
}

TEST(Cli, OptionsAreNotAbbreviated) {
  EXPECT_NE(error_of({"--conf", "x"}).find("unknown option --conf"), std::string::npos);
}

}  // namespace
}  // namespace trn3sim::app
