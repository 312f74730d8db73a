# SPDX-License-Identifier: MIT
#
# Histogram of the fetch gaps, by kind and crossing.
#
#   gnuplot -d -c gaps.gp FORMAT OUTPUT DATA CROSSINGS
#
# FORMAT is svg or png. DATA has rows "crossing curve low high gaps stores": crossing in bytes,
# curve 0 for an old front and 1 for a new one, 2 and 3 provoked, a bucket from low to high ticks.
# CROSSINGS lists the panels.

FORMAT = ARG1; OUTPUT = ARG2; DATA = ARG3; CROSSINGS = ARG4
panels = words(CROSSINGS)
high = 256

rate(gaps, stores) = 1e6 * gaps / stores
stats DATA using (rate($5, $6)) name "Y" nooutput
stats DATA using ($3 > 0 ? $3 : 1) name "L" nooutput
stats DATA using ($4 > 1 ? $4 : 2) name "H" nooutput
left_edge = L_min < 10 ? 10 : L_min
SEEN = ""
do for [k = 1 : 4] {
	stats DATA using ($2 == k - 1 ? 1 : 0) name "S" nooutput
	SEEN = SEEN . (S_sum > 0 ? " 1" : " 0")
}
seen(k) = int(word(SEEN, k))
rows = ceil((seen(1) + seen(2) + seen(3) + seen(4)) / 2.0)
height = panels * high + 16 + 18 * rows + 8
load ARG0[1 : strlen(ARG0) - strlen("gaps.gp")] . "figure.gp"

array NAME[4] = ["old front, new back", "new front, old back", \
	"old front, provoked", "new front, provoked"]
set logscale xy
set xrange [left_edge * 0.9 : H_max * 1.1]
set yrange [Y_min * 0.5 : Y_max * 2]
eval tics_of("x", H_max / left_edge < 3000 ? "1 3" : "1")
eval tics_of("y", "1")
set ylabel "gaps per million stores"
do for [p = 1 : panels] {
	c = int(word(CROSSINGS, p))
	set tmargin at screen from((p - 1) * high + 24.0)
	set bmargin at screen from(p * high - 42.0)
	set title panel_text(c) offset 0,-0.7
	if (p == panels) { set xlabel "gap (ticks)" offset 0,0.4 } else { unset xlabel }
	plot for [k = 1 : 4] DATA \
		using ($1 == c && $2 == k - 1 ? ($3 > 1 ? $3 : 1) : NaN):(rate($5, $6)): \
			($4 - ($3 > 1 ? $3 : 1)):(0) \
		with vectors nohead linewidth 2.5 linecolor rgb COLOUR[k]
}
set tmargin at screen from(panels * high + 14.0)
set bmargin at screen 4.0 / height
set lmargin at screen 0.02
set key left center Left reverse vertical maxrows rows samplen 1.5 width -3 noenhanced
unset title; unset xlabel; unset ylabel; unset tics; unset grid; unset border; unset logscale
set xrange [0 : 1]; set yrange [0 : 1]
plot for [k = 1 : 4] for [i = 1 : seen(k)] NaN with lines linewidth 2.5 linecolor rgb COLOUR[k] \
	title NAME[k]
unset multiplot
unset output
