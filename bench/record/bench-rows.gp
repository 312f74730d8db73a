# SPDX-License-Identifier: MIT
#
# Rows of a benchmark as dots: a panel per unit, a line per case, a dot per measure.
#
#   gnuplot -d -c bench-rows.gp FORMAT OUTPUT DATA LINES UNITS MEASURES
#
# FORMAT is svg or png. DATA has rows
#   L panel line heading label
#   D panel line measure peer median low high p5 p99 most baseline
# with the line counted from the top of its panel, the baseline 0 for none, and the measure from 0. LINES has the
# number of lines of each panel, UNITS and MEASURES their names, each in quotes.

FORMAT = ARG1; OUTPUT = ARG2; DATA = ARG3; LINES = ARG4; UNITS = ARG5; MEASURES = ARG6
panels = words(LINES)
measures = words(MEASURES)
wide = 880.0; pitch = 22.0; above = 40.0; below = 48.0
stats DATA using (strcol(1) eq "D" && $5 == 1 ? 1 : 0) name "E" nooutput
any_peer = E_max > 0
key_rows = ceil((measures + 4 + any_peer) / 4.0)
top = 14.0 + 18 * key_rows
lines_of(p) = int(word(LINES, p)) + 0.0
height = top
do for [p = 1 : panels] { height = height + above + pitch * lines_of(p) + below }
load ARG0[1 : strlen(ARG0) - strlen("bench-rows.gp")] . "figure.gp"

# Those of one case are closer together.
y(line) = floor(line + 0.5) + 0.9 * (line - floor(line + 0.5))
is(row, p) = row eq "D" && $2 == p - 1
# A baseline of 0 is none.
lower(a, b) = a < b ? a : b
least_of(low, p5, base) = base > 0 ? lower(base, lower(low, p5)) : lower(low, p5)
array POINT[4] = [7, 6, 8, 4]

set lmargin at screen 0.4
set rmargin at screen 1 - 14.0 / wide
unset ytics
unset grid
set border 5 linecolor "#404040"
set bars 0
edge = height - top
do for [p = 1 : panels] {
	first = edge - above
	last = first - pitch * lines_of(p)
	edge = last - below
	set tmargin at screen first / height
	set bmargin at screen last / height
	unset logscale
	set xrange [*:*]
	set yrange [*:*]
	stats DATA using (is(strcol(1), p) ? least_of($7, $9, $12) : NaN) name "A" nooutput
	stats DATA using (is(strcol(1), p) ? $11 : NaN) name "B" nooutput
	least = A_min
	set yrange [lines_of(p) - 0.5 : -0.5]
	logarithmic = least > 0 && B_max / least > 30
	if (logarithmic) {
		set logscale x
		set xrange [least / 1.5 : B_max * 1.5]
		set logscale x2
		set x2range [least / 1.5 : B_max * 1.5]
		do for [axis in "x x2"] { eval tics_of(axis, B_max / least < 300 ? "1 2 5" : "1") }
		set mxtics 10
	} else {
		unset logscale x
		set xrange [0 : B_max > 0 ? B_max * 1.05 : 1]
		set xtics out nomirror autofreq
		unset logscale x2
		set x2range [0 : B_max > 0 ? B_max * 1.05 : 1]
		set x2tics out nomirror autofreq
	}
	# A long panel has its scale at both ends.
	set format x "%g"
	set format x2 "%g"
	set grid xtics linecolor "#dddddd" linewidth 1
	# A title of the axis would be left out where gnuplot thinks that the numbers take its room.
	set label 1 word(UNITS, p) at screen 0.69,(last - 36) / height center noenhanced
	left = logarithmic ? least / 1.5 : 0
	plot for [h = 0 : 1] DATA using (strcol(1) eq "L" && $2 == p - 1 && $4 == h ? left : NaN): \
			3:5 with labels right offset -1,0 noenhanced \
			font (h ? normal : small) textcolor rgb (h ? 0x000000 : 0x404040), \
		DATA using (is(strcol(1), p) && $12 > 0 ? $12 : NaN):(y($3) - 0.3):(0):(0.6) \
			with vectors nohead linewidth 2 linecolor rgb 0x909090, \
		for [c = 0 : 1] DATA using (is(strcol(1), p) && $5 == c ? $9 : NaN): \
			(y($3)):($10 - $9):(0) \
			with vectors nohead linewidth 1 linecolor rgb COLOUR[c + 1], \
		for [c = 0 : 1] DATA using (is(strcol(1), p) && $5 == c ? $11 : NaN): \
			(y($3)) \
			with points pointtype 2 pointsize 0.45 linewidth 0.8 \
			linecolor rgb (c ? 0xf0b48a : 0x8cc4e4), \
		for [c = 0 : 1] DATA using (is(strcol(1), p) && $5 == c ? $7 : NaN): \
			(y($3)):($8 - $7):(0) \
			with vectors nohead linewidth 4 linecolor rgb COLOUR[c + 1], \
		for [k = 2 : measures] DATA using (is(strcol(1), p) && $4 == k - 1 ? $6 : NaN):(y($3)) \
			with points pointtype 7 pointsize 0.7 linecolor rgb 0xffffff, \
		for [c = 0 : 1] for [k = 1 : measures] DATA using \
			(is(strcol(1), p) && $5 == c && $4 == k - 1 ? $6 : NaN): \
			(y($3)) \
			with points pointtype POINT[k] pointsize 0.75 linewidth 1.4 \
			linecolor rgb COLOUR[c + 1], \
		DATA using (is(strcol(1), p) ? $6 : NaN):(y($3)): \
			(sprintf("%s: %s, 95 %% from %s to %s; 5th to 99th percentile %s to %s; longest %s %s", \
			word(MEASURES, int($4) + 1), say($6), say($7), say($8), say($9), say($10), say($11), \
			word(UNITS, p))) \
			@HOVER
}
set lmargin at screen 0.02
set tmargin at screen 1 - 4.0 / height
set bmargin at screen 1 - (top - 6.0) / height
set key left center Left reverse vertical maxrows key_rows samplen 1.5 width -3 noenhanced
unset label; unset x2tics; unset tics; unset grid; unset border; unset logscale
set xrange [0 : 1]; set yrange [0 : 1]
plot for [k = 1 : measures] NaN with points pointtype POINT[k] pointsize 0.9 linewidth 1.4 \
		linecolor rgb 0x404040 title word(MEASURES, k) . ": median", \
	NaN with lines linewidth 4 linecolor rgb COLOUR[1] title "patchcore, 95 % interval", \
	for [k = 1 : any_peer] NaN with lines linewidth 4 linecolor rgb COLOUR[2] \
		title "a peer, 95 % interval", \
	NaN with lines linewidth 1 linecolor rgb 0x404040 title "5th to 99th percentile", \
	NaN with points pointtype 2 pointsize 0.6 linecolor rgb 0x707070 title "longest seen", \
	NaN with lines linewidth 2 linecolor rgb 0x909090 title "baseline, in turn"
unset multiplot
unset output
