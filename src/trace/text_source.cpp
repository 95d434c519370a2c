// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trace/text_source.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "trn3sim/base/error.hpp"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

namespace trn3sim::trace {
namespace {

using base::UserError;

constexpr std::size_t kMaxText = std::size_t{4} << 30;
constexpr std::size_t kChunk = std::size_t{1} << 18;

std::string read_bytes(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    throw UserError(file.string(), "is a directory; expected a trace file");
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    throw UserError(file.string(), fmt::format("cannot open the trace: {}",
                                               std::strerror(errno != 0 ? errno : ENOENT)));
  std::string bytes;
  std::string chunk(kChunk, '\0');
  while (stream.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) ||
         stream.gcount() > 0) {
    bytes.append(chunk.data(), static_cast<std::size_t>(stream.gcount()));
    if (bytes.size() > kMaxText)
      throw UserError(file.string(), "the trace is larger than 4 GiB; use repeat blocks");
  }
  if (stream.bad()) throw UserError(file.string(), "reading the trace failed");
  return bytes;
}

[[noreturn]] void damaged(const std::filesystem::path& file, std::string_view kind,
                          std::string_view detail) {
  throw UserError(file.string(), fmt::format("damaged {} data: {}", kind, detail));
}

void append(std::string& text, const char* data, std::size_t size,
            const std::filesystem::path& file) {
  if (text.size() + size > kMaxText)
    throw UserError(file.string(), "the trace expands to more than 4 GiB; use repeat blocks");
  text.append(data, size);
}

std::string gunzip(const std::string& bytes, const std::filesystem::path& file) {
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16;  // largest window, gzip framing
  TRN3SIM_CHECK(inflateInit2(&stream, kGzipWindow) == Z_OK, "zlib");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, inflateEnd);
  std::string text;
  std::string chunk(kChunk, '\0');
  std::size_t fed = 0;
  int status = Z_OK;
  while (true) {
    if (stream.avail_in == 0 && fed < bytes.size()) {
      const std::size_t n = std::min<std::size_t>(bytes.size() - fed, std::size_t{1} << 30);
      // zlib's interface is not const-correct; it does not write to its input.
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + fed));
      stream.avail_in = static_cast<uInt>(n);
      fed += n;
    }
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    status = inflate(&stream, Z_NO_FLUSH);
    append(text, chunk.data(), chunk.size() - stream.avail_out, file);
    if (status == Z_STREAM_END) {
      if (stream.avail_in == 0 && fed == bytes.size()) return text;
      if (inflateReset(&stream) != Z_OK) damaged(file, "gzip", "cannot go on to the next member");
      continue;
    }
    if (status == Z_BUF_ERROR ||
        (status == Z_OK && stream.avail_in == 0 && fed == bytes.size() && stream.avail_out != 0))
      damaged(file, "gzip", "the file is truncated");
    if (status != Z_OK)
      damaged(file, "gzip", stream.msg != nullptr ? stream.msg : "cannot be decompressed");
  }
}

std::string unzstd(const std::string& bytes, const std::filesystem::path& file) {
  const std::unique_ptr<ZSTD_DStream, std::size_t (*)(ZSTD_DStream*)> stream(ZSTD_createDStream(),
                                                                             ZSTD_freeDStream);
  TRN3SIM_CHECK(stream != nullptr, "zstd");
  std::string text;
  std::string chunk(kChunk, '\0');
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  std::size_t pending = 1;  // 0: a frame is complete and flushed
  while (true) {
    ZSTD_outBuffer out{chunk.data(), chunk.size(), 0};
    pending = ZSTD_decompressStream(stream.get(), &out, &in);
    if (ZSTD_isError(pending) != 0) damaged(file, "zstd", ZSTD_getErrorName(pending));
    append(text, chunk.data(), out.pos, file);
    if (in.pos < in.size || out.pos == out.size) continue;
    if (pending == 0) return text;
    damaged(file, "zstd", "the file is truncated");
  }
}

bool starts_with(std::string_view text, std::string_view magic) {
  return text.substr(0, magic.size()) == magic;
}

}  // namespace

std::string foreign_format(std::string_view text) {
  const std::string_view head = text.substr(0, 4096);
  if (starts_with(head, "HloModule")) return " (this looks like HLO text)";
  static constexpr std::array<std::string_view, 7> kPolicies = {
      "HYBRID", "DATA", "MODEL", "MICRO", "DLRM", "TRANSFORMER", "GPT"};
  for (std::string_view policy : kPolicies)
    if (starts_with(head, policy)) return " (this looks like an ASTRA-sim or SimAI text workload)";
  if (head.find("\"traceEvents\"") != std::string_view::npos)
    return " (this looks like a Chrome or Kineto trace)";
  if (head.find("\"workload_graph\"") != std::string_view::npos)
    return " (this looks like Chakra JSON)";
  return "";
}

std::string load_text(const std::filesystem::path& file) {
  std::string text = read_bytes(file);
  if (text.empty())
    throw UserError(file.string(), fmt::format("the file is empty; {}", kKnownFormats));
  if (starts_with(text, "\x1f\x8b"))
    text = gunzip(text, file);
  else if (starts_with(text, "\x28\xb5\x2f\xfd"))
    text = unzstd(text, file);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw UserError(file.string(), fmt::format("the file has no text; {}", kKnownFormats));
  // Control bytes other than white space in the first line mean a binary format.
  const std::string_view head =
      std::string_view(text).substr(0, std::min<std::size_t>(text.find('\n'), 4096));
  const bool binary = std::any_of(head.begin(), head.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u < 0x20 && c != '\t' && c != '\r';
  });
  if (binary)
    throw UserError(file.string(),
                    fmt::format("binary data, not a trace; {} (Chakra .et and HLO protobuf are not "
                                "read)",
                                kKnownFormats));
  return text;
}

}  // namespace trn3sim::trace
