# SPDX-License-Identifier: MIT
#
# Histograms of the cost of one change: a panel per thing done, a column per number of
# executors.
#
#   gnuplot -d -c bench-latency.gp FORMAT OUTPUT DATA PANELS EXECUTORS MEASURES
#
# FORMAT is svg or png. DATA has rows
#   P panel title
#   V panel column measure ticks share
# of which V, in blocks, go along an outline. EXECUTORS lists those of the columns;
# MEASURES has the names of the curves, in quotes.

DATA = ARG3; EXECUTORS = ARG5; MEASURES = ARG6
panels = int(ARG4)
columns = words(EXECUTORS)
measures = words(MEASURES)
high = 190.0; top = 40.0; foot = 52.0
height = top + panels * high + foot

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
set xtics out nomirror (1)
do for [decade = 0 : 15] {
	do for [step in (X_max / X_min < 1e3 ? "1 2 5" : "1")] {
		set xtics add (step * 10.0 ** decade)
	}
}
set mxtics 10
set ytics out nomirror
set format y "10^{%T}"
set border 3 linecolor "#404040"
set grid ytics xtics linecolor "#dddddd" linewidth 1
set style fill transparent solid 0.16 noborder
array COLOUR[4] = [0x0072b2, 0xd55e00, 0x009e73, 0xaa4499]
executor_text(n) = n == 0 ? "no executor" : n == 1 ? "1 executor" : sprintf("%d executors", n)
here(row, p, c, k) = row eq "V" && $2 == p - 1 && $3 == c - 1 && $4 == k - 1

if (ARG1 eq "svg") {
	set terminal svg size 800,height font "sans,13" background "white"
} else {
	set terminal pngcairo size 800,height font "sans,10" background "white"
}
set output ARG2
set multiplot
unset key
wide = (0.985 - 0.105) / columns
do for [p = 1 : panels] {
	do for [c = 1 : columns] {
		set lmargin at screen 0.105 + (c - 1) * wide
		set rmargin at screen 0.105 + c * wide - (c < columns ? 0.025 : 0)
		set tmargin at screen 1 - (top + (p - 1) * high + 22) / height
		set bmargin at screen 1 - (top + p * high - 16) / height
		set title (word(TITLES, p) . ", " . executor_text(int(word(EXECUTORS, c)))) \
			offset 0,-0.7 noenhanced
		set format x (p == panels ? (X_max > 9999 ? "10^{%T}" : "%g") : "")
		set xlabel (p == panels ? "ticks per change" : "")
		set ylabel (c == 1 ? "share of changes" : "") offset 0.5,0
		set format y (c == 1 ? "10^{%T}" : "")
		plot for [k = 1 : measures] DATA using \
				(here(strcol(1), p, c, k) ? $5 : 1 / 0): \
				(bottom):($6 > bottom ? $6 : bottom) \
				with filledcurves fillcolor rgb COLOUR[k], \
			for [k = 1 : measures] DATA using \
				(here(strcol(1), p, c, k) ? $5 : 1 / 0): \
				($6 > bottom ? $6 : bottom) \
				with lines linewidth 1.6 linecolor rgb COLOUR[k]
	}
}
set lmargin at screen 0.02
set rmargin at screen 0.985
set tmargin at screen 1 - 4.0 / height
set bmargin at screen 1 - (top - 8) / height
set key center center horizontal samplen 2 width 2 noenhanced
unset title; unset xlabel; unset ylabel; unset tics; unset grid; unset border; unset logscale
set xrange [0 : 1]; set yrange [0 : 1]
plot for [k = 1 : measures] NaN with lines linewidth 2 linecolor rgb COLOUR[k] \
	title word(MEASURES, k)
unset multiplot
unset output
