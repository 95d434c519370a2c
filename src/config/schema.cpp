// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/config/schema.hpp"

#include "config/document.hpp"
#include "config/outline.hpp"
#include "config/reader.hpp"

namespace trn3sim::config {
namespace {

constexpr const char* kDialect = "https://json-schema.org/draft/2020-12/schema";

// A schema in construction; `defs` collects what is referred to by name.
class SchemaWriter {
 public:
  [[nodiscard]] Json object(const std::vector<KeyInfo>& keys, const std::string& type = "") {
    Json properties = {{"source", reference("source")}, {"confidence", reference("confidence")}};
    Json required = Json::array();
    for (const KeyInfo& key : keys) {
      properties[key.key] =
          type.empty() || key.key != "type" ? value(key) : leaf({{"const", type}});
      if (!key.doc.empty()) properties[key.key]["description"] = key.doc;
      if (key.required) required.push_back(key.key);
    }
    return {{"type", "object"},
            {"properties", std::move(properties)},
            {"required", std::move(required)},
            {"additionalProperties", false}};
  }

  // `body` with the schemas it refers to.
  [[nodiscard]] std::string document(Json body, const std::string& title) {
    defs_["source"] = {
        {"type", "string"}, {"minLength", 1}, {"description", "where values come from"}};
    defs_["confidence"] = {{"enum", kConfidences}, {"description", "how sure the source is"}};
    body["$schema"] = kDialect;
    body["title"] = title;
    body["$defs"] = defs_;
    return body.dump(2) + "\n";
  }

  void define(const std::string& name, Json schema) { defs_[name] = std::move(schema); }
  [[nodiscard]] static Json reference(const std::string& name) {
    return {{"$ref", "#/$defs/" + name}};
  }

 private:
  // Plain, or with source and confidence.
  [[nodiscard]] static Json leaf(const Json& plain) {
    return {{"anyOf",
             {plain,
              {{"type", "object"},
               {"properties",
                {{"value", plain},
                 {"source", reference("source")},
                 {"confidence", reference("confidence")}}},
               {"required", {"value"}},
               {"additionalProperties", false}}}}};
  }

  [[nodiscard]] Json quantity(const KeyInfo& key) {
    const std::string name = (key.above_zero ? "positive_" : "") + key.quantity;
    if (!defs_.contains(name)) {
      const std::string above_zero = key.above_zero ? "(?=[0-9.]*[1-9])" : "";
      defs_[name] = leaf({{"type", "string"},
                          {"pattern", fmt::format("^{}[0-9]+(\\.[0-9]+)? ?({})$", above_zero,
                                                  fmt::join(key.names, "|"))}});
    }
    return reference(name);
  }

  [[nodiscard]] static Json integer(const KeyInfo& key) {
    return {{"type", "integer"},
            {"minimum", static_cast<std::int64_t>(key.low)},
            {"maximum", static_cast<std::int64_t>(key.high)}};
  }

  [[nodiscard]] Json section(const KeyInfo& key) {
    if (key.shapes.empty()) return object(key.keys);
    Json shapes = Json::array();
    for (const Shape& shape : key.shapes) shapes.push_back(object(shape.keys, shape.type));
    return {{"oneOf", std::move(shapes)}};
  }

  [[nodiscard]] Json value(const KeyInfo& key) {
    switch (key.kind) {
      case KeyKind::Section:
        return section(key);
      case KeyKind::List:
        return {{"type", "array"},
                {"items", object(key.keys)},
                {"minItems", key.required ? 1 : 0},
                {"maxItems", key.most}};
      case KeyKind::Counts:
        return leaf(
            {{"type", "array"}, {"items", integer(key)}, {"minItems", 1}, {"maxItems", key.most}});
      case KeyKind::Count:
        return leaf(integer(key));
      case KeyKind::Number:
        return leaf({{"type", "number"}, {"minimum", key.low}, {"maximum", key.high}});
      case KeyKind::Share:
        return leaf({{"type", "number"}, {"exclusiveMinimum", 0}, {"maximum", 1}});
      case KeyKind::Seed:
        return leaf({{"type", "integer"}, {"minimum", 0}});
      case KeyKind::Flag:
        return leaf({{"type", "boolean"}});
      case KeyKind::Text:
        return leaf({{"type", "string"}, {"minLength", key.required ? 1 : 0}});
      case KeyKind::Choice:
        return leaf({{"enum", key.names}});
      case KeyKind::Quantity:
        return quantity(key);
    }
    TRN3SIM_CHECK(false, "a key of no kind: " + key.key);
    return {};
  }

  Json defs_ = Json::object();
};

Json chip_object(SchemaWriter& writer) {
  Json chip = writer.object(chip_outline());
  chip["properties"]["kind"] = {{"const", "chip"}};
  chip["required"].push_back("kind");
  return chip;
}

}  // namespace

std::vector<KeyInfo> chip_outline() {
  std::vector<KeyInfo> keys;
  Outliner outliner(keys);
  ChipSpec spec;
  describe(outliner, spec);
  return keys;
}

std::vector<KeyInfo> system_outline() {
  std::vector<KeyInfo> keys;
  Outliner outliner(keys);
  SystemFile file;
  describe(outliner, file);
  return keys;
}

std::string chip_schema() {
  SchemaWriter writer;
  return writer.document(chip_object(writer), "trn3sim chip file");
}

std::string system_schema() {
  SchemaWriter writer;
  writer.define("chip", chip_object(writer));
  Json system = writer.object(system_outline());
  system["properties"]["kind"] = {{"const", "system"}};
  system["properties"]["chip"] = {
      {"anyOf", {{{"type", "string"}, {"minLength", 1}}, SchemaWriter::reference("chip")}},
      {"description", "name of a chip file, or the chip itself"}};
  for (const char* key : {"kind", "chip"}) system["required"].push_back(key);
  return writer.document(std::move(system), "trn3sim system file");
}

}  // namespace trn3sim::config
