# SPDX-License-Identifier: MIT
#
# The ladder of a kind of machines: bounds on tears per toggle against the wait.
#
#   gnuplot -d -c fleet.gp FORMAT OUTPUT DATA
#
# FORMAT is svg or png. DATA has rows: crossing (line or page), wait, bound, tears per toggle.

FORMAT = ARG1; OUTPUT = ARG2; DATA = ARG3
height = 352
load ARG0[1 : strlen(ARG0) - strlen("fleet.gp")] . "figure.gp"

stats DATA using 2 name "X" nooutput
stats DATA using 3 name "B" nooutput
stats DATA using ($4 > 0 ? $4 : NaN) name "R" nooutput
least = exists("R_min") && R_min < B_min ? R_min : B_min
span = scaled(X_max > 100 ? X_max : 100)
set nonlinear x via scaled(x) inverse unscaled(x)
set xrange [unscaled(-0.04 * span) : unscaled(1.04 * span)]
set xtics (0)
do for [decade = 2 : 9] {
	do for [step in "1 3"] {
		set xtics add (tic_text(int(step), decade) step * 10 ** decade)
	}
}
set logscale y
set yrange [least * 0.3 : 1]
eval tics_of("y", "1")
set xlabel "wait (ticks)" offset 0,0.4
set ylabel "tears per toggle"
set tmargin at screen from(84.0)
set bmargin at screen from(height - 54.0)
set key above maxrows 2 samplen 2 noenhanced
at(row, crossing) = strcol(1) eq crossing ? row : NaN
plot for [k = 1 : 2] c = word("line page", k) \
		DATA using 2:(at($3, c)) with linespoints pointtype POINT[k] pointsize 0.5 linewidth 1.6 \
		linecolor rgb COLOUR[k] title "across a " . c . ": bound", \
	for [k = 1 : 2] c = word("line page", k) \
		DATA using 2:($4 > 0 ? at($4, c) : NaN) with points pointtype POINT[k] - 1 pointsize 0.6 \
		linecolor rgb COLOUR[k] title "across a " . c . ": counted"
unset multiplot
unset output
