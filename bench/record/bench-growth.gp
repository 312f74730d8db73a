# SPDX-License-Identifier: MIT
#
# Cost of operations against what there is, both as multiples of the smallest.
#
#   gnuplot -d -c bench-growth.gp FORMAT OUTPUT DATA CURVES
#
# FORMAT is svg or png. DATA has rows
#   K curve name
#   G curve size cost low high
# with those of a curve in a block.

FORMAT = ARG1; OUTPUT = ARG2; DATA = ARG3
curves = int(ARG4)
high = 380.0; top = 12.0 + 18 * curves
height = top + high
load ARG0[1 : strlen(ARG0) - strlen("bench-growth.gp")] . "figure.gp"

# Names are data: nothing of them is ever more than text.
NAMES = ""; seen = 0
take(i, text) = i == seen ? (seen = seen + 1, NAMES = NAMES . '"' . text . '" ', 1) : 1
stats DATA using (strcol(1) eq "K" ? take($2, strcol(3)) : 1) name "K" nooutput
stats DATA using (strcol(1) eq "G" ? $3 : 1) name "X" nooutput
stats DATA using (strcol(1) eq "G" && $5 > 0 ? $5 : 1) name "L" nooutput
stats DATA using (strcol(1) eq "G" ? $6 : 1) name "Y" nooutput

array COLOUR[8] = [0x0072b2, 0xd55e00, 0x009e73, 0xaa4499, 0xe69f00, 0x56b4e9, 0x000000, 0x999933]
array POINT[7] = [7, 5, 9, 13, 6, 4, 8]
colour(k) = COLOUR[(k - 1) % 8 + 1]
point(k) = POINT[(k - 1) % 7 + 1]
is(row, k) = row eq "G" && $2 == k - 1

set logscale xy
set xrange [0.7 : X_max * 1.5]
set yrange [L_min / 1.5 : Y_max * 1.5]
eval tics_of("x", "1")
eval tics_of("y", "1")
set xlabel "times as much as in the smallest" offset 0,0.4
set ylabel "cost of an operation, multiple of the smallest"
set tmargin at screen from(top + 10)
set bmargin at screen from(top + high - 42)
plot x with lines dashtype 3 linecolor rgb 0x808080, \
	for [k = 1 : curves] DATA using (is(strcol(1), k) ? $3 : NaN):4:5:6 \
		with yerrorlines pointtype point(k) pointsize 0.6 linewidth 1.3 \
		linecolor rgb colour(k)
unset xlabel; unset ylabel; unset tics; unset grid; unset border; unset logscale
set xrange [0 : 1]; set yrange [0 : 1]
set lmargin at screen 0.02
set tmargin at screen 1 - 4.0 / height
set bmargin at screen from(top - 4)
set key left center Left reverse vertical maxcols 1 samplen 2 noenhanced
plot for [k = 1 : curves] NaN with linespoints linewidth 1.3 pointtype point(k) pointsize 0.7 \
	linecolor rgb colour(k) title word(NAMES, k)
unset multiplot
unset output
