#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A campaign by GNU parallel over ssh, on two machines that are both this one, behind an sshd of our own:
# cut off in the middle, the same command goes on; names that a shell would run are names.
set -euo pipefail

for program in parallel ssh ssh-keygen sshd rsync setsid; do
	if ! PATH=$PATH:/usr/sbin:/sbin command -v $program >/dev/null; then
		echo "$program is not installed (Debian: parallel openssh-server openssh-client rsync)"
		exit 77
	fi
done
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"
engines=$(realpath "$top/fleet/engines")
sshd=$(PATH=$PATH:/usr/sbin:/sbin command -v sshd)
chmod 755 "$dir"
cd "$dir"

# --- a machine behind an unprivileged port ---

ssh-keygen -q -t ed25519 -N '' -f host_key
ssh-keygen -q -t ed25519 -N '' -f key
cp key.pub authorized_keys
port=$((20000 + RANDOM % 10000))
while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
	port=$((20000 + RANDOM % 10000))
done
# What root needs to start one, and another user does not miss.
if [ "$(id -u)" = 0 ]; then
	mkdir -p /run/sshd
fi
cat >sshd_config <<CONF
ListenAddress 127.0.0.1
Port $port
HostKey $dir/host_key
PidFile $dir/sshd.pid
AuthorizedKeysFile $dir/authorized_keys
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
CONF
"$sshd" -D -e -f "$dir/sshd_config" 2>sshd.log &
started+=($!)
disown
cat >ssh_config <<CONF
Host one two
HostName 127.0.0.1
Port $port
User $(id -un)
IdentityFile $dir/key
UserKnownHostsFile $dir/known_hosts
StrictHostKeyChecking no
LogLevel ERROR
BatchMode yes
CONF
export PARALLEL_SSH="ssh -F $dir/ssh_config"
logs_in()
{
	ssh -F ssh_config one true 2>/dev/null </dev/null
}
if ! wait_for logs_in; then
	tail -n 5 sshd.log
	echo "no sshd of our own lets us in here"
	exit 77
fi

# --- what is no host ---

export TMAX=$tmax TMAX_HERE=$tmax TMAX_WORK=$dir/there
list="l i's;t\$(touch bait)%j{}.{1}cells"
for i in 1 2 3 4 5 6 7 8; do
	echo "tmax stress ${seat[*]} --first-wait 0 --second-wait 0 --toggles 1000000000 --seconds 0.6 --seed $i"
done >"$list"
while read -r host; do
	echo "$host" >hosts
	expect 64 "$engines/ssh" hosts none 2 stress --list "$list"
done <<'HOSTS'
-oProxyCommand=touch${IFS}bait
one;touch bait
$(touch bait)
ssh one
4/one
../one
12
:
HOSTS
echo "# none" >hosts
expect 64 "$engines/ssh" hosts none 2 stress --list "$list"

# --- cut off, and again ---

printf 'one # the first\n\n# more\ntwo\n' >hosts
folder="$dir/a b';touch bait;\$(touch bait)\"{1}{host}"
setsid "$engines/ssh" hosts "$folder" 4 stress --list "$list" >"$dir/out" 2>"$dir/err" &
started+=($!)
there()
{
	grep -qs '"type":"cell"' "$dir"/there/*/1/one/1-of-4.jsonl "$dir"/there/*/1/two/1-of-4.jsonl
}
wait_for there || fail "no cells: $(cat sshd.log)"
kill -KILL -- -$! 2>/dev/null
wait $! 2>/dev/null || true
[ ! -e "$folder/fleet.db" ] || fail "collected, though it was cut off"
expect 0 "$engines/ssh" hosts "$folder" 4 stress --list "$list"
for k in 1 2 3 4; do
	[ "$(find "$folder" -name "$k-of-4.done" | wc -l)" = 1 ] || fail "part $k is not done once"
done
cat "$folder"/one/*.jsonl "$folder"/two/*.jsonl >all.jsonl
[ "$(grep '"type":"cell"' all.jsonl | sed -nE 's/.*"seed":"([0-9]+)".*/\1/p' | sort -n | tr '\n' ' ')" = \
	"1 2 3 4 5 6 7 8 " ] || fail "not each cell once"
if command -v sqlite3 >/dev/null; then
	exposed=$(sed -nE 's/.*"type":"cell".*"exposed":([0-9]+).*/\1/p' all.jsonl | awk '{ n += $1 } END { print n }')
	counted=$(sqlite3 "$folder/fleet.db" "SELECT total(toggles) FROM sum" | sed 's/\..*//')
	[ "$counted" = "$exposed" ] || fail "$counted toggles in the database, $exposed in the journals"
fi
cp "$folder/joblog" before
expect 0 "$engines/ssh" hosts "$folder" 4 stress --list "$list"
cmp before "$folder/joblog" || fail "what was done is done again"
# What is lost here comes again.
rm -r "$folder"/*/2-of-4.*
expect 0 "$engines/ssh" hosts "$folder" 4 stress --list "$list"
[ "$(find "$folder" -name "2-of-4.done" | wc -l)" = 1 ] || fail "what was lost is not done again"

# --- each machine its own, and a part that fails is told ---

expect "0 69" "$engines/ssh" hosts each each calibrate --budget 5s
for host in one two; do
	[ "$(find each/$host -name '?-of-2.done' | wc -l)" = 1 ] || fail "not one part of $host"
	# Where other programs take the CPUs, five seconds may be too few to count anything.
	[ ! -e each/$host/machine.conf.evidence ] || [ "$(runs each/$host/machine.conf.evidence)" = 1 ] ||
		fail "not one run of $host"
done
TMAX=/nowhere/tmax expect "2 69" "$engines/ssh" hosts failed 2 stress --list "$list"
[ -z "$(find "$dir" -name 'bait*')" ] || fail "a name was run"
