# SPDX-License-Identifier: MIT
#
# Tears per toggle against the wait that was too short for them.
#
#   gnuplot -d -c rate.gp FORMAT OUTPUT DATA CROSSINGS
#
# FORMAT is svg or png. DATA has rows
#   P crossing which provoked wait tears toggles rate low high
#   T crossing which provoked wait share
# of points with their band and of fitted tails: crossing in bytes, which 0 for the
# first wait and 1 for the second, waits in ticks. CROSSINGS lists the panels.

DATA = ARG3; CROSSINGS = ARG4
panels = words(CROSSINGS)
high = 330; top = 24; foot = 62
height = top + panels * high + foot

point(row) = row eq "P"
stats DATA using (point(strcol(1)) ? $5 : NaN) name "X" nooutput
stats DATA using (point(strcol(1)) ? ($6 > 0 ? $9 : $10) : NaN) name "Y" nooutput
stats DATA using (point(strcol(1)) ? $10 : NaN) name "H" nooutput
stats DATA using (!point(strcol(1)) && $6 >= 1e-10 ? 1 : 0) name "T" nooutput
x_most = X_max > 100 ? X_max : 100
y_least = Y_min
if (T_sum > 0) {
	stats DATA using (!point(strcol(1)) && $6 >= 1e-10 ? $5 : NaN) name "F" nooutput
	if (F_max > x_most) { x_most = F_max }
	if (y_least > 1e-10) { y_least = 1e-10 }
}
bottom = y_least * 0.3
curve(which, provoked) = 1 + which + 2 * provoked
seen(k) = int(word(SEEN, k))
SEEN = ""
do for [k = 1 : 4] {
	stats DATA using (curve($3, $4) == k ? 1 : 0) name "C" nooutput
	SEEN = SEEN . (C_sum > 0 ? " 1" : " 0")
}

# Linear near 0, where the short waits lie, and logarithmic far from it.
knee = 300.0
scaled(x) = asinh(x / knee)
unscaled(t) = knee * sinh(t)
set nonlinear x via scaled(x) inverse unscaled(x)
set xrange [unscaled(-0.02 * scaled(x_most)) : unscaled(1.03 * scaled(x_most))]
set format x "%.0f"
set xtics out nomirror (0)
do for [decade = 2 : 9] {
	do for [step in "1 2 5"] { set xtics add (step * 10 ** decade) }
}
set logscale y
set yrange [bottom : (H_max < 0.5 ? H_max * 2 : 1)]
set format y "10^{%T}"
set ytics out nomirror
set border 3 linecolor "#404040"
set grid ytics xtics linecolor "#dddddd" linewidth 1
set bars small
set style fill transparent solid 0.14 noborder

array COLOUR[4] = [0x0072b2, 0xd55e00, 0x009e73, 0xaa4499]
array POINT[4] = [7, 5, 9, 13]
array NAME[4] = ["first wait (old front)", "second wait (old back)", \
	"first wait, provoked", "second wait, provoked"]
# Nothing but numbers and fixed words is printed.
panel_text(crossing) = crossing == 64 ? "line crossing (64 bytes)" \
	: crossing == 4096 ? "page crossing (4096 bytes)" \
	: crossing == 0 ? "no crossing (inside 8 bytes)" : sprintf("crossing of %d bytes", crossing)
here(row, c, k) = row eq "P" && $2 == c && curve($3, $4) == k
there(row, c, k) = row eq "T" && $2 == c && curve($3, $4) == k

if (ARG1 eq "svg") {
	set terminal svg size 800,height font "sans,14" background "white"
} else {
	set terminal pngcairo size 800,height font "sans,11" background "white"
}
set output ARG2
set multiplot
set lmargin at screen 0.115
set rmargin at screen 0.985
unset key
set ylabel "tears per toggle" offset 0,0
do for [p = 1 : panels] {
	c = int(word(CROSSINGS, p))
	set tmargin at screen 1 - (top + (p - 1) * high + 10.0) / height
	set bmargin at screen 1 - (top + p * high - 70.0) / height
	set title panel_text(c) offset 0,-0.6
	if (p == panels) { set xlabel "wait (ticks)" } else { unset xlabel }
	plot for [k = 1 : 4] DATA using (here(strcol(1), c, k) ? $5 : NaN): \
			($6 > 0 ? $9 : bottom):10 \
			with filledcurves fillcolor rgb COLOUR[k], \
		for [k = 1 : 4] DATA using (here(strcol(1), c, k) ? $5 : NaN):($6 > 0 ? $8 : NaN) \
			with lines linewidth 1.5 linecolor rgb COLOUR[k], \
		for [k = 1 : 4] DATA using (here(strcol(1), c, k) && $6 > 0 ? $5 : NaN):8:9:10 \
			with yerrorbars pointtype POINT[k] pointsize 0.6 linewidth 1 \
			linecolor rgb COLOUR[k], \
		for [k = 1 : 4] DATA using (here(strcol(1), c, k) && $6 == 0 ? $5 : NaN):10 \
			with points pointtype 10 pointsize 0.9 linewidth 1.4 linecolor rgb COLOUR[k], \
		for [k = 1 : 4] DATA using (there(strcol(1), c, k) ? $5 : NaN):6 \
			with lines dashtype 2 linewidth 2 linecolor rgb COLOUR[k]
}
set tmargin at screen 50.0 / height
set bmargin at screen 4.0 / height
set key center center vertical maxrows 2 samplen 2 width 2 noenhanced
unset title; unset xlabel; unset ylabel; unset tics; unset grid; unset border
plot for [k = 1 : 4] (seen(k) ? NaN : 1 / 0) with linespoints linewidth 1.5 \
	pointtype POINT[k] pointsize 0.7 linecolor rgb COLOUR[k] \
	title (seen(k) ? NAME[k] : "")
unset multiplot
unset output
