# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Of numbers on standard input.

# median - if there are any
median() { sort -g | awk '{ v[NR] = $1 } END { if (NR) printf "%.10g\n", NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

# interval - "MEDIAN LOW HIGH", which hold the median in 95 % of cases by order statistics; below 6 numbers in fewer
interval()
{
	sort -g | awk '
		{ value[NR] = $1 }
		END {
			# The k-th from both ends, with k by the binomial distribution, as a normal one.
			k = int(NR / 2 - 0.98 * sqrt(NR))
			k = k < 1 ? 1 : k
			if (NR)
				print NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2, value[k], value[NR + 1 - k]
		}'
}

# told - an interval, to be read
told() { awk '{ printf "%.3f [%.3f, %.3f]", $1, $2, $3 }'; }
