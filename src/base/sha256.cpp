// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/base/sha256.hpp"

#include <array>

#include "trn3sim/base/error.hpp"

#include <openssl/evp.h>

namespace trn3sim::base {

std::string sha256(std::string_view data) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const int ok = EVP_Digest(data.data(), data.size(), digest.data(), &size, EVP_sha256(), nullptr);
  TRN3SIM_CHECK(ok == 1, "SHA-256 failed");
  static constexpr char kHex[] = "0123456789abcdef";
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) {
    hex += kHex[digest[i] >> 4];
    hex += kHex[digest[i] & 15];
  }
  return hex;
}

}  // namespace trn3sim::base
