#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The CI examples are YAML of the kind that they say, and what they run works: each command of theirs is run with a
# short budget, through the shell as CI would, with every exit status that it may have.
set -euo pipefail
export LC_ALL=C

top=${srcdir:-.}
tmax=$(realpath "${TMAX:-./tmax}")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export HOME=$dir XDG_CONFIG_HOME=$dir
unset PATCHCORE_MACHINE_CONF HWLOC_SYNTHETIC HWLOC_XMLFILE HWLOC_THISSYSTEM

fail()
{
	echo "FAILED: $*"
	exit 1
}

python3 -c 'import yaml' 2>/dev/null || {
	echo "python3-yaml is not installed"
	exit 77
}
mkdir "$dir/scripts" "$dir/bin" "$dir/run"
python3 - "$top/docs/ci" "$dir/scripts" <<'PYTHON' || fail "the YAML"
import os, sys, yaml
source, to = sys.argv[1:]

github = yaml.safe_load(open(f"{source}/github.yml"))
assert set(github) == {"name", True, "jobs"}, list(github)  # YAML 1.1 takes "on" for true
job = github["jobs"]["machine"]
assert job["runs-on"][0] == "self-hosted" and job["strategy"]["fail-fast"] is False
steps = job["steps"]
assert [("run" in s, "uses" in s) for s in steps] == [(True, False), (True, False), (False, True)]
assert all(s["if"] == "always()" for s in steps[1:])
for number, step in enumerate(s for s in steps if "run" in s):
    open(f"{to}/github-{number}", "w").write(step["run"])

gitlab = yaml.safe_load(open(f"{source}/gitlab.yml"))
shared = gitlab.pop(".tmax")
assert shared["allow_failure"]["exit_codes"] == [2] and shared["artifacts"]["when"] == "always"
assert sorted(gitlab) == ["conform", "verify"]
for name, job in gitlab.items():
    assert job["extends"] == ".tmax"
    script = "\n".join(job["script"])
    assert shared["artifacts"]["reports"]["junit"] in script
    open(f"{to}/gitlab-{name}", "w").write(script)
PYTHON

# A tmax that takes two seconds at most, or ends with a status that is asked for.
cat >"$dir/bin/tmax" <<WRAPPER
#!/bin/bash
[ -z "\${ENDS_WITH:-}" ] || exit "\$ENDS_WITH"
arguments=("\$@")
for i in "\${!arguments[@]}"; do
	[ "\${arguments[i]}" = --budget ] && arguments[i + 1]=2s
done
exec "$tmax" "\${arguments[@]}"
WRAPPER
chmod +x "$dir/bin/tmax"
PATH=$dir/bin:$PATH
cd "$dir/run"

# run SCRIPT STATUS - as CI runs a script
run()
{
	local status=0

	bash --noprofile --norc -eo pipefail "$dir/scripts/$1" >"$dir/out" 2>&1 || status=$?
	[[ " $2 " == *" $status "* ]] || {
		cat "$dir/out"
		fail "$1 ends with $status, not $2"
	}
}

for script in "$dir"/scripts/*; do
	script=${script##*/}
	rm -f ./*.xml
	# There is no config here: verify says so, in its report as well.
	case $script in
	# On a starved machine it is too little to say.
	gitlab-conform) run "$script" "0 2" ;;
	*conform | *-0) run "$script" 0 ;;
	*) run "$script" 3 ;;
	esac
	[ "$(grep -c '<testsuite ' ./*.xml)" = 1 ] || fail "$script leaves no report"
	ENDS_WITH=1 run "$script" 1
	case $script in
	github*)
		ENDS_WITH=2 run "$script" 0
		grep -q '^::warning::' "$dir/out" || fail "no warning"
		;;
	gitlab*) ENDS_WITH=2 run "$script" 2 ;;
	esac
done
