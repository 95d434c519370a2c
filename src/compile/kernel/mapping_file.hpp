// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Between mapping files and the mappings of the compiler's family.
#pragma once

#include <string>
#include <vector>

#include "trn3sim/config/mapping_spec.hpp"

#include "compile/kernel/gemm_mapping.hpp"

namespace trn3sim::compile {

// The shares of the cores along `split`, the largest first. Throws base::UserError at `place` if
// the kernel's cores cannot share the work so.
std::vector<GemmShape> split_shapes(const KernelSpec& spec, const std::string& split,
                                    const std::string& place);

// The mapping as a file would give it.
config::PanelMapping panels_of(const GemmMapping& map);
// A file's mapping with its predictions. Throws base::UserError naming file and key for what the
// kernel or the chip does not take.
GemmMapping panel_mapping(const KernelSpec& spec, const config::ChipSpec& chip,
                          const config::MappingSpec& mapping);

}  // namespace trn3sim::compile
