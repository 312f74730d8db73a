#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The units: systemd takes them, their sandbox is no weaker than it was, none is enabled; and what they run
# verifies when microcode or kernel have changed, and only then.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"
source=$(realpath "$top/fleet/engines")
built=fleet/engines/systemd

# --- what verify-changed does, with a program that says what it is told to ---

cat >"$dir/tmax" <<'FAKE'
#!/bin/sh
echo "$*" >>"$FAKE_LOG"
case $1 in
info)
	printf 'machine\n  vendor %s\n  microcode %s\n  kernel %s\n  codename x\nmachine.conf\n  path %s\n' \
		v "$MICROCODE" "$KERNEL" "$CONF"
	exit "$INFO"
	;;
verify) exit "$VERIFY" ;;
calibrate) exit "$CALIBRATE" ;;
esac
exit 99
FAKE
chmod +x "$dir/tmax"
export FAKE_LOG=$dir/log MICROCODE=1 KERNEL=1 CONF=/c INFO=0 VERIFY=0 CALIBRATE=0
state="$dir/ver i';fied"

# changed STATUS CALLS - what it exits with, and which commands it runs besides info
changed()
{
	: >"$FAKE_LOG"
	TMAX=$dir/tmax expect "$1" "$source/verify-changed" "$state"
	[ "$(awk '$1 != "info" { printf "%s ", $1 }' "$FAKE_LOG")" = "$2" ] || fail "it has run: $(cat "$FAKE_LOG")"
}
CONF=none changed 0 ""
[ ! -e "$state" ] || fail "no config, and it held"
VERIFY=1 changed 1 "verify "
VERIFY=2 changed 2 "verify "
VERIFY=130 changed 130 "verify "
changed 0 "verify "
changed 0 ""
VERIFY=1 changed 0 ""
KERNEL=2 VERIFY=1 changed 1 "verify "
KERNEL=2 changed 0 "verify "
KERNEL=2 changed 0 ""
export KERNEL=2
MICROCODE=2 INFO=3 VERIFY=3 CALIBRATE=2 changed 2 "verify calibrate "
MICROCODE=2 INFO=3 VERIFY=3 changed 0 "verify calibrate "
MICROCODE=2 changed 0 ""
INFO=70 changed 70 ""

# The same with the real one, but that it leaves the config of this system alone.
cat >"$dir/real-tmax" <<REAL
#!/bin/sh
[ "\$1" != calibrate ] || set -- "\$@" --output '$dir/machine.conf'
exec '$tmax' "\$@"
REAL
chmod +x "$dir/real-tmax"
conf_of_here >"$dir/machine.conf"
sed -i 's/^microcode = .*/microcode = 0xbad/' "$dir/machine.conf"
export TMAX=$dir/real-tmax TMAX_BUDGET=5s PATCHCORE_MACHINE_CONF=$dir/machine.conf
expect "0 1 2" "$source/verify-changed" "$dir/real"
grep -q 'calibrating' "$dir/out" || fail "a config of another microcode is not calibrated anew"

# --- the units ---

if [ ! -e "$built/tmax-verify.service" ]; then
	make -s "$built/tmax-calibrate.service" "$built/tmax-verify.service" >/dev/null
fi
if grep -n '@[a-z]*@' "$built"/*.service; then
	fail "a name was not put in"
fi
if ! command -v systemd-analyze >/dev/null; then
	echo "systemd-analyze is not installed (Debian: systemd)"
	exit 77
fi
mkdir "$dir/units"
cp "$source"/systemd/*.timer "$built"/*.service "$dir/units"
# Not installed yet.
sed -i -E "s#^(ExecStart=).*/(tmax|verify-changed) #\1$dir/bin/\2 #" "$dir"/units/*.service
mkdir "$dir/bin"
cp "$tmax" "$source/verify-changed" "$dir/bin"
verify()
{
	systemd-analyze verify --man=no "$1" >"$dir/out" 2>"$dir/err"
}
for unit in "$dir"/units/*; do
	if ! verify "$unit" || [ -s "$dir/err" ]; then
		if grep -q 'Failed to \(initialize\|set up\|create\|connect\)' "$dir/err"; then
			echo "systemd-analyze cannot work here: $(head -n 1 "$dir/err")"
			exit 77
		fi
		fail "systemd does not take $unit"
	fi
done
sed 's/^Type=oneshot/Type=twoshot/' "$dir/units/tmax-verify.service" >"$dir/units/broken.service"
verify "$dir/units/broken.service" || true
grep -q twoshot "$dir/err" || fail "blind to a broken unit"
rm "$dir/units/broken.service"

# 10 is the most that there is of it.
for unit in "$dir"/units/*.service; do
	systemd-analyze security --offline=true --threshold=15 "$unit" >"$dir/out" 2>"$dir/err" ||
		fail "the sandbox of $unit"
	grep 'exposure level' "$dir/out"
done
sed '/^Protect/d; /^SystemCallFilter/d' "$dir/units/tmax-verify.service" >"$dir/units/open.service"
if systemd-analyze security --offline=true --threshold=15 "$dir/units/open.service" >/dev/null 2>&1; then
	fail "blind to a unit without a sandbox"
fi
rm "$dir/units/open.service"
# A unit that gave up on busy nights would count the quiet ones alone.
if "$tmax" calibrate --idle --help >/dev/null 2>&1 || grep -n -e --idle "$dir"/units/*.service; then
	fail "a calibration ends early when other programs want the machine"
fi
# Seen under systemd 252: without the dash the folder is looked for before the command that makes it is run.
[ "$(grep -l '^ReadWritePaths=-/' "$dir"/units/*.service | wc -l)" = 2 ] || fail "a first start will fail"
# What it says of itself is what timers wait for, and install leaves that to the administrator.
for timer in calibrate verify; do
	grep -q '^WantedBy=timers.target$' "$dir/units/tmax-$timer.timer" || fail "$timer cannot be enabled"
done
if grep -q '^\[Install\]' "$dir"/units/*.service; then
	fail "a service that is started but by its timer"
fi
