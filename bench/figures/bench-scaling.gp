# SPDX-License-Identifier: MIT
#
# What a cost or a rate becomes as the sites known or the patchers grow in number.
#
#   gnuplot -d -c bench-scaling.gp FORMAT OUTPUT DATA PANELS
#
# FORMAT is svg or png. DATA has rows
#   P panel sites curves title unit
#   K panel curve name
#   D panel curve number median low high
# with sites 1 where the number is one of sites known, 0 where it is one of patchers.

FORMAT = ARG1; OUTPUT = ARG2; DATA = ARG3
panels = int(ARG4)
high = 262.0; pitch = 17.0

# Names are data: nothing of them is ever more than text.
TITLES = ""; UNITS = ""; SITES = ""; CURVES = ""; NAMES = ""; seen = 0; named = 0
take(i, s, n, t, u) = i == seen ? (seen = seen + 1, SITES = SITES . s . " ", \
	CURVES = CURVES . n . " ", TITLES = TITLES . '"' . t . '" ', \
	UNITS = UNITS . '"' . u . '" ', 1) : 1
stats DATA using (strcol(1) eq "P" ? take($2, strcol(3), strcol(4), strcol(5), strcol(6)) : 1) \
	name "P" nooutput
stats DATA using (strcol(1) eq "K" ? (NAMES = NAMES . '"' . strcol(4) . '" ', 1) : 1) \
	name "K" nooutput
sites(p) = int(word(SITES, p))
curves(p) = int(word(CURVES, p))
before(p) = p == 1 ? 0 : sum [i = 1 : p - 1] curves(i)
name(p, k) = word(NAMES, before(p) + k)
height = 6 + panels * high + pitch * before(panels + 1)
load ARG0[1 : strlen(ARG0) - strlen("bench-scaling.gp")] . "figure.gp"
is(row, p, k) = row eq "D" && $2 == p - 1 && $3 == k - 1

array COLOUR[8] = [0x0072b2, 0xd55e00, 0x009e73, 0xaa4499, 0xe69f00, 0x56b4e9, 0x000000, 0x999933]
array POINT[8] = [7, 5, 9, 13, 6, 4, 8, 12]

do for [p = 1 : panels] {
	at = (p - 1) * high + pitch * before(p)
	set tmargin at screen from(at + 24)
	set bmargin at screen from(at + high - 58)
	set key at screen 30.0 / wide, screen from(at + high - 16) left top \
		Left reverse samplen 2 maxcols 1 noenhanced
	unset logscale
	set xrange [*:*]
	set yrange [*:*]
	stats DATA using (strcol(1) eq "D" && $2 == p - 1 ? $4 : NaN) name "X" nooutput
	stats DATA using (strcol(1) eq "D" && $2 == p - 1 ? $7 : NaN) name "Y" nooutput
	stats DATA using (strcol(1) eq "D" && $2 == p - 1 ? $6 : NaN) name "Z" nooutput
	set title word(TITLES, p) noenhanced offset 0,-0.6
	unit = sites(p) || Y_max < 2e4 ? 1.0 : Y_max < 2e6 ? 1e3 : 1e6
	set ylabel ((unit == 1e6 ? "million " : unit == 1e3 ? "thousand " : "") . word(UNITS, p)) \
		noenhanced
	if (sites(p)) {
		set logscale x
		set xrange [X_min / 1.5 : X_max * 1.5]
		eval tics_of("x", "1")
		set xlabel "sites known" offset 0,0.4
	} else {
		set xrange [0.5 : X_max + 0.5]
		set xtics 1, (X_max > 16 ? ceil(X_max / 8) : 1)
		set format x "%g"
		set xlabel "patchers" offset 0,0.4
	}
	set ytics autofreq
	if (sites(p) && Z_min > 0 && Y_max > 8 * Z_min) {
		set logscale y
		set yrange [Z_min / 1.5 : Y_max * 1.5]
		eval tics_of("y", Y_max / Z_min < 1e3 ? "1 2 5" : "1")
	} else {
		set yrange [0 : Y_max > 0 ? Y_max / unit * 1.08 : 1]
		set format y "%g"
	}
	plot for [k = 1 : curves(p)] DATA using (is(strcol(1), p, k) ? $4 : NaN): \
			($5 / unit):($6 / unit):($7 / unit) \
			with yerrorbars pointtype POINT[k] pointsize 0.6 linewidth 1 \
			linecolor rgb COLOUR[k] notitle, \
		for [k = 1 : curves(p)] DATA using \
			(is(strcol(1), p, k) ? $4 : 1 / 0):($5 / unit) \
			with linespoints linewidth 1.6 pointtype POINT[k] pointsize 0.6 \
			linecolor rgb COLOUR[k] title name(p, k)
}
unset multiplot
unset output
