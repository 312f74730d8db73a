# SPDX-License-Identifier: MIT
#
# Figure 9 of the paper for one machine: tears (or failures) against the wait.
#
#   gnuplot -d -c figure9.gp FORMAT OUTPUT DATA TITLES ORACLE CROSSINGS SPLITS CAPTION MARK
#
# FORMAT is svg or png. DATA has a row per point: crossing in bytes, split, wait
# in ticks, events, trials. ORACLE is count (events are tears, trials toggles) or
# crash (events are failed runs, trials runs). CROSSINGS lists the panels, SPLITS
# the curves; split 0 is all of them in one. TITLES is the machine, and what was run on the next
# line; CAPTION may have several lines. MARK is how many ticks a microsecond has, 0: not known, and
# behind it a wait that gets an upright line, if any. Texts
# come as arguments and without enhanced mode, so that nothing that a machine calls itself can mean
# anything here.

FORMAT = ARG1; OUTPUT = ARG2; DATA = ARG3
CROSSINGS = ARG6; SPLITS = ARG7; TIME = real(word(ARG9, 1)); MARK = word(ARG9, 2)
counting = ARG5 eq "count"
panels = words(CROSSINGS)
curves = words(SPLITS)
columns = panels > 1 ? 2 : 1
wide = 440.0 * columns; high = 270

# Lines that are no longer than the figure is wide; broken behind a blank.
end_of(text) = strstrt(text, "\n") > 0 ? strstrt(text, "\n") - 1 : strlen(text)
last_blank(text, at) = at < 2 ? 0 : text[at : at] eq " " ? at : last_blank(text, at - 1)
cut(text, most) = strlen(text) <= most || last_blank(text, most) == 0 ? strlen(text) \
	: last_blank(text, most)
LINES = ""; lines = 0
do for [part = 1 : 2] {
	rest = part == 1 ? ARG4 : ARG8
	while (strlen(rest) > 0) {
		line = rest[1 : end_of(rest)]
		rest = rest[end_of(rest) + 2 : *]
		while (strlen(line) > 0) {
			at = cut(line, 70 * columns)
			LINES = LINES . line[1 : at] . "\n"
			lines = lines + 1
			line = line[at + 1 : *]
		}
	}
	if (part == 1) { HEADING = LINES; heading = lines; LINES = ""; lines = 0 }
}
top = 17 * heading + 8
rows = ceil((curves + 1 + (strlen(MARK) > 0)) / (2.0 * columns))
foot = 18 * rows + 17 * (lines + 2) + 12
panels_high = ceil(panels / (1.0 * columns)) * high
height = top + panels_high + 16 + foot
load ARG0[1 : strlen(ARG0) - strlen("figure9.gp")] . "figure.gp"

t = set_time(TIME)
unit = counting ? 1e6 : 100
y_text = counting ? "tears per million toggles" : "failed runs in 100"
bound_text = counting ? "no tear: 95 % bound" : "no failure: 95 % bound"
note = "split: bytes before|behind the boundary; the same wait side\nby side; bars: 95 % intervals"

# Poisson for tears among very many toggles, binomial (Clopper-Pearson) for runs.
upper_of_none(n) = unit * (counting ? 3 / n : 1 - 0.05 ** (1 / n))
# gnuplot before 6 has no inverse of these distributions, so they are bisected;
# for many tears the cube-root approximation is good to a thousandth.
gamma_quantile(p, k, a, b, step) = step == 0 ? (a + b) / 2 : igamma(k, (a + b) / 2) < p \
	? gamma_quantile(p, k, (a + b) / 2, b, step - 1) \
	: gamma_quantile(p, k, a, (a + b) / 2, step - 1)
beta_quantile(p, i, j, a, b, step) = step == 0 ? (a + b) / 2 : ibeta(i, j, (a + b) / 2) < p \
	? beta_quantile(p, i, j, (a + b) / 2, b, step - 1) \
	: beta_quantile(p, i, j, a, (a + b) / 2, step - 1)
cube_root(k, z) = k * (1 - 1 / (9.0 * k) + z / (3 * sqrt(k))) ** 3
poisson_low(k, n) = (k > 50 ? cube_root(k, -1.96) : gamma_quantile(0.025, k, 0.0, 100.0, 40)) / n
poisson_high(k, n) = (k > 50 ? cube_root(k + 1, 1.96) \
	: gamma_quantile(0.975, k + 1, 0.0, 100.0, 40)) / n
binomial_low(k, n) = beta_quantile(0.025, k, n - k + 1, 0.0, 1.0, 40)
binomial_high(k, n) = k < n ? beta_quantile(0.975, k + 1, n - k, 0.0, 1.0, 40) : 1
low(k, n) = unit * (counting ? poisson_low(k, n) : binomial_low(k, n))
high_end(k, n) = unit * (counting ? poisson_high(k, n) : binomial_high(k, n))
mark(k, n) = k > 0 ? unit * k / n : upper_of_none(n)

stats DATA using 3 name "X" nooutput
stats DATA using (mark($4, $5)) name "Y" nooutput

# Hardly bent for the paper's waits, while the ladder's long waits leave room for the short ones.
x_most = X_max > 100 ? X_max : 100
short = x_most <= 3000
if (short) { knee = 1500.0 }
span = scaled(x_most)
# Equal bounds and bars can be told apart when they stand side by side.
array SHIFT[5]
# Arrays have no element 0.
curve(split) = split == 0 ? 5 : split
do for [i = 1 : curves] {
	SHIFT[curve(int(word(SPLITS, i)))] = (i - (curves + 1) / 2.0) * 0.008 * span
}
aside(x, split) = unscaled(scaled(x) + SHIFT[curve(split)])

set nonlinear x via scaled(x) inverse unscaled(x)
set xrange [unscaled(-0.04 * span) : unscaled(1.04 * span)]
set xtics (0)
if (short) {
	step = nice(x_most / TIME / 4)
	do for [tic = 1 : 9] { set xtics add (say(tic * step) tic * step * TIME) }
} else {
	do for [decade = -2 : 9] {
		do for [step in "1 3"] {
			at = int(step) * 10.0 ** decade * TIME
			if (at > 0.3 * knee) { set xtics add (tic_text(int(step), decade) at) }
		}
	}
}

if (counting) {
	set logscale y
	set yrange [Y_min * 0.3 : Y_max * 3]
	eval tics_of("y", "1")
} else {
	set yrange [0 : 105]
	set format y "%g"
}
width(split) = split == 0 ? 2.5 : 1.2
curve_text(split) = split == 0 ? "all splits" : sprintf("split %d|%d", split, 5 - split)
here(crossing, split) = $1 == crossing && $2 == split

at_top(pixels) = from(pixels + 0.0)
set label 1 HEADING at screen 8.0 / wide,at_top(12) left noenhanced font small
set label 2 LINES . note at screen 8.0 / wide,(17.0 * (lines + 2) - 10) / height left \
	textcolor "#505050" font small noenhanced
set ylabel y_text
mark_at = strlen(MARK) > 0 ? real(MARK) : 0
ceiling = counting ? Y_max * 3 : 105
floor_y = counting ? Y_min * 0.3 : 0
do for [p = 1 : panels] {
	crossing = int(word(CROSSINGS, p))
	t = place_panel(p, columns, top, high)
	set lmargin at screen LEFT; set rmargin at screen RIGHT
	set tmargin at screen TOP; set bmargin at screen BOTTOM
	set title panel_text(crossing) offset 0,-0.7
	if (p > panels - columns) { set xlabel "first wait = second wait (" . UNIT . ")" offset 0,0.4 } \
	else { unset xlabel }
	plot for [i = 1 : strlen(MARK) > 0] "+" every ::0::0 \
		using (mark_at):(floor_y):(0):(ceiling - floor_y) \
		with vectors nohead linewidth 1.6 dashtype 3 linecolor rgb 0x202020, \
		for [s in SPLITS] DATA \
		using (here(crossing, s) ? aside($3, int(s)) : NaN):($4 > 0 ? mark($4, $5) : NaN) \
		with lines linewidth width(int(s)) linecolor rgb COLOUR[curve(int(s))], \
		for [s in SPLITS] DATA \
		using (here(crossing, s) && $4 > 0 ? aside($3, int(s)) : NaN): \
			(mark($4, $5)):(low($4, $5)):(high_end($4, $5)) \
		with yerrorbars linewidth 1 pointsize 0 linecolor rgb COLOUR[curve(int(s))], \
		for [s in SPLITS] DATA \
		using (here(crossing, s) && $4 > 0 ? aside($3, int(s)) : NaN):(mark($4, $5)) \
		with points pointtype POINT[curve(int(s))] pointsize 0.5 \
		linecolor rgb COLOUR[curve(int(s))], \
		for [s in SPLITS] DATA \
		using (here(crossing, s) && $4 == 0 ? aside($3, int(s)) : NaN):(mark($4, $5)) \
		with points pointtype 10 pointsize 0.7 linewidth 1.2 \
		linecolor rgb COLOUR[curve(int(s))], \
		for [s in SPLITS] DATA using (here(crossing, s) ? aside($3, int(s)) : NaN): \
		(mark($4, $5)):(sprintf("%s, waits of %s %s: %s of %s %s", curve_text(int(s)), \
		say($3 / TIME), UNIT, say($4), say($5), counting ? "toggles tore" : "runs failed")) @HOVER
	unset label
}
# The legend is a plot of its own below the panels, never over data.
set lmargin at screen 0.02
set tmargin at screen from(top + panels_high + 14.0)
set bmargin at screen (17.0 * (lines + 2) + 4) / height
set key left center Left reverse vertical maxrows rows samplen 1.5 width -3 noenhanced
unset title; unset xlabel; unset ylabel; unset tics; unset grid; unset border; unset logscale
set xrange [0 : 1]; set yrange [0 : 1]
plot for [s in SPLITS] NaN with linespoints linewidth width(int(s)) \
	pointtype POINT[curve(int(s))] pointsize 0.7 linecolor rgb COLOUR[curve(int(s))] \
	title curve_text(int(s)), \
	NaN with points pointtype 10 linecolor rgb 0x404040 title bound_text, \
	for [i = 1 : strlen(MARK) > 0] NaN with lines linewidth 1.6 dashtype 3 \
		linecolor rgb 0x202020 title "the paper's T_max here"
unset multiplot
unset output
