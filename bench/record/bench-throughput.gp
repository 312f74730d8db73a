# SPDX-License-Identifier: MIT
#
# Calls through a hot site against toggles per second, by method, and their balance.
#
#   gnuplot -d -c bench-throughput.gp FORMAT OUTPUT DATA CURVES EXECUTORS SAMPLE
#
# FORMAT is svg or png. DATA has rows
#   K curve peer name
#   T curve mode toggles/s share low high balance
#   E executors mode toggles/s calls/s low high
# with mode 0 call-call and 1 call-nop. EXECUTORS lists those of the E rows, which are of
# the method SAMPLE; without any there is no panel for them.

FORMAT = ARG1; OUTPUT = ARG2; DATA = ARG3; EXECUTORS = ARG5; SAMPLE = ARG6
curves = int(ARG4)
sizes = words(EXECUTORS)
rows = sizes > 0 ? 6 : 4
high = 235.0; top = 12.0 + 18 * curves
foot = sizes > 0 ? 16.0 + 18 * ceil(sizes / 3.0) : 6.0
height = top + rows * high + foot
load ARG0[1 : strlen(ARG0) - strlen("bench-throughput.gp")] . "figure.gp"

# Names are data: nothing of them is ever more than text.
NAMES = ""; PEERS = ""; seen = 0
take(i, peer, text) = i == seen ? (seen = seen + 1, PEERS = PEERS . peer . " ", \
	NAMES = NAMES . '"' . text . '" ', 1) : 1
stats DATA using (strcol(1) eq "K" ? take($2, strcol(3), strcol(4)) : 1) name "K" nooutput
is_peer(k) = int(word(PEERS, k))
dash(k) = is_peer(k) ? 2 : 1

# No toggles at all have a place of their own, left of where the scale begins.
stats DATA using (strcol(1) ne "K" && $4 > 0 ? 1 : 0) name "N" nooutput
X_min = 1e3; X_max = 1e3
if (N_sum > 0) {
	stats DATA using (strcol(1) ne "K" && $4 > 0 ? $4 : NaN) name "X" nooutput
}
nothing = X_min / 5
place(x) = x > 0 ? x : nothing
set logscale x
set xrange [nothing / 1.6 : X_max * 1.6]
set xtics ("0" nothing)
do for [decade = 0 : 12] {
	if (10.0 ** decade > 3 * nothing) {
		set xtics add (tic_text(1, decade) 10.0 ** decade)
	}
}
array COLOUR[8] = [0x0072b2, 0xd55e00, 0x009e73, 0xaa4499, 0xe69f00, 0x56b4e9, 0x000000, 0x999933]
array POINT[7] = [7, 5, 9, 13, 6, 4, 8]
colour(k) = COLOUR[(k - 1) % 8 + 1]
point(k) = POINT[(k - 1) % 7 + 1]
is(row, k, mode) = row eq "T" && $2 == k - 1 && $3 == mode
of(row, n, mode) = row eq "E" && $2 == n - 1 && $3 == mode
mode_text(mode) = mode == 0 ? "between two calls" : "between a call and none"

stats DATA using (strcol(1) eq "T" ? $7 : NaN) name "S" nooutput
stats DATA using (strcol(1) eq "T" && $8 > 0 ? $8 : 1) name "B" nooutput
stats DATA using (strcol(1) eq "E" ? $7 : 1) name "C" nooutput
most_share = S_max > 1.05 ? S_max * 1.03 : 1.08
most_balance = B_max > 2.2 ? B_max * 1.3 : 2.2

set xlabel "toggles per second" offset 0,0.4
do for [mode = 0 : 1] {
	set tmargin at screen from(top + mode * high + 24)
	set bmargin at screen from(top + mode * high + high - 56)
	unset logscale y
	set yrange [0 : most_share]
	set ytics autofreq
	set format y "%g"
	set ylabel "calls, share of untouched"
	set title mode_text(mode) offset 0,-0.7
	plot 1 with lines dashtype 3 linecolor rgb 0x808080, \
		for [k = 1 : curves] DATA using \
			(is(strcol(1), k, mode) && $4 > 0 ? $4 : NaN):5 \
			with lines linewidth 1.6 dashtype dash(k) \
			linecolor rgb colour(k), \
		for [k = 1 : curves] DATA using \
			(is(strcol(1), k, mode) ? place($4) : NaN):5:6:7 \
			with yerrorbars pointtype point(k) pointsize 0.6 linewidth 1 \
			linecolor rgb colour(k)
	set tmargin at screen from(top + (2 + mode) * high + 24)
	set bmargin at screen from(top + (2 + mode) * high + high - 56)
	set logscale y
	set yrange [0.95 : most_balance]
	if (most_balance < 30) {
		set ytics (1, 1.2, 1.5, 2, 3, 5, 10, 20)
	} else {
		set ytics (1, 10, 100, 1000, 10000, "1e5" 1e5, "1e6" 1e6, "1e7" 1e7)
	}
	unset ylabel
	set title "balance, more : less, " . mode_text(mode) offset 0,-0.7
	plot 1.5 with lines dashtype 3 linecolor rgb 0x808080, \
		for [k = 1 : curves] DATA using \
			(is(strcol(1), k, mode) && $4 > 0 && $8 > 0 ? $4 : NaN):8 \
			with linespoints linewidth 1.4 dashtype dash(k) \
			pointtype point(k) pointsize 0.6 linecolor rgb colour(k)
	if (sizes > 0) {
		unset logscale y
		set yrange [0 : C_max / 1e6 * 1.08]
		set ytics autofreq
		set ylabel "million calls per second"
		set title (SAMPLE . ", " . mode_text(mode)) noenhanced offset 0,-0.7
		set tmargin at screen from(top + (4 + mode) * high + 24)
		set bmargin at screen from(top + (4 + mode) * high + high - 56)
		plot for [n = 1 : sizes] DATA using \
				(of(strcol(1), n, mode) && $4 > 0 ? $4 : NaN):($5 / 1e6) \
				with lines linewidth 1.6 linecolor rgb colour(n), \
			for [n = 1 : sizes] DATA using \
				(of(strcol(1), n, mode) ? place($4) : NaN): \
				($5 / 1e6):($6 / 1e6):($7 / 1e6) \
				with yerrorbars pointtype point(n) pointsize 0.6 \
				linecolor rgb colour(n)
	}
}
unset title; unset xlabel; unset ylabel; unset tics; unset grid; unset border; unset logscale
set xrange [0 : 1]; set yrange [0 : 1]
set lmargin at screen 0.02
if (sizes > 0) {
	set tmargin at screen (foot - 4) / height
	set bmargin at screen 4.0 / height
	set key center center horizontal samplen 2 width 1 noenhanced
	executor_text(n) = n == 1 ? "1 executor" : sprintf("%d executors", n)
	plot for [n = 1 : sizes] NaN with linespoints linewidth 1.6 pointtype point(n) \
		pointsize 0.7 linecolor rgb colour(n) \
		title executor_text(int(word(EXECUTORS, n)))
}
set tmargin at screen 1 - 4.0 / height
set bmargin at screen from(top - 4)
set key left center Left reverse vertical maxcols 1 samplen 2 noenhanced
plot for [k = 1 : curves] NaN with linespoints linewidth 1.6 dashtype dash(k) \
	pointtype point(k) pointsize 0.7 linecolor rgb colour(k) \
	title (is_peer(k) ? word(NAMES, k) . " (peer)" : word(NAMES, k))
unset multiplot
unset output
