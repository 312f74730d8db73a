# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# What "measure" tells of the lines "NAME FORM KEY VALUE" in results/: tables and JSON.
# shellcheck disable=SC2154 # set in measure

# All that stands there, each program and form in one piece.
facts()
{
	local name

	for name in $names; do
		cat "$work/results/$name".{costs,pairs,toggled,instant} 2>/dev/null | sort -s -k 1,2 || true
	done
}

machine() { echo "$(awk -F': *' '/^model name/ { print $2; exit }' /proc/cpuinfo), $(nproc) CPUs, Linux $(uname -r), $($real_cc --version | head -n 1)"; }

# table TITLE KEY... - a row for each program and form that has the first key
table()
{
	local form=$1 heads=$2

	shift 2
	awk -v form="$form" -v heads="$heads" -v keys="$*" '
		BEGIN {
			n = split(keys, key, " ")
			print "| program | " heads " |"
			printf "|---|"
			for (i = 1; i <= n; i++)
				printf "---|"
			print ""
		}
		$2 == form {
			if (!($1 in seen) && $3 == key[1]) {
				seen[$1]
				order[++rows] = $1
			}
			value[$1, $3] = $4
		}
		END {
			for (r = 1; r <= rows; r++) {
				printf "| %s |", order[r]
				for (i = 1; i <= n; i++)
					printf " %s |", value[order[r], key[i]]
				print ""
			}
		}' "$work/facts"
}

# has FORM - there is something to tell of it
has() { grep -q "^[^ ]* $1 " "$work/facts"; }

# titled TITLE FORM HEADS KEY...
titled()
{
	printf '\n%s:\n\n' "$1"
	table "${@:2}"
}

# spread KEY - the worst and the geometric mean of all programs
spread()
{
	awk -v key="$1" '$2 == "entries" && $3 == key && $4 > 0 { sum += log($4); n++; if ($4 > worst) { worst = $4; name = $1 } }
		END { if (n) printf "worst %.3f (%s), geometric mean of %d programs %.3f", worst, name, n, exp(sum / n) }' "$work/facts"
}

# mean_of_programs FORM KEY - of the pairs of the same number the geometric mean of all programs
mean_of_programs()
{
	awk -v form="$1" -v key="^$2_[0-9]" '$2 == form && $3 ~ key { sum[$3] += log($4); n[$3]++; if (n[$3] > most) most = n[$3] }
		END { for (pair in n) if (n[pair] == most) print exp(sum[pair] / most) }' "$work/facts" | interval | told
}

pairs_tables()
{
	local form

	for form in pairs-entries pairs-exits; do
		has $form || continue
		titled "Profiled, ${form#pairs-}, in pairs of runs, with intervals of 95 %" $form \
			'off, ms | pairs | profiled / off | low | high | profiled / initialised | low | high | of it changes, % | cost by its own measure, %' \
			off_ms pairs to_off to_off_low to_off_high to_init to_init_low to_init_high toggling_share own_share
		printf '\nGeometric mean of the programs: profiled / off %s, profiled / initialised %s.\n' \
			"$(mean_of_programs $form to_off)" "$(mean_of_programs $form to_init)"
	done
}

costs_tables()
{
	local form

	for form in entries exits; do
		has $form || continue
		titled "Sites, $form" $form \
			'sites | entries | exits | usable | cross 8 bytes | of usable, % | cross a line | of usable, %' \
			sites entries exits usable cross_8 share_8 cross_64 share_64
		titled "Costs, $form" $form \
			'native, ms | off / native | initialised / native | initialised / off | on / native | on / off | calls counted | ns per call' \
			native_ms off_to_native init_to_native init_to_off on_to_native on_to_off calls ns_per_call
	done
	grep -q ' entries profile_ms ' "$work/facts" || return 0
	titled "Profiled, entries" entries \
		'probes | changes / s | samples / s | profiled / native | profiled / off | profiled / initialised | of it changes, % | cost by its own measure, %' \
		usable toggles_per_s samples_per_s profile_to_native profile_to_off profile_to_init toggling_share own_share
	printf '\nProfiled / off: %s. Profiled / initialised: %s.\n' "$(spread profile_to_off)" "$(spread profile_to_init)"
	! has latency || titled "Latency, ms, off and profiled" latency \
		'p50 off | p50 initialised | p50 profiled | profiled / off | p99 off | p99 initialised | p99 profiled | profiled / off' \
		off_p50 init_p50 profile_p50 ratio_p50 off_p99 init_p99 profile_p99 ratio_p99
}

toggled_tables()
{
	local form policy

	for form in entries exits; do
		for policy in membarrier wait; do
			! has toggled-$form-$policy || titled "Toggled at random by three threads, $form, policy $policy" \
				toggled-$form-$policy 'runs | probes | changes asked for | refused | last error | bytes held at the end' \
				runs probes toggles errors last_error held
		done
	done
}

instant_tables()
{
	local form

	awk '$2 ~ /^instant-/ { print $2 }' "$work/facts" | sort -u -t- -k2,2nr | while read -r form; do
		titled "Instant profiling, a phase of 2 ms every ${form#instant-} ms" "$form" \
			'native, ms | off / native | phases / native | phases / off | accuracy, % | phases | ms on each | of the time, % | us to turn all on or off | blocks' \
			native_ms off_to_native to_native to_off accuracy phases on_ms on_share toggle_us blocks
	done
}

markdown()
{
	echo "Machine: $(machine). CPU time (user and system), medians of runs in turn; ratios are medians of pairs."
	costs_tables
	pairs_tables
	toggled_tables
	instant_tables
	[ ! -s "$work/not-had" ] || { printf '\nNot had:\n\n' && sed 's/^/- /' "$work/not-had"; }
	[ ! -s "$work/wrong" ] || { printf '\nWrong:\n\n' && sed 's/^/- /' "$work/wrong"; }
}

# aligned - tables of Markdown on standard input, for people
aligned()
{
	awk -F' *[|] *' '
		function flush(  r, c) {
			for (r = 1; r <= rows; r++) {
				printf "%-*s", width[2], cell[r, 2]
				for (c = 3; c < columns; c++)
					printf "  %*s", width[c], cell[r, c]
				print ""
			}
			rows = columns = 0
			delete width
		}
		/^[|]---/ { next }
		/^[|]/ {
			rows++
			columns = NF
			for (c = 2; c < NF; c++) {
				cell[rows, c] = $c
				width[c] = length($c) > width[c] ? length($c) : width[c]
			}
			next
		}
		{ flush(); print }
		END { flush() }'
}

strings() { sed 's/["\\]/\\&/g; s/[[:cntrl:]]/ /g; s/.*/"&"/' "$1" 2>/dev/null | paste -sd, -; }

json()
{
	echo "{\"machine\": \"$(machine)\", \"programs\": ["
	awk '{
		if ($1 " " $2 != last)
			printf "%s{\"program\": \"%s\", \"form\": \"%s\"", last == "" ? "" : "},\n", $1, $2
		last = $1 " " $2
		printf ", \"%s\": %s", $3, $4
	}
	END { if (NR) print "}" }' "$work/facts"
	echo "], \"not_had\": [$(strings "$work/not-had")], \"wrong\": [$(strings "$work/wrong")]}"
}

