// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace trn3sim::app {

inline constexpr const char* kHelp =
    R"(trn3sim: where the time and the joules of a training step go on a Trainium3-class accelerator.

Simulate a step
  trn3sim --config FILE --trace FILE [options]
    --config FILE       system: chips, fabric and everything in them (configs/*.json)
    --trace FILE        workload (*.trace; plain, gzip or zstd)
    --set PATH=VALUE    override one number; repeatable, applied in order
    --compile LEVEL     stock, tuned (default) or ideal; short for --set compile.level=LEVEL
    --format FORMAT     text (default) or json: what goes to standard output
    --out DIR           also write results.json, run_info.json and CSV tables there
    --timeline          with --out: also timeline.json, what ran when, for ui.perfetto.dev
    --timeline-chips N,N...   chips in it (default 0,1,2,3)
    --timeline-limit N  slices in it (default 200000); what ends later is left out
    --timeline-gzip     write timeline.json.gz instead
    --quiet             no progress on the terminal
    --no-fast-forward   simulate every iteration of every loop; --set run.fast_forward=false
    --no-cache          measure every kernel anew, keep nothing for the next run
    --fidelity LEVEL    profiled (default): kernels run in detail once and are replayed; detailed:
                        every instruction of every kernel runs on the machine
    --detailed-chips N,N...   detailed on these chips, profiled elsewhere

How good the profiles are for a workload
  trn3sim fidelity --config FILE --trace FILE [options]

Where the gain of another matmul format comes from
  trn3sim precision --config FILE --trace FILE [--to FORMAT] [options]

One kernel in full detail
  trn3sim kernel gemm|attention|vec|scan|copy --help

What the HBM delivers to a pattern of accesses
  trn3sim hbm --config FILE [options]

Make and look at workloads
  trn3sim trace gen llama --help
  trn3sim trace info FILE [--rank N] [--format json]
  trn3sim trace check FILE

Look at machines
  trn3sim config list
  trn3sim config show FILE [--set PATH=VALUE] [--format json]
  trn3sim config check FILE
  trn3sim config schema chip|system

Files are looked for as given, then in the directories of TRN3SIM_CONFIG_PATH, then among those that
come with trn3sim (configs/, configs/traces/).

Examples
  What bounds a small workload on one chip, in a second:
    trn3sim --config chip1.json --trace residual_add.trace
  Llama-2 7B on 64 chips:
    trn3sim --config ultraserver64.json --trace llama7b.trace
  The same with faster memory, as JSON:
    trn3sim --config ultraserver64.json --trace llama7b.trace \
      --set chip.hbm.bandwidth="6.0 TB/s" --format json
  What the stock compiler would give, with all tables kept:
    trn3sim --config ultraserver64.json --trace llama7b.trace --compile stock --out out/stock
  A workload of your own, and what is in it:
    trn3sim trace gen llama --preset llama2-7b --tp 4 --dp 4 --gbs 64 -o my.trace
    trn3sim trace info my.trace

Exit codes: 0 done; 1 a check that you asked for failed; 2 a mistake in input or options; 3 a bug of
trn3sim (a failed physics check is one). --version prints the version.
)";

inline constexpr const char* kFidelityHelp =
    R"(trn3sim fidelity: how far replayed kernel profiles are from full detail on a workload.

  trn3sim fidelity --config FILE --trace FILE [options]
    --set PATH=VALUE    override one number; repeatable
    --compile LEVEL     stock, tuned (default) or ideal
    --format FORMAT     text (default) or json
    --detailed-chips N,N...   only these chips in full detail in the second run
    --no-cache          measure every kernel anew

Runs the step twice, profiled and detailed, and compares the mean time per execution of each kernel
and the step. The detailed run takes longer: use few layers and micro-batches.

Example
  trn3sim fidelity --config chip1.json --trace my.trace
)";

inline constexpr const char* kPrecisionHelp =
    R"(trn3sim precision: what each part of a change of the matmul format does to a step.

  trn3sim precision --config FILE --trace FILE [options]
    --from FORMAT       trace (default), bf16 or fp16
    --to FORMAT         bf16, fp16, fp8, mxfp8 (default), mxfp4 or fp32
    --set PATH=VALUE    override one number; repeatable
    --compile LEVEL     stock, tuned (default) or ideal
    --format FORMAT     text (default) or json
    --no-cache          measure every kernel anew

Runs the step four times: in the first format; with TensorE at the rate of the second (rate); with
weights in HBM and all operands in SBUF in it (bytes); with the work of conversions (quantise).
Prints time, MFU, HBM bytes, scales, energy and joules per token of each run and what each part
changes. The changes add up to the whole exactly.

Example
  trn3sim precision --config chip1.json --trace my.trace --to mxfp4
)";

inline constexpr const char* kTraceHelp = R"(trn3sim trace: make and look at workloads.

  trn3sim trace gen llama [options] -o FILE     write a training step of a Llama-like model
  trn3sim trace gen residual_add -o FILE        bound by HBM: additions of large tensors
  trn3sim trace gen optimizer_only -o FILE      the AdamW update and nothing else
  trn3sim trace info FILE [options]             counts, FLOP and bytes of one rank
    --rank N            which rank (default 0)
    --format FORMAT     text (default) or json
  trn3sim trace check FILE                      read and check; prints every problem with its line

Examples
  What one rank of the main workload does:
    trn3sim trace info llama7b.trace
  The smallest workload as text, and whether a changed copy is still right:
    trn3sim trace gen residual_add -o my.trace
    trn3sim trace check my.trace

The format is described in docs/trace_format.md.
)";

inline constexpr const char* kLlamaHelp =
    R"(trn3sim trace gen llama: write one training step of a dense Llama-like model.

  trn3sim trace gen llama --preset llama2-7b [options] -o FILE
    --preset NAME       model: sets the sizes that are not given
    --layers, --hidden, --heads, --kv-heads, --ffn, --vocab N    sizes of the model
    --seq N             tokens of a sequence
    --mbs N             sequences of a micro-batch
    --gbs N             sequences of a step, over all ranks
    --tp N              tensor-parallel ranks (with sequence parallelism)
    --dp N              data-parallel ranks
    --rank-unit UNIT    chip, logical_core or core: what one rank is
    --zero1 on|off      shard the optimizer over the data-parallel ranks (default on)
    --recompute WHAT    none, selective (default: SiLU x mul) or full: what each layer's backward
                        pass computes again instead of keeping it
    --overlap-grad-reduce    reduce gradients during the last backward pass
    -o, --output FILE   "-" is standard output

Examples
  The trace of the main example:
    trn3sim trace gen llama --preset llama2-7b --seq 4096 --gbs 1024 --mbs 1 --tp 4 --dp 64 \
      --rank-unit logical_core -o llama7b.trace
  Two layers of it for one chip, to try things quickly:
    trn3sim trace gen llama --preset llama2-7b --layers 2 --gbs 2 --tp 4 --dp 1 -o small.trace
)";

}  // namespace trn3sim::app
