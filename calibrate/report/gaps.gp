# SPDX-License-Identifier: MIT
#
# Histogram of the fetch gaps, by kind and crossing.
#
#   gnuplot -d -c gaps.gp FORMAT OUTPUT DATA CROSSINGS
#
# FORMAT is svg or png. DATA has rows "crossing which provoked low high gaps stores":
# crossing in bytes, which 0 for an old front and 1 for a new one, a bucket from low to
# high ticks. CROSSINGS lists the panels.

DATA = ARG3; CROSSINGS = ARG4
panels = words(CROSSINGS)
high = 300; top = 24; foot = 62
height = top + panels * high + foot

rate(gaps, stores) = 1e6 * gaps / stores
stats DATA using (rate($6, $7)) name "Y" nooutput
stats DATA using ($4 > 0 ? $4 : 1) name "L" nooutput
stats DATA using ($5 > 1 ? $5 : 2) name "H" nooutput
bottom = Y_min * 0.3
left_edge = L_min < 10 ? 10 : L_min

curve(which, provoked) = 1 + which + 2 * provoked
SEEN = ""
do for [k = 1 : 4] {
	stats DATA using (curve($2, $3) == k ? 1 : 0) name "C" nooutput
	SEEN = SEEN . (C_sum > 0 ? " 1" : " 0")
}
seen(k) = int(word(SEEN, k))

set logscale xy
set xrange [left_edge * 0.9 : H_max * 1.1]
set yrange [bottom : Y_max * 3]
set format x "%.0f"
set format y "10^{%T}"
set xtics out nomirror (10)
do for [decade = 1 : 9] {
	do for [step in "1 2 5"] { set xtics add (step * 10 ** decade) }
}
set ytics out nomirror
set border 3 linecolor "#404040"
set grid ytics xtics linecolor "#dddddd" linewidth 1

array COLOUR[4] = [0x0072b2, 0xd55e00, 0x009e73, 0xaa4499]
array NAME[4] = ["old front, new back", "new front, old back", \
	"old front, provoked", "new front, provoked"]
panel_text(crossing) = crossing == 64 ? "line crossing (64 bytes)" \
	: crossing == 4096 ? "page crossing (4096 bytes)" \
	: crossing == 0 ? "no crossing (inside 8 bytes)" : sprintf("crossing of %d bytes", crossing)
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
set ylabel "gaps per million stores" offset 0,0
set style fill transparent solid 0.25 border
do for [p = 1 : panels] {
	c = int(word(CROSSINGS, p))
	set tmargin at screen 1 - (top + (p - 1) * high + 10.0) / height
	set bmargin at screen 1 - (top + p * high - 70.0) / height
	set title panel_text(c) offset 0,-0.6
	if (p == panels) { set xlabel "gap (ticks)" } else { unset xlabel }
	plot for [k = 1 : 4] DATA \
		using ($1 == c && curve($2, $3) == k ? sqrt(($4 > 1 ? $4 : 1) * $5) : NaN): \
			(rate($6, $7)):($4 > 1 ? $4 : 1):5:(bottom):(rate($6, $7)) \
		with boxxyerror linewidth 1 linecolor rgb COLOUR[k]
}
set tmargin at screen 50.0 / height
set bmargin at screen 4.0 / height
set key center center vertical maxrows 2 samplen 2 width 2 noenhanced
unset title; unset xlabel; unset ylabel; unset tics; unset grid; unset border
unset logscale
set xrange [0 : 1]; set yrange [0 : 1]
plot for [k = 1 : 4] NaN with boxes linewidth 1 linecolor rgb COLOUR[k] \
	title (seen(k) ? NAME[k] : "")
unset multiplot
unset output
