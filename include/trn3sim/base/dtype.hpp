// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Number formats. MX formats are OCP Microscaling v1.0: a block of 32 elements shares one E8M0
// scale byte.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trn3sim::base {

enum class DType : std::uint8_t { Fp32, Tf32, Bf16, Fp16, Fp8, Mxfp8, Mxfp4 };
inline constexpr std::size_t kDTypes = 7;

std::string_view name(DType t);
std::optional<DType> dtype_from(std::string_view text);
std::vector<std::string> dtype_names();

// Bits of one element without its scale: 32, 32, 16, 16, 8, 8, 4.
int element_bits(DType t);
// Bytes of `elements`, scales included for MX formats (one byte per 32), rounded up.
std::int64_t storage_bytes(DType t, std::int64_t elements);

}  // namespace trn3sim::base
