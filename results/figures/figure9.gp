# SPDX-License-Identifier: MIT
#
# Figure 9 of the paper for one machine: tears (or failures) against the wait.
#
#   gnuplot -d -c figure9.gp FORMAT OUTPUT DATA TITLE SUBTITLE ORACLE CROSSINGS SPLITS CAPTION
#
# FORMAT is svg or png. DATA has a row per point: crossing in bytes, split, wait
# in ticks, events, trials. ORACLE is count (events are tears, trials toggles) or
# crash (events are failed runs, trials runs). CROSSINGS lists the panels, SPLITS
# the curves; split 0 is all of them in one. CAPTION may have several lines. Texts
# come as arguments and without enhanced mode, so that nothing that a machine calls
# itself can mean anything here.

DATA = ARG3
CROSSINGS = ARG7; SPLITS = ARG8
counting = ARG6 eq "count"
panels = words(CROSSINGS)
# Room for a caption is made at the foot.
low_edge = strlen(ARG9) > 0 ? 0.075 : 0

unit = counting ? 1e6 : 100
y_text = counting ? "tears per million toggles" : "failed runs in 100"
bound_text = counting ? "no tear seen: 95 % upper bound, 3/N" \
	: "no failure seen: 95 % upper bound"
note = "split: bytes before|behind the boundary; the same wait side by side; " \
	. "bars: 95 % intervals"

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
high(k, n) = unit * (counting ? poisson_high(k, n) : binomial_high(k, n))
mark(k, n) = k > 0 ? unit * k / n : upper_of_none(n)

stats DATA using 3 name "X" nooutput
stats DATA using (mark($4, $5)) name "Y" nooutput

# The wait axis is linear near 0 and logarithmic far from it: hardly bent for the
# paper's waits, while the ladder's long waits leave room for the short ones.
x_most = X_max > 100 ? X_max : 100
short = x_most <= 3000
knee = short ? 1500.0 : 300.0
scaled(x) = asinh(x / knee)
unscaled(t) = knee * sinh(t)
span = scaled(x_most)
# Equal bounds and bars can be told apart when they stand side by side.
curves = words(SPLITS)
array SHIFT[5]
# Arrays have no element 0.
curve(split) = split == 0 ? 5 : split
do for [i = 1 : curves] {
	SHIFT[curve(int(word(SPLITS, i)))] = (i - (curves + 1) / 2.0) * 0.004 * panels * span
}
aside(x, split) = unscaled(scaled(x) + SHIFT[curve(split)])

set nonlinear x via scaled(x) inverse unscaled(x)
set xrange [unscaled(-0.04 * span) : unscaled(1.04 * span)]
set format x "%.0f"
set xtics out nomirror font ",10"
set xtics (0)
if (short) {
	do for [tic = 1 : 6] { set xtics add (500 * tic) }
	if (x_most < 1000) { set xtics add (100, 200, 300, 400) }
} else {
	do for [decade = 2 : 9] { set xtics add (10 ** decade) }
	if (x_most <= 30000) { set xtics add (200, 500, 2000, 3000, 5000, 20000) }
}

if (counting) {
	set logscale y
	set yrange [Y_min * 0.3 : Y_max * 3]
	set format y "10^{%T}"
} else {
	set yrange [0 : 105]
	set format y "%g"
}
set ytics out nomirror font ",10"

array COLOUR[5] = [0x0072b2, 0xd55e00, 0x009e73, 0xaa4499, 0x202020]
array POINT[5] = [7, 5, 9, 13, 3]
width(split) = split == 0 ? 2.5 : 1.5
curve_text(split) = split == 0 ? "all splits" : sprintf("split %d|%d", split, 5 - split)

set border 3 linecolor "#404040"
set grid ytics xtics linecolor "#d4d4d4" linewidth 1
set bars small

panel_text(crossing) = crossing == 64 ? "line crossing (64 bytes)" \
	: crossing == 4096 ? "page crossing (4096 bytes)" : sprintf("crossing of %d bytes", crossing)

here(crossing, split) = $1 == crossing && $2 == split

left = 0.075
gap = 0.035
wide = (0.985 - left - gap * (panels - 1)) / panels

if (ARG1 eq "svg") {
	set terminal svg size 1200,700 font "sans,13" background "white"
} else {
	set terminal pngcairo size 1200,700 font "sans,11" background "white"
}
set output ARG2
set multiplot
set label 1 ARG4 at screen 0.5,0.965 center font ",15" noenhanced
set label 2 ARG5 at screen 0.5,0.920 center textcolor "#505050" noenhanced
set label 3 "" at screen left + 0.006,0.035 + low_edge \
	point pointtype 10 pointsize 1.2 linewidth 1.4 linecolor "#404040"
set label 5 bound_text at screen left + 0.018,0.035 + low_edge left textcolor "#505050" noenhanced
set label 4 note at screen 0.985,0.035 + low_edge right textcolor "#505050" noenhanced
if (low_edge > 0) {
	set label 6 ARG9 at screen left,0.062 left textcolor "#505050" font ",11" noenhanced
}
set xlabel "first wait = second wait (ticks)"
set ylabel y_text
set tmargin at screen 0.835
set bmargin at screen 0.225 + low_edge
unset key
do for [p = 1 : panels] {
	crossing = int(word(CROSSINGS, p))
	set lmargin at screen left + (p - 1) * (wide + gap)
	set rmargin at screen left + (p - 1) * (wide + gap) + wide
	set title panel_text(crossing) offset 0,-0.4
	plot for [s in SPLITS] DATA \
		using (here(crossing, s) ? aside($3, int(s)) : NaN):($4 > 0 ? mark($4, $5) : NaN) \
		with lines linewidth width(int(s)) linecolor rgb COLOUR[curve(int(s))], \
		for [s in SPLITS] DATA \
		using (here(crossing, s) && $4 > 0 ? aside($3, int(s)) : NaN): \
			(mark($4, $5)):(low($4, $5)):(high($4, $5)) \
		with yerrorbars linewidth 1 pointsize 0 linecolor rgb COLOUR[curve(int(s))], \
		for [s in SPLITS] DATA \
		using (here(crossing, s) && $4 > 0 ? aside($3, int(s)) : NaN):(mark($4, $5)) \
		with points pointtype POINT[curve(int(s))] pointsize 0.8 \
		linecolor rgb COLOUR[curve(int(s))], \
		for [s in SPLITS] DATA \
		using (here(crossing, s) && $4 == 0 ? aside($3, int(s)) : NaN):(mark($4, $5)) \
		with points pointtype 10 pointsize 1.2 linewidth 1.4 \
		linecolor rgb COLOUR[curve(int(s))]
	unset label
	unset ylabel
	set format y ""
}
# The legend is a plot of its own below the panels, never over data.
set lmargin at screen left
set rmargin at screen 0.985
set tmargin at screen 0.120 + low_edge
set bmargin at screen 0.060 + low_edge
set key center center horizontal samplen 2 width 3 noenhanced
unset title
unset xlabel
unset tics
unset grid
unset border
plot for [s in SPLITS] NaN with linespoints linewidth width(int(s)) \
	pointtype POINT[curve(int(s))] pointsize 0.8 linecolor rgb COLOUR[curve(int(s))] \
	title curve_text(int(s))
unset multiplot
unset output
