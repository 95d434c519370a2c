// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/config/mapping_spec.hpp"

#include "config/document.hpp"
#include "config/dumper.hpp"
#include "config/reader.hpp"

namespace trn3sim::config {

MappingSpec load_mapping(const std::filesystem::path& file) {
  const Json document = load_document(file);
  MappingSpec mapping;
  mapping.file = file.string();
  const auto kind = document.find("kind");
  if (kind == document.end() || *kind != "mapping")
    throw base::UserError(mapping.file + ": /kind",
                          kind == document.end()
                              ? std::string("required, but missing; expected \"mapping\"")
                              : fmt::format("expected \"mapping\", got {}", shown(*kind)));
  ReadState state;
  Reader reader(document, {mapping.file, "", "", false}, state);
  reader.known("kind");
  describe(reader, mapping);
  reader.finish();
  state.problems.throw_if_any();
  return mapping;
}

std::string mapping_text(const MappingSpec& mapping) {
  MappingSpec copy = mapping;
  Json out;
  const std::map<std::string, Provenance> none;
  Dumper dumper(out, "", none);
  describe(dumper, copy);
  out["kind"] = "mapping";
  return out.dump(2) + "\n";
}

}  // namespace trn3sim::config
