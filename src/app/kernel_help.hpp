// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace trn3sim::app {

inline constexpr const char* kKernelHelp =
    R"(trn3sim kernel: one kernel alone in full detail, every instruction and DMA packet.

  trn3sim kernel gemm --config FILE --m N --n N --k N [options]
  trn3sim kernel attention --config FILE --seq N --heads N --head-dim N [options]
  trn3sim kernel vec --config FILE --fn NAME --rows N --cols N [options]
  trn3sim kernel scan --config FILE --channels N --state N --seq N [options]
  trn3sim kernel copy --config FILE --bytes N [options]

Each prints the time, how long every engine and DMA were active, bytes of HBM, what the engines
waited for, and energy. Options of all of them:
    --config FILE       system or its name (configs/*.json); one core of its chip runs the kernel
    --set PATH=VALUE    override one number; repeatable. Of compile, precision.matmul and
                        precision.sparsity what touches a kernel counts
    --cores N           cores of one HBM stack that share the kernel (default 1)
    --format FORMAT     text (default) or json
    --explain           also the mapping and which bound binds: tensor, vector, dma or hbm
    --timeline FILE     instructions and DMA transfers over time, for ui.perfetto.dev
    --timeline-limit N  slices in it (default 200000); what ends later is left out

  trn3sim kernel KIND --help says the rest.

Examples
    trn3sim kernel gemm --config chip1.json --m 4096 --n 4096 --k 4096 --dtype bf16
    trn3sim kernel attention --config chip1.json --seq 4096 --heads 8 --head-dim 128 --causal
    trn3sim kernel vec --config chip1.json --fn rmsnorm --rows 4096 --cols 4096
)";

inline constexpr const char* kKernelGemmHelp =
    R"(trn3sim kernel gemm: C[m,n] = A B, A is m x k and B is k x n.

  trn3sim kernel gemm --config FILE --m N --n N --k N [options]
    --batch N           products with operands of their own (default 1)
    --dtype FORMAT      of the array: fp32, tf32, bf16 (default), fp16, fp8, mxfp8 or mxfp4
    --a-format FORMAT, --b-format FORMAT   how A and B lie in HBM (default: as --dtype); what the
                        array does not take is converted on the fly: bf16 to mxfp8 by quantize_mx
    --out FORMAT        of C (default: as --dtype; bf16 for formats of 8 bits and less)
    --ta, --tb          A lies as [m,k], B as [n,k]: TensorE transposes each tile. Else the
                        contraction comes first: [k,m] and [k,n]
    --accumulate        C += A B
    --sparsity KEPT:BLOCK   of B's values along k: 4:16
    --fuse FN           function of the epilogue on C, a name of trace files (gelu, add,
                        ...); repeatable, in order
    --mapping FILE      blocks, loops and buffers as the file says; docs/user_guide.md, "Mappings".
                        Default: the fastest of the compiler's best three, each run
    --dump-mapping FILE the mapping that ran, as such a file; "-" is standard output
    --cores, --set, --format, --explain, --timeline: see trn3sim kernel --help

Examples
  How far a large product is from the peak, and what binds:
    trn3sim kernel gemm --config chip1.json --m 4096 --n 4096 --k 4096 --explain
  MXFP8 with operands quantised on the fly, and already quantised:
    trn3sim kernel gemm --config chip1.json --m 4096 --n 4096 --k 4096 --dtype mxfp8 \
      --a-format bf16 --b-format bf16
    trn3sim kernel gemm --config chip1.json --m 4096 --n 4096 --k 4096 --dtype mxfp8
  A mapping of your own, starting from the compiler's:
    trn3sim kernel gemm --config chip1.json --m 2048 --n 2048 --k 2048 --dump-mapping my.json
    trn3sim kernel gemm --config chip1.json --m 2048 --n 2048 --k 2048 --mapping my.json
)";

inline constexpr const char* kKernelAttentionHelp =
    R"(trn3sim kernel attention: softmax(Q K^T) V by heads.

  trn3sim kernel attention --config FILE --seq N --heads N --head-dim N [options]
    --kv-heads N        heads of K and V (default: as --heads)
    --kv-seq N          keys (default: as --seq)
    --batch N           sequences (default 1)
    --causal            queries see earlier keys only
    --backward          dQ, dK and dV instead
    --dtype FORMAT      bf16 (default), fp16, fp8 or fp32
    --cores, --set, --format, --explain, --timeline: see trn3sim kernel --help

Without --set compile.flash_attention=false it is a flash attention.

Examples
    trn3sim kernel attention --config chip1.json --seq 4096 --heads 8 --head-dim 128 --causal
    trn3sim kernel attention --config chip1.json --seq 4096 --heads 8 --kv-heads 1 --head-dim 128 \
      --causal --backward --cores 2
)";

inline constexpr const char* kKernelVecHelp =
    R"(trn3sim kernel vec: a vector function on tensors in HBM.

  trn3sim kernel vec --config FILE --fn NAME (--rows N --cols N | --elems N) [options]
    --fn NAME           a function of trace files: rmsnorm, softmax, adamw, ...; a wrong name
                        gets the nearest one
    --rows N, --cols N  size; only their product counts
    --elems N           the product itself
    --dtype FORMAT      of the tensors (default bf16)
    --cores, --set, --format, --explain, --timeline: see trn3sim kernel --help

Examples
    trn3sim kernel vec --config chip1.json --fn rmsnorm --rows 4096 --cols 4096
    trn3sim kernel vec --config chip1.json --fn adamw --elems 16777216 --dtype fp32 --cores 2
)";

inline constexpr const char* kKernelScanHelp =
    R"(trn3sim kernel scan: selective scan of a state-space model (Mamba).

  trn3sim kernel scan --config FILE --channels N --state N --seq N [options]
    --channels N        channels
    --state N           states of a channel
    --seq N             steps
    --batch N           sequences (default 1)
    --dtype FORMAT      of the tensors: bf16 (default), fp16 or fp32
    --cores, --set, --format, --explain, --timeline: see trn3sim kernel --help

Example
    trn3sim kernel scan --config trn1_chip.json --channels 4096 --state 16 --seq 512 --dtype fp32
)";

inline constexpr const char* kKernelCopyHelp =
    R"(trn3sim kernel copy: tiles between HBM and SBUF, nothing else: what DMA alone does.

  trn3sim kernel copy --config FILE --bytes N [options]
    --bytes N           bytes of a tile per partition, one descriptor each
    --partitions N      partitions of a tile (default 128)
    --count N           tiles (default 1)
    --queues N          DMA queues that take them in turn (default 1)
    --direction D       load (default), store or both: each tile is loaded, then stored
    --cores, --set, --format, --explain, --timeline: see trn3sim kernel --help

Examples
  Rows of 1 KiB one tile after another, and over four queues:
    trn3sim kernel copy --config trn2_chip.json --bytes 1024 --count 64
    trn3sim kernel copy --config trn2_chip.json --bytes 1024 --count 64 --queues 4
)";

}  // namespace trn3sim::app
