# SPDX-License-Identifier: MIT
#
# Tears per toggle against the wait that was too short for them.
#
#   gnuplot -d -c rate.gp FORMAT OUTPUT DATA CROSSINGS STRETCHES
#
# FORMAT is svg or png. DATA has rows
#   P crossing stretch curve wait tears toggles rate low high
#   L crossing stretch wait p chosen
#   C crossing stretch wait
# of points with their bar, bounds of levels and the paper's T_max: crossing in bytes,
# curve 0 for the first wait and 1 for the second, 2 and 3 provoked, waits in ticks. CROSSINGS and
# STRETCHES list the panels.

FORMAT = ARG1; OUTPUT = ARG2; DATA = ARG3; CROSSINGS = ARG4; STRETCHES = ARG5
panels = words(CROSSINGS)
high = 266

is(row, kind) = row eq kind
stats DATA using (is(strcol(1), "P") ? $5 : NaN) name "X" nooutput
stats DATA using (is(strcol(1), "P") ? ($6 > 0 ? $9 : $10) : NaN) name "Y" nooutput
stats DATA using (is(strcol(1), "P") ? $10 : NaN) name "H" nooutput
stats DATA using (is(strcol(1), "L") ? 1 : 0) name "L" nooutput
stats DATA using (is(strcol(1), "C") || (is(strcol(1), "L") && $6 == 1) ? 1 : 0) name "C" nooutput
x_most = X_max > 100 ? X_max : 100
bottom = Y_min * 0.3
most = H_max
if (L_sum > 0) {
	stats DATA using (is(strcol(1), "L") && $5 < 1e-2 ? $5 : Y_min) name "B" nooutput
	if (B_max > most) { most = B_max }
}
ceiling = most < 0.5 ? most * 2 : 1
SEEN = ""
do for [k = 1 : 4] {
	stats DATA using (is(strcol(1), "P") && $4 == k - 1 ? 1 : 0) name "S" nooutput
	SEEN = SEEN . (S_sum > 0 ? " 1" : " 0")
}
seen(k) = int(word(SEEN, k))
rows = ceil((seen(1) + seen(2) + seen(3) + seen(4) + 1 + (L_sum > 0) + (C_sum > 0)) / 2.0)
foot = 18 * rows + 8
height = panels * high + 16 + foot
load ARG0[1 : strlen(ARG0) - strlen("rate.gp")] . "figure.gp"

array NAME[4] = ["first wait", "second wait", "first wait, provoked", "second wait, provoked"]
span = scaled(x_most)
set nonlinear x via scaled(x) inverse unscaled(x)
set xrange [unscaled(-0.04 * span) : unscaled(1.04 * span)]
set xtics (0)
do for [decade = 2 : 9] {
	do for [step in "1 3"] {
		set xtics add (tic_text(int(step), decade) step * 10 ** decade)
	}
}
set logscale y
set yrange [bottom : ceiling]
eval tics_of("y", "1")

# Bars of one wait stand side by side.
aside(x, k) = unscaled(scaled(x) + (k - 2.5) * 0.011 * span)
here(row, c, s, k) = row eq "P" && $2 == c && $3 == s && $4 == k - 1
level(row, c, s) = row eq "L" && $2 == c && $3 == s
upright(row, c, s) = (row eq "C" && $2 == c && $3 == s) || (level(row, c, s) && $6 == 1)

set ylabel "tears per toggle"
do for [p = 1 : panels] {
	c = int(word(CROSSINGS, p)); s = int(word(STRETCHES, p))
	set tmargin at screen from((p - 1) * high + 24.0)
	set bmargin at screen from(p * high - 42.0)
	set title panel_text(c) . (s ? sprintf(", waits stretched x%d", s) : ", constant waits") \
		offset 0,-0.7
	if (p == panels) { set xlabel "wait (ticks)" offset 0,0.4 } else { unset xlabel }
	plot DATA using (upright(strcol(1), c, s) ? $4 : NaN):(bottom):(0):(ceiling - bottom) \
			with vectors nohead linewidth 1.6 dashtype 3 linecolor rgb 0x202020, \
		for [k = 1 : 4] DATA \
			using (here(strcol(1), c, s, k) && $6 > 0 ? aside($5, k) : NaN):8:9:10 \
			with yerrorbars pointtype POINT[k] pointsize 0.4 linewidth 1.4 \
			linecolor rgb COLOUR[k], \
		for [k = 1 : 4] DATA \
			using (here(strcol(1), c, s, k) && $6 == 0 ? aside($5, k) : NaN):10 \
			with points pointtype 10 pointsize 0.6 linewidth 1.2 linecolor rgb COLOUR[k], \
		DATA using (level(strcol(1), c, s) ? unscaled(scaled($4) - 0.025 * span) : NaN):5: \
			(unscaled(scaled($4) + 0.025 * span) - unscaled(scaled($4) - 0.025 * span)):(0) \
			with vectors nohead linewidth 2 linecolor rgb 0x202020
}
set tmargin at screen from(panels * high + 14.0)
set bmargin at screen 4.0 / height
set lmargin at screen 0.02
set key left center Left reverse vertical maxrows rows samplen 1.5 width -3 noenhanced
unset title; unset xlabel; unset ylabel; unset tics; unset grid; unset border; unset logscale
set xrange [0 : 1]; set yrange [0 : 1]
plot for [k = 1 : 4] for [i = 1 : seen(k)] NaN with points pointtype POINT[k] pointsize 0.7 \
		linecolor rgb COLOUR[k] title NAME[k], \
	NaN with points pointtype 10 linecolor rgb 0x404040 title "no tear: 95 % bound", \
	for [i = 1 : L_sum > 0] NaN with lines linewidth 2 linecolor rgb 0x202020 \
		title "bound of the ladder", \
	for [i = 1 : C_sum > 0] NaN with lines linewidth 1.6 dashtype 3 linecolor rgb 0x202020 \
		title "wait chosen"
unset multiplot
unset output
