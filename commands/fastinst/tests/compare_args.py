#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: compare_args.py TOLD TRACE LEAST [FUNCTION...]

Compares the values that "fastinst trace --format json" shows with those that the program told, as "function
argument=value ...", with "*" for any. What is not shown is not compared, but so many values at least are to be
shown, and of these functions all. A function without a name is known by its arguments.
"""
import json
import sys

told = {}
for line in open(sys.argv[1]):
    name, *values = line.split()
    told[name] = dict(value.split("=", 1) for value in values)
shown = wrong = 0
seen = set()

def text(value):
    if isinstance(value, list):
        return "[" + ",".join(text(one) for one in value) + "]"
    return json.dumps(value) if isinstance(value, str) and not value.startswith("0x") else str(value)

for line in open(sys.argv[2]):
    event = json.loads(line)
    function = event.get("function", "")
    name = next((one for one in told if one == function or f"{len(one)}{one}" in function), None)
    if event.get("event") == "enter" and not function:
        name = next((one for one in told for arg in event.get("args", []) if arg["name"] in told[one]), None)
    if event.get("event") != "enter" or not name:
        continue
    seen.add(name)
    for arg in event.get("args", []):
        if "value" not in arg or arg["value"] is None:
            continue
        is_, shows = told[name].get(arg["name"]), text(arg["value"])
        shown += 1
        if is_ != "*" and is_ != shows:
            wrong += 1
            print(f"{name}: {arg['name']} is {is_}, {shows} is shown")
    # gcc tells by a suffix that a function is a copy with other arguments.
    if name in sys.argv[4:] and "." not in function and (event.get("more") or len(event.get("args", [])) != len(told[name])):
        wrong += 1
        print(f"{name}: not all is shown: {event}")
if shown < int(sys.argv[3]):
    print(f"{shown} values shown of {sorted(seen)}")
sys.exit(wrong > 0 or shown < int(sys.argv[3]))
