# SPDX-License-Identifier: MIT
#
# Histogram of the fetch gaps, by kind and crossing.
#
#   gnuplot -d -c gaps.gp FORMAT OUTPUT DATA CROSSINGS TIME
#
# FORMAT is svg or png. DATA has rows "crossing curve low high gaps stores": crossing in bytes,
# curve 0 for an old front and 1 for a new one, 2 and 3 provoked, a bucket from low to high ticks.
# CROSSINGS lists the panels. TIME: how many ticks a microsecond has, 0: not known.

FORMAT = ARG1; OUTPUT = ARG2; DATA = ARG3; CROSSINGS = ARG4
panels = words(CROSSINGS)
columns = panels > 1 ? 2 : 1
wide = 440.0 * columns; high = 256

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
rows = ceil((seen(1) + seen(2) + seen(3) + seen(4)) / (2.0 * columns))
panels_high = ceil(panels / (1.0 * columns)) * high
height = panels_high + 16 + 18 * rows + 8
load ARG0[1 : strlen(ARG0) - strlen("gaps.gp")] . "figure.gp"

array NAME[4] = ["old front, new back", "new front, old back", \
	"old front, provoked", "new front, provoked"]
t = set_time(real(ARG5))
at(ticks) = (ticks > 1 ? ticks : 1) / TIME
set logscale xy
set xrange [left_edge * 0.9 / TIME : H_max * 1.1 / TIME]
set yrange [Y_min * 0.5 : Y_max * 2]
eval tics_of("x", H_max / left_edge < 3000 ? "1 3" : "1")
eval tics_of("y", "1")
set ylabel "gaps per million stores"
do for [p = 1 : panels] {
	c = int(word(CROSSINGS, p))
	t = place_panel(p, columns, 0, high)
	set lmargin at screen LEFT; set rmargin at screen RIGHT
	set tmargin at screen TOP; set bmargin at screen BOTTOM
	set title panel_text(c) offset 0,-0.7
	if (p > panels - columns) { set xlabel "gap (" . UNIT . ")" offset 0,0.4 } else { unset xlabel }
	# gnuplot 5.4 crashes on labels without a point.
	plot for [k = 1 : 4] DATA \
		using ($1 == c && $2 == k - 1 ? at($3) : NaN):(rate($5, $6)):(at($4) - at($3)):(0) \
		with vectors nohead linewidth 2.5 linecolor rgb COLOUR[k], \
		for [k = 1 : 4] for [i = 1 : seen(k)] DATA \
		using ($1 == c && $2 == k - 1 ? sqrt(at($3) * at($4)) : NaN):(rate($5, $6)): \
			(sprintf("%s: %s gaps of %s to %s %s in %s stores", NAME[k], say($5), \
			say($3 / TIME), say($4 / TIME), UNIT, say($6))) @HOVER
}
set tmargin at screen from(panels_high + 14.0)
set bmargin at screen 4.0 / height
set lmargin at screen 0.02
set key left center Left reverse vertical maxrows rows samplen 1.5 width -3 noenhanced
unset title; unset xlabel; unset ylabel; unset tics; unset grid; unset border; unset logscale
set xrange [0 : 1]; set yrange [0 : 1]
plot for [k = 1 : 4] for [i = 1 : seen(k)] NaN with lines linewidth 2.5 linecolor rgb COLOUR[k] \
	title NAME[k]
unset multiplot
unset output
