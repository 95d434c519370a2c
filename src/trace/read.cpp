// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "trn3sim/base/sha256.hpp"
#include "trn3sim/base/text.hpp"
#include "trn3sim/trace/program.hpp"

#include "trace/check.hpp"
#include "trace/fields.hpp"
#include "trace/op_reader.hpp"
#include "trace/text_source.hpp"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace trn3sim::trace {
namespace {

namespace dom = simdjson::dom;

constexpr std::size_t kMaxLine = std::size_t{16} << 20;
constexpr std::int64_t kMaxRanks = std::int64_t{1} << 24;

constexpr int kDeepest = 64;  // levels of nested blocks

class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : report_(file.string()) {
    program_.file = file;
  }
  Program run();

 private:
  [[nodiscard]] bool in_block() const { return open_ != 0; }
  Block& current() { return program_.blocks[open_]; }
  OpIds& ids() { return in_block() ? block_ids_ : top_ids_; }

  void lines(std::string_view text);
  void line(std::string_view text);
  void header(Fields& f);
  void mesh(Fields& f);
  void memory(Fields& f);
  void memory_entry(dom::element element);
  void op_line(Fields& f);
  void refused_op(const std::string& id);
  void open_block(Fields& f);
  void close_block(Fields& f);
  void check_depth(Fields& f);
  void add_op(const std::string& kind, Fields& f);

  Program program_;
  Report report_;
  dom::parser parser_;
  std::uint32_t line_ = 0;
  bool header_seen_ = false;
  std::size_t open_ = 0;  // index of the block being read; 0: top level
  OpIds top_ids_, block_ids_;
  std::vector<int> depths_;  // of nesting below each block
  std::map<std::string, std::int32_t> blocks_;
};

Program Reader::run() {
  std::string text = load_text(program_.file);
  program_.content_sha256 = base::sha256(text);
  program_.blocks.emplace_back();
  const std::size_t size = text.size();
  text.resize(size + simdjson::SIMDJSON_PADDING, '\0');  // the parser reads beyond a line's end
  lines(std::string_view(text).substr(0, size));
  if (report_.empty() && in_block())
    report_.add(current().line, fmt::format("block \"{}\" has no \"end\"", current().id));
  if (report_.empty() && program_.blocks[0].ops.empty())
    report_.add(line_, "the trace has no operation outside its blocks, so it does nothing");
  report_.throw_if_any();
  check_program(program_, report_);
  report_.throw_if_any();
  return std::move(program_);
}

void Reader::lines(std::string_view text) {
  std::size_t start = 0;
  while (start < text.size() && !report_.full()) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    ++line_;
    line(text.substr(start, end - start));
    if (!header_seen_ && !report_.empty()) return;  // nothing can be judged without the header
    start = end + 1;
  }
}

void Reader::line(std::string_view text) {
  if (text.size() > kMaxLine) {
    report_.add(line_, fmt::format("the line is {} bytes long; at most 16 MiB", text.size()));
    return;
  }
  if (text.find_first_not_of(" \t\r") == std::string_view::npos) return;
  if (text.find('\0') != std::string_view::npos) {
    report_.add(line_, fmt::format("a NUL byte: the file is damaged or binary; {}", kKnownFormats));
    return;
  }
  const std::string_view native =
      "not a trn3sim trace: line 1 must be the header "
      "{\"trace\":\"trn3sim\",\"v\":1,...}";
  dom::element element;
  const simdjson::error_code error = parser_.parse(text.data(), text.size(), false).get(element);
  if (error != simdjson::SUCCESS) {
    if (!header_seen_ && text.find('{') != 0)
      report_.add(line_, fmt::format("{}{}; {}", native, foreign_format(text), kKnownFormats));
    else
      report_.add(line_, fmt::format("not valid JSON: {}", simdjson::error_message(error)));
    return;
  }
  dom::object object;
  if (element.get(object) != simdjson::SUCCESS) {
    report_.add(line_, fmt::format("expected one JSON object per line, got {}", shown(element)));
    return;
  }
  Fields f(object, report_, line_);
  if (header_seen_) {
    op_line(f);
  } else if (!f.has("trace")) {
    report_.add(line_, fmt::format("{}{}; {}", native, foreign_format(text), kKnownFormats));
  } else {
    header(f);
  }
}

void Reader::header(Fields& f) {
  static const std::vector<std::string> kUnits = {"chip", "logical_core", "core"};
  f.set_what("header");
  Header& h = program_.header;
  const std::string kind = f.require_text("trace");
  if (kind != "trn3sim")
    f.problem(fmt::format("\"trace\": expected \"trn3sim\", got \"{}\"", kind));
  if (const auto version = f.integer("v", 0, kMaxSize - 1); version != 1)
    f.problem(fmt::format("\"v\": this program reads version 1 of the format{}",
                          version ? fmt::format(", not {}", *version) : std::string()));
  h.name = f.text("name").value_or(program_.file.stem().string());
  const int unit = f.choice("rank_unit", kUnits, true);
  if (unit >= 0) h.rank_unit = static_cast<base::RankUnit>(unit);
  mesh(f);
  if (const auto defaults = f.object("defaults")) {
    Fields d(*defaults, report_, line_);
    d.set_what("header \"defaults\"");
    h.dtype = d.dtype("dtype").value_or(DType::Bf16);
    d.finish();
  }
  f.object("model");
  f.object("source");
  h.tokens_per_step = f.integer_or("tokens_per_step", 0, 0);
  memory(f);
  f.finish();
  header_seen_ = report_.empty();
}

void Reader::mesh(Fields& f) {
  if (!f.has("mesh")) f.problem("\"mesh\" is required, but missing");
  const auto axes = f.array("mesh");
  if (!axes) return;
  std::vector<base::MeshAxis> list;
  Int128 ranks = 1;
  for (dom::element element : *axes) {
    dom::array pair;
    std::string_view name;
    std::int64_t size = 0;
    const bool good = element.get(pair) == simdjson::SUCCESS && pair.size() == 2 &&
                      pair.at(0).get(name) == simdjson::SUCCESS &&
                      pair.at(1).get(size) == simdjson::SUCCESS && size > 0 && size <= kMaxRanks &&
                      !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
                        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
                      });
    if (!good) {
      f.problem(
          fmt::format("\"mesh\": expected pairs of a name (a-z, 0-9, _) and a size, such as "
                      "[\"tp\",4], got {}",
                      shown(element)));
      return;
    }
    if (std::any_of(list.begin(), list.end(), [&](const auto& a) { return a.name == name; }))
      f.problem(fmt::format("\"mesh\": axis \"{}\" is given twice", name));
    list.push_back({std::string(name), size});
    ranks *= size;
    if (ranks > kMaxRanks) {
      f.problem(fmt::format("\"mesh\": more than {} ranks", kMaxRanks));
      return;
    }
  }
  if (list.empty()) f.problem("\"mesh\": needs at least one axis");
  program_.header.mesh = base::Mesh(std::move(list));
}

void Reader::memory(Fields& f) {
  const auto entries = f.array("memory");
  if (!entries) return;
  for (dom::element element : *entries) memory_entry(element);
}

void Reader::memory_entry(dom::element element) {
  static const std::vector<std::string> kLive = {"always", "step", "optimizer"};
  dom::object object;
  if (element.get(object) != simdjson::SUCCESS) {
    report_.add(line_, fmt::format("header \"memory\": expected objects, got {}", shown(element)));
    return;
  }
  Fields m(object, report_, line_);
  m.set_what("header \"memory\"");
  MemoryEntry entry;
  entry.kind = m.require_text("kind");
  entry.bytes = m.require_integer("bytes", 0);
  if (const int live = m.choice("live", kLive, false); live >= 0)
    entry.live = kLive[static_cast<std::size_t>(live)];
  m.finish();
  program_.header.memory.push_back(std::move(entry));
}

void Reader::op_line(Fields& f) {
  const std::optional<std::string> op = f.text("op");
  if (!op) {
    if (!f.has("op")) f.problem("\"op\" is required, but missing");
    return;
  }
  if (*op == "block") return open_block(f);
  if (*op == "end") return close_block(f);
  if (std::find(op_names().begin(), op_names().end(), *op) != op_names().end())
    return add_op(*op, f);
  std::vector<std::string> names = op_names();
  names.insert(names.end(), {"block", "end"});
  f.problem(fmt::format("unknown op \"{}\"{}; known: {}", *op, base::did_you_mean(*op, names),
                        fmt::join(names, ", ")));
  if (const auto id = f.any("id"))
    if (const auto text = id_of(*id)) refused_op(*text);
}

// A refused op keeps its id, so that ops which depend on it are not reported as well: one mistake,
// one message. The program itself is never used, because read() throws.
void Reader::refused_op(const std::string& id) {
  if (!ids().emplace(id, static_cast<std::int32_t>(current().ops.size())).second) return;
  Op op;
  op.id = id;
  op.body = Delay{};
  op.line = line_;
  current().ops.push_back(std::move(op));
}

void Reader::open_block(Fields& f) {
  static const std::vector<std::string> kPhases = {"forward", "backward", "optimizer"};
  Block block;
  block.id = f.require_id("id");
  block.line = line_;
  f.set_what("block", block.id);
  if (in_block())
    f.problem(fmt::format("block \"{}\" (line {}) has no \"end\" before this line", current().id,
                          current().line));
  if (const int phase = f.choice("phase", kPhases, false); phase >= 0)
    block.phase = kPhases[static_cast<std::size_t>(phase)];
  if (const auto at = blocks_.find(block.id); at != blocks_.end())
    f.problem(fmt::format("a block of this id is defined on line {}",
                          program_.blocks[static_cast<std::size_t>(at->second)].line));
  f.finish();
  open_ = program_.blocks.size();
  program_.blocks.push_back(std::move(block));
  block_ids_.clear();
}

void Reader::close_block(Fields& f) {
  f.set_what("end");
  const std::vector<std::string> out = f.ids("out");
  f.finish();
  if (!in_block()) {
    f.problem("no block is open");
    return;
  }
  f.set_what("end of block", current().id);
  if (current().ops.empty()) f.problem("the block has no operations");
  for (const std::string& id : out) {
    const auto at = block_ids_.find(id);
    if (at == block_ids_.end())
      f.problem(fmt::format("\"out\": no op \"{}\" in this block", id));
    else if (std::find(current().out.begin(), current().out.end(), at->second) !=
             current().out.end())
      f.problem(fmt::format("\"out\": \"{}\" is given twice", id));
    else
      current().out.push_back(at->second);
  }
  check_depth(f);
  blocks_.emplace(current().id, static_cast<std::int32_t>(open_));
  open_ = 0;
}

// Blocks that call blocks and so on; the checks and the simulator go down call by call.
void Reader::check_depth(Fields& f) {
  depths_.resize(program_.blocks.size(), 0);
  int depth = 0;
  for (const Op& op : current().ops) {
    std::int32_t child = -1;
    if (const auto* call = std::get_if<Call>(&op.body)) child = call->block;
    if (const auto* repeat = std::get_if<Repeat>(&op.body)) child = repeat->block;
    if (child >= 0) depth = std::max(depth, depths_[static_cast<std::size_t>(child)] + 1);
  }
  depths_[open_] = std::min(depth, kDeepest);
  if (depth == kDeepest)
    f.problem(fmt::format("blocks are nested {} deep; at most {}", depth + 1, kDeepest));
}

void Reader::add_op(const std::string& kind, Fields& f) {
  const OpScope scope{&program_.header, &current(), &ids(), &blocks_,
                      in_block() ? current().id : std::string()};
  Op op = read_op(kind, f, scope);
  op.line = line_;
  ids().emplace(op.id, static_cast<std::int32_t>(current().ops.size()));
  current().ops.push_back(std::move(op));
}

}  // namespace

Program read(const std::filesystem::path& file) {
  return Reader(file).run();
}

}  // namespace trn3sim::trace
