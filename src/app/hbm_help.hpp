// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace trn3sim::app {

inline constexpr const char* kHbmHelp =
    R"(trn3sim hbm: what an HBM stack alone delivers to a pattern of accesses.

  trn3sim hbm --config FILE [options]
    --pattern PATTERN   stream (default) or random: blocks at random addresses
    --block BYTES       of a random block or a stream's turn (default 4096)
    --streams N         sequential streams, served in turns of a block (default 1)
    --reads SHARE       chance that a turn reads, 0 to 1 (default 1)
    --turn N            bursts of a turn in one direction (default 128)
    --queue-depth N     bursts in the read and in the write queue of a channel
    --refresh MODE      per_bank, all_bank or none
    --mapping LETTERS   address fields from the lowest bit up, such as cgcPhcccKS
    --mode MODE         exact (default): every burst; runs: the model that kernels run on
    --channels N        channels that work (default 1)
    --bursts N          bursts in all; the first tenth is not measured (default 200000)
    --seed N            of random addresses (default 1)
    --set PATH=VALUE    any other number of the chip; repeatable, applied in order
    --format FORMAT     text (default) or json

An in-order front end offers bursts as fast as the queues take them. What is not given comes from the
chip file, its derate included; only the hash of the pseudo-channel is off
(--set chip.hbm.channel_hash=true turns it on).

Examples
  The protocol's limit for random blocks of 1 KiB:
    trn3sim hbm --config chip1.json --pattern random --block 1024 --set chip.hbm.derate=1
  Reads and writes in turns of 16 bursts:
    trn3sim hbm --config chip1.json --reads 0.67 --turn 16
)";

}  // namespace trn3sim::app
