# SPDX-License-Identifier: MIT
#
# Curves of a benchmark: a panel per thing that is shown, a curve per case.
#
#   gnuplot -d -c bench-curves.gp FORMAT OUTPUT DATA PANELS CURVES
#
# FORMAT is svg or png. DATA has rows
#   P panel logarithmic x-label y-label title
#   C curve peer name
#   V panel curve x y low high
# of which V come in blocks, one for each line. An x of 0 has a place of its own on the left.

FORMAT = ARG1; OUTPUT = ARG2; DATA = ARG3
panels = int(ARG4); curves = int(ARG5)
columns = panels == 1 ? 1 : 2
wide = columns * 440.0
high = panels == 1 ? 380.0 : 215.0; top = 12.0 + 18 * ceil(curves / (1.0 * columns))
height = top + ceil(panels / (1.0 * columns)) * high
load ARG0[1 : strlen(ARG0) - strlen("bench-curves.gp")] . "figure.gp"

# Names are data: nothing of them is ever more than text.
quoted(text) = '"' . text . '" '
LOGS = ""; XS = ""; YS = ""; TITLES = ""; p_seen = 0
panel_row(i, log, x, y, title) = i == p_seen ? (p_seen = p_seen + 1, LOGS = LOGS . log . " ", \
	XS = XS . quoted(x), YS = YS . quoted(y), TITLES = TITLES . quoted(title), 1) : 1
NAMES = ""; PEERS = ""; c_seen = 0
curve_row(i, peer, name) = i == c_seen ? (c_seen = c_seen + 1, PEERS = PEERS . peer . " ", \
	NAMES = NAMES . quoted(name), 1) : 1
stats DATA using (strcol(1) eq "P" ? panel_row($2, strcol(3), strcol(4), strcol(5), strcol(6)) : 1) \
	name "P" nooutput
stats DATA using (strcol(1) eq "C" ? curve_row($2, strcol(3), strcol(4)) : 1) name "C" nooutput
is_peer(k) = int(word(PEERS, k))
dash(k) = is_peer(k) ? 2 : 1
array COLOUR[8] = [0x0072b2, 0xd55e00, 0x009e73, 0xaa4499, 0xe69f00, 0x56b4e9, 0x000000, 0x999933]
array POINT[7] = [7, 5, 9, 13, 6, 4, 8]
colour(k) = COLOUR[(k - 1) % 8 + 1]
point(k) = POINT[(k - 1) % 7 + 1]

# All panels have one scale of x.
x_of(row) = row eq "V" && $4 > 0 ? $4 : NaN
stats DATA using (strcol(1) eq "V" && $4 > 0 ? 1 : 0) name "N" nooutput
X_min = 1e3; X_max = 1e3
if (N_sum > 0) {
	stats DATA using (x_of(strcol(1))) name "X" nooutput
}
stats DATA using (strcol(1) eq "V" && $4 == 0 ? 1 : 0) name "O" nooutput
nothing = X_min / 5
place(x) = x > 0 ? x : nothing
eval tics_of("x", X_max / X_min < 1e3 ? "1 2 5" : "1")
if (O_sum > 0) {
	set xtics add ("0" nothing)
}

is(row, p, k) = row eq "V" && $2 == p - 1 && $3 == k - 1
do for [p = 1 : panels] {
	t = place_panel(p, columns, top, high)
	set lmargin at screen LEFT; set rmargin at screen RIGHT
	set tmargin at screen TOP; set bmargin at screen BOTTOM - 10 / height
	set title word(TITLES, p) noenhanced offset 0,-0.7
	set xlabel word(XS, p) noenhanced offset 0,0.4
	set ylabel word(YS, p) noenhanced
	unset logscale
	set xrange [*:*]
	set yrange [*:*]
	stats DATA using (strcol(1) eq "V" && $2 == p - 1 && $5 > 0 ? 1 : 0) name "M" nooutput
	stats DATA using (strcol(1) eq "V" && $2 == p - 1 ? $7 : NaN) name "B" nooutput
	set ytics autofreq
	set format y "%g"
	if (M_sum > 0) {
		stats DATA using (strcol(1) eq "V" && $2 == p - 1 && $5 > 0 ? $5 : NaN) name "A" nooutput
	}
	set logscale x
	set xrange [(O_sum > 0 ? nothing : X_min) / 1.5 : X_max * 1.5]
	if (word(LOGS, p) eq "1" && M_sum > 0) {
		set logscale y
		set yrange [A_min / 1.5 : B_max * 1.5]
		eval tics_of("y", B_max / A_min < 300 ? "1 2 5" : "1")
	} else {
		set yrange [0 : B_max > 0 ? B_max * 1.05 : 1]
	}
	plot for [k = 1 : curves] DATA using (is(strcol(1), p, k) && $4 > 0 ? $4 : NaN):5 \
			with lines linewidth 1.6 dashtype dash(k) linecolor rgb colour(k), \
		for [k = 1 : curves] DATA using \
			(is(strcol(1), p, k) && $6 != $7 ? place($4) : NaN):5:6:7 \
			with yerrorbars pointtype point(k) pointsize 0.6 linewidth 1 \
			linecolor rgb colour(k), \
		for [k = 1 : curves] DATA using \
			(is(strcol(1), p, k) && $6 == $7 ? place($4) : NaN):5 \
			with points pointtype point(k) pointsize 0.2 linecolor rgb colour(k), \
		for [k = 1 : curves] DATA using (is(strcol(1), p, k) ? place($4) : NaN):5: \
			(sprintf("%s: %s at %s %s%s", word(NAMES, k), say($5), say($4), word(XS, p), \
			$6 != $7 ? sprintf(", 95 %% from %s to %s", say($6), say($7)) : "")) \
			@HOVER
}
unset title; unset xlabel; unset ylabel; unset tics; unset grid; unset border; unset logscale
set xrange [0 : 1]; set yrange [0 : 1]
set lmargin at screen 0.02
set rmargin at screen 0.98
set tmargin at screen 1 - 4.0 / height
set bmargin at screen from(top - 4)
set key left center Left reverse vertical maxcols columns samplen 2 noenhanced
plot for [k = 1 : curves] NaN with linespoints linewidth 1.6 dashtype dash(k) \
	pointtype point(k) pointsize 0.7 linecolor rgb colour(k) \
	title (is_peer(k) ? word(NAMES, k) . " (peer)" : word(NAMES, k))
unset multiplot
unset output
