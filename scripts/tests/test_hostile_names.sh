#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The scripts pass names of files on as they are, also those that a shell would take for commands, and work
# in a folder of such a name.
# shellcheck disable=SC2016 # nothing is to be expanded
set -euo pipefail
export LC_ALL=C

top=$(realpath "${srcdir:-.}")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset PATCHCORE_MACHINE_CONF
cd "$dir"

fail()
{
	echo "FAILED: $*"
	exit 1
}

# A clone that is built already, so that only the scripts are tried. Its tmax writes down what it is told.
clone="$dir/it's \$(touch pwned) \`touch pwned\` ; touch pwned #"
mkdir -p "$clone/scripts" "$clone/build" bin
cp "$top"/scripts/{build-here,calibrate,bench} "$clone/scripts"
printf '#!/bin/sh\nexit 0\n' >bin/make
cp bin/make "$clone/scripts/deps"
cp bin/make "$clone/configure"
cp bin/make "$clone/build/config.status"
cat >"$clone/build/tmax" <<'S'
#!/usr/bin/env bash
printf '%s\n' "$@" >>"$SAID"
for argument; do
	[ "${before:-}" != --journal ] || echo '{}' >"$argument"
	before=$argument
done
S
chmod +x bin/make "$clone"/{scripts/*,configure,build/{config.status,tmax}}
export SAID=$dir/said PATH=$dir/bin:$PATH

names=('$(touch pwned).jsonl' '`touch pwned`' "a'; touch pwned; '" '-rf' 'a b	c' '*' "$(printf 'a\033[2J\nb')")
# try SCRIPT - every name arrives whole
try()
{
	local name

	for name in "${names[@]}"; do
		: >said
		bash "$1" --journal "./$name" --output "$name" >out 2>&1 || fail "${1##*/}: $(cat out)"
		[ ! -e pwned ] || fail "${1##*/}: a name was run: $name"
		[[ $'\n'$(<said)$'\n' == *$'\n--journal\n'"./$name"$'\n--output\n'"$name"$'\n'* ]] ||
			fail "${1##*/}: '$name' arrives as $(cat said)"
	done
}
for script in calibrate bench; do
	try "$clone/scripts/$script"
done

# Without quotes it is seen.
sed 's/calibrate "\${arguments\[@\]}"/calibrate ${arguments[@]}/' "$top/scripts/calibrate" >"$clone/scripts/broken"
! cmp -s "$top/scripts/calibrate" "$clone/scripts/broken" || fail "nothing was broken"
! (try "$clone/scripts/broken") >broken 2>&1 || fail "a script without quotes passes"
sed 's/^"\$build\/tmax" calibrate .*/eval "tmax calibrate ${arguments[*]}" ||:/; s/^status=0/&; PATH=$build:$PATH/' \
	"$top/scripts/calibrate" >"$clone/scripts/broken"
! (try "$clone/scripts/broken") >broken 2>&1 || fail "a script with eval passes"
grep -q 'a name was run\|arrives as' broken || fail "not seen for its eval: $(cat broken)"
