# SPDX-License-Identifier: MIT
#
# The ladder of a machine, or of a kind of machines: tears per change against the wait, what was counted
# and what bounds it; the paper's constant waits beside it.
#
#   gnuplot -d -c ladder.gp FORMAT OUTPUT DATA UNIT PAPER
#
# FORMAT is svg or png. DATA has rows: crossing (line or page), constant (0 or 1), wait, bound (1: none),
# changes, tears, what a change costs (0: unknown), and the ends of the tears' 95 % interval. UNIT is that of waits and costs. PAPER is the constant
# wait of the paper, or empty.

FORMAT = ARG1; OUTPUT = ARG2; DATA = ARG3; UNIT = ARG4; PAPER = ARG5
wide = 880.0; height = 380.0
load ARG0[1 : strlen(ARG0) - strlen("ladder.gp")] . "figure.gp"

stats DATA using ($2 == 0 ? 1 : 0) name "N" nooutput
stats DATA using ($2 == 1 ? 1 : 0) name "C" nooutput
ladder = N_sum > 0
paper = C_sum > 0

# Where none tore: what bounds it.
rate(k, n, high) = n > 0 ? (k > 0 ? k / (1.0 * n) : high) : NaN
least(b, counted) = counted < b ? counted : b
stats DATA using (least($4, rate($6, $5, $9))) name "Y" nooutput
floor_y = Y_min * 0.2
# Before there are ranges, which statistics would heed.
array MOST[2]; array LEAST[2]
do for [constant = 0 : 1] {
	undefine X_* S_*
	stats DATA using ($2 == constant ? $3 : NaN) name "X" nooutput
	stats DATA using ($2 == constant && $3 > 0 ? $3 : NaN) name "S" nooutput
	MOST[constant + 1] = exists("X_max") && X_max > 0 ? X_max : 1
	LEAST[constant + 1] = exists("S_min") ? S_min : 1
}
set logscale y
set yrange [floor_y : 1]
eval tics_of("y", "1")

told(crossing, wait, b, n, k, cost) = sprintf("wait of %s %s, across a %s: %s of %s changes tore", \
	say(wait), UNIT, crossing, say(k), say(n)) \
	. (b < 1 ? sprintf(", bound %s", say(b)) : "") \
	. (cost > 0 ? sprintf(", a change takes %s %s", say(cost), UNIT) : "")

names = "line page"
here(row, c, constant) = strcol(1) eq c && $2 == constant ? row : NaN
aside(x, k) = unscaled(scaled(x) + (k - 1.5) * 0.012 * span)
do for [constant = 0 : 1] {
	if (!(constant ? paper : ladder)) { continue }
	set lmargin at screen (constant && ladder ? 0.68 : 0.1)
	set rmargin at screen (constant || !paper ? 0.985 : 0.61)
	set tmargin at screen from(88.0)
	set bmargin at screen from(height - 58.0)
	most = MOST[constant + 1]
	# The ladder is linear up to its shortest wait and logarithmic beyond; the paper's figure is linear.
	knee = constant ? 100 * most : LEAST[1]
	span = scaled(most)
	set nonlinear x via scaled(x) inverse unscaled(x)
	set xrange [unscaled(-0.05 * span) : unscaled(1.05 * span)]
	set xtics (0)
	if (constant) {
		do for [i = 1 : 9] { set xtics add (say(nice(most / 4) * i) nice(most / 4) * i) }
		set xlabel "constant wait (" . UNIT . ", linear)" offset 0,0.3
		unset ylabel
		set title "the paper's constant waits" offset 0,-0.7
	} else {
		do for [decade = -3 : 9] {
			if (10.0 ** decade >= knee) { set xtics add (say(10.0 ** decade) 10.0 ** decade) }
		}
		set xlabel sprintf("wait (%s, linear up to %s, then logarithmic)", UNIT, say(knee)) offset 0,0.3
		set ylabel "tears per change (logarithmic)"
		set title "the ladder, and what a change costs" offset 0,-0.7
	}
	mark = constant && strlen(PAPER) > 0 ? real(PAPER) : NaN
	plot "+" every ::0::0 using (mark):(floor_y):(0):(1) with vectors nohead linewidth 1.6 \
			dashtype 3 linecolor rgb 0x202020, \
		for [k = 1 : 2] c = word(names, k) DATA using (aside($3, k)): \
			(here($4 < 1 ? $4 : NaN, c, constant)) with linespoints linewidth 1.8 \
			pointtype 0 linecolor rgb COLOUR[k], \
		for [k = 1 : 2] c = word(names, k) DATA using (aside($3, k)): \
			(here($6 > 0 ? rate($6, $5, $9) : NaN, c, constant)):8:9 \
			with yerrorbars pointtype POINT[k] pointsize 0.6 linewidth 1 linecolor rgb COLOUR[k], \
		for [k = 1 : 2] c = word(names, k) DATA using (aside($3, k)): \
			(here($6 == 0 ? rate($6, $5, $9) : NaN, c, constant)) \
			with points pointtype 10 pointsize 0.8 linecolor rgb COLOUR[k], \
		DATA using 3:(here($7 > 0 ? floor_y * 1.5 : NaN, "line", constant)):(say($7)) \
			with labels rotate by 90 left font small textcolor rgb 0x505050, \
		for [bound = 0 : 1] for [k = 1 : 2] c = word(names, k) DATA using (aside($3, k)): \
			(here(!bound ? rate($6, $5, $9) : $4 < 1 ? $4 : NaN, c, constant)): \
			(told(strcol(1), $3, $4, $5, $6, $7)) \
			with labels hypertext point pointtype 7 pointsize 1 linecolor rgb "#ff000000"
}
set lmargin at screen 0.02
set rmargin at screen 0.98
set tmargin at screen from(4.0)
set bmargin at screen from(56.0)
set key left center Left reverse vertical maxrows 2 samplen 2 noenhanced
unset title; unset xlabel; unset ylabel; unset tics; unset grid; unset border; unset logscale
set xrange [0 : 1]; set yrange [0 : 1]
plot for [k = 1 : 2] NaN with lines linewidth 1.8 linecolor rgb COLOUR[k] \
		title "across a " . word(names, k) . ": bound (95 %)", \
	for [k = 1 : 2] NaN with points pointtype POINT[k] pointsize 0.8 linecolor rgb COLOUR[k] \
		title "across a " . word(names, k) . ": counted", \
	NaN with points pointtype 10 linecolor rgb 0x404040 title "none tore: 95 % bound", \
	for [i = 1 : strlen(PAPER) > 0] NaN with lines linewidth 1.6 dashtype 3 \
		linecolor rgb 0x202020 title "the paper's T_max"
unset multiplot
unset output
