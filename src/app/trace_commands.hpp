// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// `trn3sim trace ...`: each returns the exit code and throws base::UserError.
#pragma once

#include <string>

#include "trn3sim/generate/llama.hpp"
#include "trn3sim/trace/program.hpp"

#include "app/cli.hpp"

namespace trn3sim::app {

int generate_llama(const GenerateLlama& options);
int generate_synthetic(const GenerateSynthetic& options);
int trace_info(const TraceInfo& options);
int trace_check(const TraceCheck& options);

// The plan that the options ask for. Throws base::UserError if sizes of the model are missing.
generate::LlamaPlan llama_plan(const GenerateLlama& options);

// What `trace info` prints about one rank.
std::string info_text(const trace::Program& program, std::int64_t rank);
std::string info_json(const trace::Program& program, std::int64_t rank);

}  // namespace trn3sim::app
