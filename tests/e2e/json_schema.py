"""What is wrong with a value, by the part of JSON Schema that docs/schemas uses."""
import json
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool,
         "number": (int, float), "null": type(None)}
KNOWN = {"$ref", "$schema", "$id", "$defs", "title", "description", "type", "const", "enum",
         "minimum", "pattern", "required", "properties", "additionalProperties", "items", "oneOf",
         "anyOf", "minItems", "maxItems", "minLength"}


def read(name):
    """The schema docs/schemas/NAME.schema.json."""
    path = os.path.join(ROOT, "docs", "schemas", name + ".schema.json")
    with open(path, encoding="utf-8") as text:
        return json.load(text)


def is_type(value, name):
    if name in ("integer", "number") and isinstance(value, bool):
        return False
    return isinstance(value, TYPES[name])


def problems(value, schema, root, where="line"):
    """A line for each; root holds the definitions."""
    assert set(schema) <= KNOWN, "this validator does not know %s" % (set(schema) - KNOWN)
    if "$ref" in schema:
        return problems(value, root["$defs"][schema["$ref"].split("/")[-1]], root, where)
    for key in ("oneOf", "anyOf"):
        if key in schema:
            fits = sum(not problems(value, one, root, where) for one in schema[key])
            if fits != 1 and not (fits and key == "anyOf"):
                return ["%s fits %d of %s" % (where, fits, key)]
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(is_type(value, name) for name in names):
        return ["%s is %r, not %s" % (where, value, " or ".join(names))]
    found = []
    if "const" in schema and (value != schema["const"] or
                              isinstance(value, bool) != isinstance(schema["const"], bool)):
        found.append("%s is %r, not %r" % (where, value, schema["const"]))
    if "enum" in schema and value not in schema["enum"]:
        found.append("%s is %r, not among %r" % (where, value, schema["enum"]))
    if "minimum" in schema and is_type(value, "number") and value < schema["minimum"]:
        found.append("%s is %r" % (where, value))
    if isinstance(value, str) and (len(value) < schema.get("minLength", 0) or
                                   not re.search(schema.get("pattern", ""), value)):
        found.append("%s is %r" % (where, value))
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append("%s has %d items" % (where, len(value)))
        for i, item in enumerate(value):
            found += problems(item, schema.get("items", {}), root, "%s[%d]" % (where, i))
    if isinstance(value, dict):
        found += ["%s.%s is missing" % (where, key)
                  for key in schema.get("required", []) if key not in value]
        for key, member in value.items():
            part = schema.get("properties", {}).get(key, schema.get("additionalProperties", {}))
            found += problems(member, part, root, where + "." + key)
    return found
