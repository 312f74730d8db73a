#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A campaign under a real Slurm of two nodes, both of them this machine: a task is requeued in the middle
# and goes on, another comes to the other node and begins anew; each cell counts once.
set -euo pipefail

for program in munged slurmctld slurmd sbatch unshare; do
	if ! PATH=$PATH:/usr/sbin:/sbin command -v $program >/dev/null; then
		echo "$program is not installed (Debian: slurmctld slurmd slurm-client munge)"
		exit 77
	fi
done
if [ "$(id -u)" != 0 ]; then
	echo "slurmd is started by root only"
	exit 77
fi
# In processes of their own: what slurmd leaves behind ends with them.
if [ -z "${SLURM_TEST_INSIDE:-}" ]; then
	if ! unshare --mount --pid --fork --kill-child --mount-proc true 2>/dev/null; then
		echo "no process namespace can be made here"
		exit 77
	fi
	SLURM_TEST_INSIDE=yes exec timeout --kill-after=5 "${SLURM_TEST_LIMIT:-150}" \
		unshare --mount --pid --fork --kill-child --mount-proc bash "${BASH_SOURCE[0]}"
fi
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"
export PATH=$PATH:/usr/sbin:/sbin TMAX=$tmax
unset "${!SLURM_@}" "${!SBATCH_@}"
engines=$(realpath "$top/fleet/engines")
chmod 755 "$dir"
cd "$dir"

# free_port - one that nothing listens to
free_port()
{
	local port

	while true; do
		port=$((20000 + RANDOM % 10000))
		if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
			echo $port
			return
		fi
	done
}

# --- a cluster ---

start()
{
	"$@" >"$1.$#.out" 2>&1 &
	started+=($!)
	disown
}

# skip_without WHAT COMMAND... - where that daemon does not get up, the engine cannot be tried
skip_without()
{
	local what=$1

	shift
	if ! wait_for "$@"; then
		tail -n 5 ./*.log ./*.out 2>/dev/null || true
		echo "$what does not start here"
		exit 77
	fi
}

head -c 1024 /dev/urandom >munge.key
chmod 400 munge.key
start munged --foreground --socket="$dir/munge.socket" --key-file="$dir/munge.key" \
	--pid-file="$dir/munged.pid" --log-file="$dir/munged.log" --seed-file="$dir/munge.seed"
skip_without munged test -S munge.socket

host=$(uname -n)
host=${host%%.*}
mkdir state
cat >slurm.conf <<CONF
ClusterName=tmax
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket
SlurmUser=root
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool-%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/linear
SwitchType=switch/none
MpiDefault=none
SchedulerParameters=sched_interval=1,batch_sched_delay=0
KillWait=2
ReturnToService=2
NodeName=node1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$(free_port) CPUs=$(nproc --all)
NodeName=node2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$(free_port) CPUs=$(nproc --all)
PartitionName=all Nodes=node1,node2 Default=YES State=UP
CONF
export SLURM_CONF=$dir/slurm.conf
start slurmctld -D -c
start slurmd -D -N node1
start slurmd -D -N node2 -c

idle()
{
	[ "$(sinfo --noheader --Node --format=%t 2>/dev/null | grep -c '^idle$')" = 2 ]
}
skip_without "Slurm" idle

drain()
{
	scontrol update NodeName="$1" State=DRAIN Reason=test
}

# --- a campaign ---

# The second cell of each part is long enough to be cut, also where all of this is slow.
for i in 1 2 3 4 5 6 7 8 9; do
	seconds=0.3
	if ((i >= 4 && i <= 6)); then
		seconds=3
	fi
	echo "tmax stress ${seat[*]} --first-wait 0 --second-wait 0 --toggles 1000000000 --seconds $seconds --seed $i"
done >"own list.cells"
expect 64 "$engines/slurm" "$dir/100%a" 3 stress --list "own list.cells"
expect 64 "$engines/slurm" "$dir/none" 0 stress --list "own list.cells"
folder="$dir/a b';touch bait;\$(touch bait)\""
# Nothing begins before the last part is held.
drain node1,node2
expect 0 "$engines/slurm" "$folder" 3 stress --list "own list.cells"
array=$(sed -n 's/^array \([0-9]*\), then collect \([0-9]*\): .*/\1/p' "$dir/out")
collect=$(sed -n 's/^array \([0-9]*\), then collect \([0-9]*\): .*/\2/p' "$dir/out")

scontrol hold "${array}_3"
scontrol update NodeName=node1,node2 State=RESUME

# journal_of PART - that has a cell, of the node that runs it
journal_of()
{
	local journal

	for journal in "$folder"/node*/"$1-of-3.jsonl"; do
		if has_cells "$journal" 1; then
			echo "$journal"
			return
		fi
	done
	return 1
}
began()
{
	journal_of "$1" >/dev/null
}
says()
{
	scontrol show job "$1" 2>/dev/null | grep -q "$2"
}

# requeue TASK - Slurm would wait for two minutes. Within the same second the node takes the new start for
# the old one, and refuses it.
requeue()
{
	scontrol requeue "$1"
	wait_for says "$1" 'Reason=BeginTime' || fail "not requeued"
	says "$1" Restarts=1 || fail "not started again"
	scontrol update JobId="$1" StartTime=now+3
}

# The first task is requeued where no other node will take it ...
wait_for began 1 || fail "no cells of part 1: $(tail -n 5 slurmctld.log slurmd-*.log "$folder"/*.log)"
first=$(journal_of 1)
node=$(basename "$(dirname "$first")")
other=node$((3 - ${node#node}))
drain "$other"
requeue "${array}_1"
[ ! -e "${first%.jsonl}.done" ] || fail "done, though it was requeued"
cut=$(count_cells "$first")
[ "$cut" -lt 3 ] || fail "part 1 was done before it was requeued"
goes_on()
{
	[ -e "${first%.jsonl}.done" ]
}
wait_for goes_on || wait_for goes_on || fail "part 1 is not taken up: $(scontrol show job "${array}_1")"
grep -q 'goes on with' "$folder/task-1.log" || fail "part 1 does not go on"

# ... another one where only the other node will.
scontrol release "${array}_3"
wait_for began 3 || fail "no cells of part 3"
third=$(journal_of 3)
node=$(basename "$(dirname "$third")")
other=node$((3 - ${node#node}))
scontrol update NodeName="$other" State=RESUME
drain "$node"
requeue "${array}_3"
completed()
{
	says "$collect" 'JobState=COMPLETED'
}
wait_for completed || wait_for completed || { scontrol show job; fail "nothing was collected: $(cat "$folder"/*.log)"; }
[ -e "$folder/$other/3-of-3.done" ] || fail "part 3 was not done by $other: $(tail -n 25 slurmctld.log "$folder"/*.log; ls "$folder"/node*)"
[ ! -e "$folder/$node/3-of-3.done" ] || fail "part 3 was done by $node"
has_cells "$folder/$node/3-of-3.jsonl" 1 || fail "what $node did of part 3 is gone"

# --- each cell counts once ---

cat "$first" "$folder"/node*/2-of-3.jsonl "$folder/$other/3-of-3.jsonl" >"$dir/all.jsonl"
# A task that was terminated has kept its last cell, as one that was interrupted.
grep '"type":"cell"' "$dir/all.jsonl" | grep -v '"outcome":"interrupted"' |
	sed -nE 's/.*"seed":"([0-9]+)".*/\1/p' | sort -n | tr '\n' ' ' >"$dir/seeds"
[ "$(cat "$dir/seeds")" = "1 2 3 4 5 6 7 8 9 " ] || fail "cells that were run: $(cat "$dir/seeds")"
if command -v sqlite3 >/dev/null; then
	exposed=$(sed -nE 's/.*"type":"cell".*"exposed":([0-9]+).*/\1/p' "$dir/all.jsonl" |
		awk '{ n += $1 } END { print n }')
	counted=$(sqlite3 "$folder/fleet.db" "SELECT total(toggles) FROM sum" | sed 's/\..*//')
	[ "$counted" = "$exposed" ] || fail "$counted toggles in the database, $exposed in the journals"
fi
grep -q ' runs\?, ' "$folder/collect.log" || fail "no report: $(cat "$folder/collect.log")"
if grep -q missing "$folder/collect.log"; then
	fail "parts are missing: $(cat "$folder/collect.log")"
fi
[ -z "$(find "$dir" -name 'bait*')" ] || fail "a name was run"
echo "part 1 went on at cell $((cut + 1)) of 3, part 3 moved from $node to $other"
