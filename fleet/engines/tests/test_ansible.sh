#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The Ansible role, really run: two machines that are both this one install, calibrate, and their evidence is
# merged. Names that a shell would run are names.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

if ! command -v ansible-playbook >/dev/null; then
	echo "ansible-playbook is not installed (Debian: ansible-core)"
	exit 77
fi
book=$(realpath "$top/fleet/engines/ansible/tmax.yml")
cd "$dir"
export ANSIBLE_LOCAL_TEMP=$dir/tmp ANSIBLE_REMOTE_TEMP=$dir/tmp ANSIBLE_NOCOWS=1 ANSIBLE_HOME=$dir/ansible
export LC_ALL=C.UTF-8
if ! ansible-playbook --version >"$dir/out" 2>"$dir/err"; then
	echo "ansible-playbook does not run here: $(head -n 1 "$dir/err")"
	exit 77
fi

expect 0 ansible-playbook -i one, "$book" --syntax-check
sed 's/roles:/rolls:/' "$book" >"$dir/broken.yml"
expect "1 2 4" ansible-playbook -i one, "$dir/broken.yml" --syntax-check

# An installation is an archive.
mkdir -p archive/bin
cp "$tmax" archive/bin
tar -C archive -cf tmax.tar .
evidence="$dir/all i';t \$(touch bait) of it"
cat >hosts.yml <<HOSTS
all:
  vars:
    ansible_connection: local
    ansible_python_interpreter: $(command -v python3)
    tmax_packages: []
    tmax_archive: $dir/tmax.tar
    tmax_root: $dir/installed
    tmax_program: $dir/installed/bin/tmax
    tmax_budget: 8s
    tmax_state: "$dir/state of 'it'; touch bait/{{ inventory_hostname }}"
    tmax_evidence: "$evidence"
    tmax_here: $tmax
  hosts:
    one.example:
    two:
HOSTS
mkdir installed
# One after the other: they share the machine.
play=(ansible-playbook --forks 1 -i hosts.yml "$book")
expect 0 "${play[@]}"
grep -q '1 machine, 2 runs' "$dir/out" || fail "two names of one machine are not one"
for host in one.example two; do
	[ "$(runs "$evidence/$host/machine.conf.evidence")" = 1 ] || fail "not one run of $host"
done
expect 0 "${play[@]}" --limit two
grep -q '1 machine, 3 runs' "$dir/out" || fail "another run of one machine does not add up"
# Without a wait the config claims nothing that could break.
expect "0 2" "${play[@]}" --limit two -e tmax_work=verify -e tmax_budget=5s
grep -q 'Verify' "$dir/out" || fail "no task that verifies"

# --- names ---

cat >bad.yml <<'HOSTS'
all:
  vars:
    ansible_connection: local
  hosts:
    ../up:
    a b:
    $(touch bait):
    a;touch bait:
HOSTS
expect 2 ansible-playbook -i bad.yml "$book"
[ "$(grep -c 'give it a name of letters, digits' "$dir/out")" = 4 ] || fail "a bad name is taken"
if grep -q 'TASK.*Install' "$dir/out"; then
	fail "a machine with a bad name is worked on"
fi
expect 2 "${play[@]}" --limit two -e "tmax_budget='5s; touch bait'"
[ -z "$(find "$dir" -name 'bait*' -type f)" ] || fail "a name was run"
