# SPDX-License-Identifier: MIT
#
# Histograms of the cost of one change: a panel per thing done and number of executors.
#
#   gnuplot -d -c bench-latency.gp FORMAT OUTPUT DATA PANELS EXECUTORS MEASURES
#
# FORMAT is svg or png. DATA has rows
#   P panel title
#   V panel column measure ticks share
# of which V, in blocks, go along an outline. EXECUTORS lists those of the columns;
# MEASURES has the names of the curves, in quotes.

FORMAT = ARG1; OUTPUT = ARG2; DATA = ARG3; EXECUTORS = ARG5; MEASURES = ARG6
panels = int(ARG4)
columns = words(EXECUTORS)
measures = words(MEASURES)
high = 166.0; top = 14.0 + 18 * ceil(measures / 2.0); foot = 26.0
height = top + panels * columns * high + foot
load ARG0[1 : strlen(ARG0) - strlen("bench-latency.gp")] . "figure.gp"

# Titles are data: nothing of them is ever more than text.
TITLES = ""; seen = 0
take(i, text) = i == seen ? (seen = seen + 1, TITLES = TITLES . '"' . text . '" ', 1) : 1
stats DATA using (strcol(1) eq "P" ? take($2, strcol(3)) : 1) name "P" nooutput
stats DATA using (strcol(1) eq "V" ? $5 : NaN) name "X" nooutput
stats DATA using (strcol(1) eq "V" && $6 > 0 ? $6 : NaN) name "Y" nooutput

bottom = Y_min * 0.4
set logscale xy
set xrange [X_min / 1.2 : X_max * 1.2]
set yrange [bottom : 1.5]
eval tics_of("x", X_max / X_min < 1e3 ? "1 2 5" : "1")
set mxtics 10
eval tics_of("y", "1")
executor_text(n) = n == 0 ? "no executor" : n == 1 ? "1 executor" : sprintf("%d executors", n)
here(row, p, c, k) = row eq "V" && $2 == p - 1 && $3 == c - 1 && $4 == k - 1

set ylabel "share of changes"
do for [p = 1 : panels] {
	do for [c = 1 : columns] {
		at = top + ((p - 1) * columns + c - 1) * high
		last = p == panels && c == columns
		set tmargin at screen from(at + 22)
		set bmargin at screen from(at + high - 36)
		set title (word(TITLES, p) . ", " . executor_text(int(word(EXECUTORS, c)))) \
			offset 0,-0.7 noenhanced
		set xlabel (last ? "ticks per change" : "") offset 0,0.4
		plot for [k = 1 : measures] DATA using \
				(here(strcol(1), p, c, k) ? $5 : 1 / 0): \
				($6 > bottom ? $6 : bottom) \
				with lines linewidth 1.6 linecolor rgb COLOUR[k]
	}
}
set lmargin at screen 0.02
set tmargin at screen 1 - 4.0 / height
set bmargin at screen from(top - 6)
set key center center horizontal samplen 2 width 2 noenhanced
unset title; unset xlabel; unset ylabel; unset tics; unset grid; unset border; unset logscale
set xrange [0 : 1]; set yrange [0 : 1]
plot for [k = 1 : measures] NaN with lines linewidth 2 linecolor rgb COLOUR[k] \
	title word(MEASURES, k)
unset multiplot
unset output
