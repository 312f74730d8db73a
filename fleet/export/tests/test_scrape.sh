#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The metrics go all the way: Prometheus' node_exporter reads the files, Prometheus scrapes it on
# loopback, and the alert fires for the one bad host.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

for tool in prometheus prometheus-node-exporter curl python3; do
	if ! command -v "$tool" >/dev/null; then
		echo "$tool is not installed (Debian: prometheus, prometheus-node-exporter)"
		exit 77
	fi
done

# free_port - that nothing listens on just now
free_port()
{
	python3 -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# told PATH EXPRESSION - of what Prometheus answers there, as data
told()
{
	curl -sf "http://127.0.0.1:$port/api/v1/$1" 2>/dev/null |
		python3 -c 'import json, sys
data = json.load(sys.stdin)["data"]
sys.exit(not eval(sys.argv[1]))' "$2" 2>/dev/null
}

"${SIMULATE:-fleet/tests/simulate}" "$dir/sim" 60
# One of the five marginal machines is enough.
find "$dir/sim" -name 'marginal-*' | sort >"$dir/marginal"
bad=$(basename "$(head -n 1 "$dir/marginal")" .evidence)
find "$dir/sim" -name '*.evidence' | grep -vxFf <(tail -n +2 "$dir/marginal") >"$dir/one"
"$tmax" merge -o "$dir/db" --files-from <"$dir/one" >"$dir/out"
expect 0 "$tmax" fleet export --textfile "$dir/metrics" "$dir/db"

exporter=$(free_port)
port=$(free_port)
prometheus-node-exporter --collector.disable-defaults --collector.textfile \
	--collector.textfile.directory="$dir/metrics" --web.listen-address="127.0.0.1:$exporter" \
	>"$dir/exporter.log" 2>&1 &
started+=($!)
cat >"$dir/prometheus.yml" <<YML
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [tmax-fleet.rules.yml]
scrape_configs:
  - job_name: fleet
    static_configs: [{ targets: ["127.0.0.1:$exporter"] }]
YML
cp "$top/fleet/export/tmax-fleet.rules.yml" "$dir"
prometheus --config.file="$dir/prometheus.yml" --storage.tsdb.path="$dir/tsdb" \
	--web.listen-address="127.0.0.1:$port" >"$dir/prometheus.log" 2>&1 &
started+=($!)

wait_for told "query?query=node_textfile_scrape_error" 'data["result"][0]["value"][1] == "0"' ||
	fail "the collector refuses a file: $(tail -n 3 "$dir/exporter.log" "$dir/prometheus.log")"
wait_for told "query?query=count(tmax_machine_info)" \
	"data['result'][0]['value'][1] == '$(wc -l <"$dir/one")'" || fail "machines are lost"
wait_for told alerts "[a['labels']['machine'] for a in data['alerts']
	if a['labels']['alertname'] == 'TmaxMachineWorseThanItsKind' and a['state'] == 'firing'] == ['$bad']" ||
	fail "no alert for $bad: $(curl -s "http://127.0.0.1:$port/api/v1/alerts" | head -c 2000)"
echo "alert for $bad alone, of $(wc -l <"$dir/one") machines"
