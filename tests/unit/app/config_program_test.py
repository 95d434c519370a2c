#!/usr/bin/env python3
# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""`trn3sim config` from outside. Usage: config_program_test.py PROGRAM SOURCE_DIR."""
import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(2)).resolve()
PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
CONFIGS = ROOT / "configs"
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}


class Schema:
    """The keywords that the schemas use; an unknown one is an error, so nothing goes unchecked."""

    NOTES = {"$schema", "$defs", "title", "description"}

    def __init__(self, document):
        self.document = document

    def problems(self, value, schema=None, path=""):
        schema = self.document if schema is None else schema
        found = []
        for word in schema.keys() - self.NOTES:
            check = getattr(self, "word_" + word.replace("$", ""))
            found += [f"{path}: {p}" if isinstance(p, str) else p[0] for p in check(schema, value, path)]
        return found

    def word_type(self, schema, value, _path):
        is_flag = isinstance(value, bool)
        if not isinstance(value, TYPES[schema["type"]]) or (is_flag and schema["type"] != "boolean"):
            yield f"no {schema['type']}"

    def word_ref(self, schema, value, path):
        name = schema["$ref"].removeprefix("#/$defs/")
        return [[p] for p in self.problems(value, self.document["$defs"][name], path)]

    def word_anyOf(self, schema, value, path):
        if not any(not self.problems(value, one, path) for one in schema["anyOf"]):
            yield "no alternative fits"

    def word_oneOf(self, schema, value, path):
        if sum(not self.problems(value, one, path) for one in schema["oneOf"]) != 1:
            yield "not exactly one alternative fits"

    def word_properties(self, schema, value, path):
        if isinstance(value, dict):
            for key in value.keys() & schema["properties"].keys():
                yield from ([p] for p in self.problems(value[key], schema["properties"][key], f"{path}/{key}"))

    def word_additionalProperties(self, schema, value, _path):
        assert schema["additionalProperties"] is False
        if isinstance(value, dict):
            yield from (f"unknown {key}" for key in sorted(value.keys() - schema["properties"].keys()))

    def word_required(self, schema, value, _path):
        if isinstance(value, dict):
            yield from (f"missing {key}" for key in schema["required"] if key not in value)

    def word_items(self, schema, value, path):
        if isinstance(value, list):
            for i, item in enumerate(value):
                yield from ([p] for p in self.problems(item, schema["items"], f"{path}/{i}"))

    def word_minItems(self, schema, value, _path):
        if isinstance(value, list) and len(value) < schema["minItems"]:
            yield "too few"

    def word_maxItems(self, schema, value, _path):
        if isinstance(value, list) and len(value) > schema["maxItems"]:
            yield "too many"

    def word_minLength(self, schema, value, _path):
        if isinstance(value, str) and len(value) < schema["minLength"]:
            yield "too short"

    def word_pattern(self, schema, value, _path):
        if isinstance(value, str) and not re.search(schema["pattern"], value):
            yield f"{value} is no {schema['pattern']}"

    def word_const(self, schema, value, _path):
        if value != schema["const"]:
            yield f"not {schema['const']}"

    def word_enum(self, schema, value, _path):
        if value not in schema["enum"]:
            yield f"none of {schema['enum']}"

    @staticmethod
    def is_number(value):
        return isinstance(value, (int, float)) and not isinstance(value, bool)

    def word_minimum(self, schema, value, _path):
        if self.is_number(value) and value < schema["minimum"]:
            yield "too small"

    def word_exclusiveMinimum(self, schema, value, _path):
        if self.is_number(value) and value <= schema["exclusiveMinimum"]:
            yield "too small"

    def word_maximum(self, schema, value, _path):
        if self.is_number(value) and value > schema["maximum"]:
            yield "too large"


def values(node, path=()):
    """Every value of a configuration that is no object, with its path; long leaves count as one."""
    if isinstance(node, dict) and "value" not in node:
        for key, below in node.items():
            yield from values(below, (*path, key))
    elif isinstance(node, list) and node and isinstance(node[0], dict):
        for i, below in enumerate(node):
            yield from values(below, (*path, i))
    else:
        yield path, node


def at(node, path):
    for key in path:
        node = node[key]
    return node


class ConfigProgramTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.scratch.name)

    def tearDown(self):
        self.scratch.cleanup()

    def run_program(self, *arguments, expect=0):
        done = subprocess.run([PROGRAM, "config", *map(str, arguments)], cwd=self.root, capture_output=True, text=True,
                              check=False, timeout=100)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done

    def schema(self, kind):
        return Schema(json.loads(self.run_program("schema", kind).stdout))

    def resolved(self, name, *more):
        return json.loads(self.run_program("show", name, "--format", "json", *more).stdout)

    def test_list_names_what_ships(self):
        listed = json.loads(self.run_program("list", "--format", "json").stdout)
        self.assertEqual([s["file"] for s in listed["systems"]], sorted(f.name for f in CONFIGS.glob("*.json")))
        self.assertEqual([t["file"] for t in listed["traces"]],
                         sorted(f.name for f in (CONFIGS / "traces").glob("*.trace")))
        self.assertEqual([c["file"] for c in listed["chips"]],
                         sorted(f"chips/{f.name}" for f in (CONFIGS / "chips").glob("*.json")))
        self.assertEqual({s["file"]: s["chips"] for s in listed["systems"]}["ultraserver64.json"], 64)
        self.assertFalse([entry for group in listed.values() for entry in group if "problem" in entry])
        text = self.run_program("list").stdout
        self.assertEqual(len(text.splitlines()), 3 + sum(map(len, listed.values())))  # a line each and 3 titles
        self.assertRegex(text, r"(?m)^  ultraserver64\.json +64 chips  Trn3 Gen1 UltraServer, 64 chips$")

    def test_list_marks_what_cannot_be_used(self):
        (self.root / "broken.json").write_text("{")
        (self.root / "broken.trace").write_text("{")
        done = subprocess.run([PROGRAM, "config", "list"], cwd=self.root, capture_output=True, text=True, check=True,
                              env={"TRN3SIM_CONFIG_PATH": str(self.root)})
        self.assertIn("cannot be used; see trn3sim config check broken.json", done.stdout)
        self.assertIn("cannot be used; see trn3sim trace check broken.trace", done.stdout)

    def test_show_has_every_value_with_unit_source_and_confidence(self):
        lines = self.run_program("show", "ultraserver64.json", "--set", "chip.hbm.bandwidth=6.0TB/s").stdout.splitlines()
        rows = {line.split()[0]: line for line in lines[1:]}
        resolved = self.resolved("ultraserver64.json")
        paths = {".".join(map(str, p)) for p, _ in values(resolved)} - {"kind", "chip.kind"}
        self.assertEqual(rows.keys(), paths)
        self.assertRegex(rows["chip.hbm.bandwidth"], r"^chip\.hbm\.bandwidth +6 TB/s +set +--set$")
        self.assertRegex(rows["fabric.switch_latency"], r" 200 ns +assumed +not published; PCIe6 class switch$")
        self.assertRegex(rows["chip.hbm.t_rcd_read"], r" 19\.375 ns +third_party +Ramulator")

    def test_what_show_prints_is_a_configuration(self):
        (self.root / "my.json").write_text(
            self.run_program("show", "torus16.json", "--set", "fabric.dims=[8, 8]", "--format", "json").stdout)
        self.assertRegex(self.run_program("check", "my.json").stdout, r"^my\.json: ok, system \".*\" of 64 chips\n$")

    def test_check_reports_every_problem(self):
        self.assertRegex(self.run_program("check", "chips/trn3.json").stdout, r"ok, chip \"Trainium3\"\n$")
        chip = json.loads((CONFIGS / "chips/trn3.json").read_text())
        chip["cores"] = 7
        del chip["hbm"]["row"]
        chip["hbm"]["colour"] = 1
        chip["cores"] = {**json.loads((CONFIGS / "chips/trn3.json").read_text())["cores"], "value": -7}
        (self.root / "bad.json").write_text(json.dumps(chip))
        errors = self.run_program("check", "bad.json", expect=2).stderr
        for line in ("error: bad.json: /cores: expected a whole number from 1 to 1024, got -7",
                     "error: bad.json: /hbm/row: required, but missing", "error: bad.json: /hbm/colour: unknown key"):
            self.assertIn(line, errors)
        (self.root / "kind.json").write_text('{"kind": "sytem"}')
        self.assertIn('kind.json: /kind: expected "system" or "chip", got "sytem"',
                      self.run_program("check", "kind.json", expect=2).stderr)

    def test_the_schema_takes_what_ships(self):
        chip = json.loads((CONFIGS / "chips/trn3.json").read_text())
        self.assertEqual(self.schema("chip").problems(chip), [])
        for file in sorted(CONFIGS.glob("*.json")):
            with self.subTest(file.name):
                system = json.loads(file.read_text())
                self.assertEqual(self.schema("system").problems(system), [])
                self.assertEqual(self.schema("system").problems(self.resolved(file.name)), [])

    def test_the_schema_refuses_what_the_reader_refuses(self):
        """Each value of a whole system: removed, renamed, of another type."""
        schema = self.schema("system")
        whole = self.resolved("ultraserver64.json")
        optional = {"compile", "precision", "collectives", "run"}
        choices = {"mode", "page_policy", "mapping", "channel_hash"}
        for path, value in list(values(whole)):
            for change in ("remove", "rename", "type"):
                broken = copy.deepcopy(whole)
                parent = at(broken, path[:-1])
                if change == "remove":
                    del parent[path[-1]]
                elif change == "rename":
                    parent["nobody_knows"] = parent.pop(path[-1])
                else:
                    parent[path[-1]] = [[]]
                refused = bool(schema.problems(broken))
                choice = path[:2] == ("chip", "hbm") and path[2] in choices
                expected = not (change == "remove" and (path[0] in optional or choice))
                self.assertEqual(refused, expected, (path, change))

    def test_ranges_and_patterns(self):
        schema = self.schema("system")
        whole = self.resolved("torus16.json")

        def takes(path, value):
            changed = copy.deepcopy(whole)
            at(changed, path[:-1])[path[-1]] = value
            (self.root / "changed.json").write_text(json.dumps(changed))
            by_schema = not schema.problems(changed)
            by_reader = subprocess.run([PROGRAM, "config", "check", "changed.json"], cwd=self.root, capture_output=True,
                                       check=False).returncode == 0
            self.assertEqual(by_schema, by_reader, (path, value))
            return by_schema

        long = {"source": "s", "confidence": "derived"}
        bandwidth = ("chip", "hbm", "bandwidth")
        self.assertTrue(takes(bandwidth, {"value": "6.0TB/s", **long}))
        for bad in ("6.0", "6.0 TB", "6 TBps", "0 TB/s", "0.00TB/s", "-1 TB/s", ".5 TB/s", "1. TB/s", "1  TB/s", 6, None):
            self.assertFalse(takes(bandwidth, {"value": bad, **long}), bad)
        self.assertFalse(takes(bandwidth, {"value": "6 TB/s", **long, "confidence": "sure"}))
        self.assertFalse(takes(bandwidth, {"value": "6 TB/s", **long, "note": "x"}))
        self.assertTrue(takes(("chip", "dma", "completion"), {"value": "0 ns", **long}))
        self.assertFalse(takes(("chip", "hbm", "derate"), {"value": 0, **long}))
        self.assertFalse(takes(("chip", "hbm", "derate"), {"value": 1.5, **long}))
        self.assertFalse(takes(("chip", "hbm", "refresh"), {"value": "often", **long}))
        self.assertFalse(takes(("chip", "dma", "engines"), {"value": 0, **long}))
        self.assertFalse(takes(("chip", "dma", "engines"), {"value": True, **long}))
        self.assertFalse(takes(("fabric", "dims"), []))
        self.assertFalse(takes(("fabric", "dims"), [4] * 7))
        self.assertTrue(takes(("fabric", "dims"), [2, 8]))
        self.assertFalse(takes(("fabric", "type"), "ring"))
        self.assertFalse(takes(("run", "seed"), -1))
        self.assertFalse(takes(("name",), ""))
        self.assertTrue(takes(("chip",), "chips/trn3.json"))

    def test_schema_of_a_graph(self):
        schema = self.schema("system")
        link = {"from": "chip0", "to": "sw0", "bandwidth": "100 GB/s", "latency": "500 ns"}
        graph = {"kind": "system", "name": "g", "chip": "chips/trn3.json",
                 "fabric": {"type": "graph", "chips": 1, "switches": [{"name": "sw0", "latency": "0 ns"}], "links": [link]}}
        self.assertEqual(schema.problems(graph), [])
        for bad in ({**link, "width": 1}, {"from": "chip0"}, "chip0-sw0", {**link, "one_way": "yes"}):
            graph["fabric"]["links"] = [bad]
            self.assertNotEqual(schema.problems(graph), [], bad)

    def test_the_reference_is_up_to_date(self):
        page = self.run_program("schema", "--format", "markdown").stdout
        self.assertEqual((ROOT / "docs/config_reference.md").read_text(), page,
                         "write it anew: trn3sim config schema --format markdown > docs/config_reference.md")


if __name__ == "__main__":
    unittest.main()
