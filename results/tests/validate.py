#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Validate a journal against its schema: validate.py [--none] SCHEMA JOURNAL

Prints the first bad line; with --none, which is for testing the schema and
looks at that, too, the first line that is not bad. Exit status: 0 there is none, 1 there is one, 2 usage,
77 when python3-jsonschema is not installed.
"""
import json
import sys

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is not installed (Debian: python3-jsonschema)")
    sys.exit(77)


def refuse_constant(name):
    raise ValueError(f"{name} is no JSON")


def refuse_duplicates(pairs):
    names = [name for name, _ in pairs]
    if len(names) != len(set(names)):
        raise ValueError("a member is there twice")
    return dict(pairs)


def parse(line):
    return json.loads(line, parse_constant=refuse_constant, object_pairs_hook=refuse_duplicates)


def definition(schema, line):
    """The definitions for the line's type, which no line of another type fits."""
    kind = line.get("type") if isinstance(line, dict) else None
    names = [
        name
        for name, definition in schema["$defs"].items()
        if kind and definition.get("properties", {}).get("type", {}).get("const") == kind
    ]
    return {**schema, "oneOf": [{"$ref": f"#/$defs/{name}"} for name in names]} if names else schema


def complaint(validators, schema, text):
    """What is wrong with a line, or None. Making a validator takes longer than using it: one for each type."""
    try:
        line = parse(text)
    except ValueError as error:
        return str(error)
    kind = str(line.get("type")) if isinstance(line, dict) else ""
    if kind not in validators:
        only = definition(schema, line)
        validators[kind] = jsonschema.validators.validator_for(schema)(only)
    if validators[kind].is_valid(line):
        return None
    return jsonschema.exceptions.best_match(validators[kind].iter_errors(line)).message


def complaints(none, schema_path, journal_path):
    """Line numbers, from 1, with what is wrong with each line, or None."""
    with open(schema_path, encoding="utf-8") as stream:
        schema = json.load(stream)
    if none:
        jsonschema.validators.validator_for(schema).check_schema(schema)
    validators = {}
    with open(journal_path, encoding="utf-8", newline="\n") as stream:
        for number, text in enumerate(stream, 1):
            cut = None if text.endswith("\n") else "the line is cut"
            yield number, complaint(validators, schema, text) or cut


def main(none, schema_path, journal_path):
    number = 0
    for number, message in complaints(none, schema_path, journal_path):
        if none and message is None:
            message = "this line is valid"
        elif none:
            message = None
        if message:
            print(f"{journal_path}:{number}: {message}")
            return 1
    print(f"{journal_path}: {number} lines are {'bad' if none else 'valid'}")
    return 0


if __name__ == "__main__":
    arguments = sys.argv[1:]
    without = arguments[:1] == ["--none"]
    if len(arguments) != 2 + without:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(without, *arguments[without:]))
