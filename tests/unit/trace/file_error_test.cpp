// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with a file as a whole: its text, its place, its compression.
#include "unit/trace/trace_file.hpp"
#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

namespace trn3sim::trace {
namespace {

const std::string kFine = R"({"op":"delay","id":"a","ns":1})"
                          "\n";

constexpr const char* kKnown = "known: trn3sim native trace (JSON Lines), plain, gzip or zstd";
constexpr const char* kNative =
    "FILE:1: not a trn3sim trace: line 1 must be the header {\"trace\":\"trn3sim\",\"v\":1,...}";

TEST(FormatErrors, WholeFile) {
  EXPECT_EQ(complaint(""), fmt::format("FILE: the file is empty; {}", kKnown));
  EXPECT_EQ(complaint("\n \n"), fmt::format("FILE: the file has no text; {}", kKnown));
  EXPECT_EQ(complaint(std::string("\x0a\x05\x31\x00\x02", 5)).substr(0, 5), "FILE:");
  EXPECT_EQ(complaint(std::string("\x08\x00\x12\x05hello\n", 10)),
            fmt::format("FILE: binary data, not a trace; {} (Chakra .et and HLO protobuf are not "
                        "read)",
                        kKnown));
  EXPECT_EQ(complaint("HloModule jit_step\n"),
            fmt::format("{} (this looks like HLO text); {}", kNative, kKnown));
  EXPECT_EQ(complaint("{\"traceEvents\":[]}\n"),
            fmt::format("{} (this looks like a Chrome or Kineto trace); {}", kNative, kKnown));
  EXPECT_EQ(complaint(kHeader + kFine + std::string("\0\0\0", 3)),
            fmt::format("FILE:3: a NUL byte: the file is damaged or binary; {}", kKnown));
  // A line of 20 MB, refused before it is parsed.
  EXPECT_EQ(complaint(kHeader + kFine + std::string(20'000'000, 'x')),
            "FILE:3: the line is 20000000 bytes long; at most 16 MiB");
}

TEST(FormatErrors, FileSystem) {
  try {
    read("/nowhere/at_all.trace");
    FAIL();
  } catch (const base::UserError& e) {
    EXPECT_STREQ(e.what(),
                 "/nowhere/at_all.trace: cannot open the trace: No such file or directory");
  }
  EXPECT_THROW(read(testing::TempDir()), base::UserError);
}

std::string zstd_of(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

std::string gzip_of(std::string text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(Compression, IsSeenByContentAndMustBeWhole) {
  // Large enough for several chunks of the decompressors.
  std::string text = kHeader;
  for (int i = 0; i < 20000; ++i)
    text += fmt::format(R"({{"op":"delay","id":"op{}","ns":{}}})"
                        "\n",
                        i, i * 7919 % 1000);
  const TempFile plain(text);
  const std::string sha = read(plain.path()).content_sha256;
  for (const auto& [bytes, kind] :
       {std::pair{zstd_of(text), "zstd"}, std::pair{gzip_of(text), "gzip"}}) {
    const TempFile packed(bytes);
    const Program program = read(packed.path());
    EXPECT_EQ(program.content_sha256, sha) << kind;  // the key is that of the text
    EXPECT_EQ(program.blocks[0].ops.size(), 20000U);
    // Cut anywhere (also within the last bytes: checksum or end mark), it is refused.
    for (std::size_t keep : {std::size_t{6}, std::size_t{40}, bytes.size() / 2, bytes.size() - 1})
      EXPECT_EQ(complaint(bytes.substr(0, keep)),
                fmt::format("FILE: damaged {} data: the file is truncated", kind))
          << keep;
    // Two streams in one file are their texts in a row.
    EXPECT_EQ(complaint(bytes + bytes).substr(0, 7), "FILE:20") << kind;
  }
  std::string flipped = gzip_of(text);
  flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 0x55);
  EXPECT_EQ(complaint(flipped).substr(0, 24), "FILE: damaged gzip data:");
}

}  // namespace
}  // namespace trn3sim::trace
