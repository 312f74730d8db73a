# SPDX-License-Identifier: MIT
#
# Straddlers of programs, as the paper's figure 14: which share of the sites crosses a boundary.
#
#   gnuplot -d -c straddlers.gp FORMAT OUTPUT DATA ROWS
#
# FORMAT is svg or png. DATA has a row per program and kind of site: name, usable sites, and how many of
# them cross 8 bytes, a line of 64, and a page; ROWS of them. Names are text and no more.

FORMAT = ARG1; OUTPUT = ARG2; DATA = ARG3
rows = ARG4 + 0
pitch = 44.0
height = 44 + rows * pitch + 56
load ARG0[1 : strlen(ARG0) - strlen("straddlers.gp")] . "figure.gp"

set datafile separator "\t"
set lmargin at screen 150.0 / wide
set rmargin at screen 1 - 40.0 / wide
set tmargin at screen from(44)
set bmargin at screen from(44 + rows * pitch)
set border 1 linecolor "#404040"
set yrange [rows - 0.5 : -0.5]
set ytics scale 0 noenhanced nomirror
set xrange [0 : *]
set xtics out nomirror
set xlabel "sites that cross a boundary, %"
set key at screen 0.98, from(8) right top horizontal samplen 1
unset grid
set grid xtics linecolor "#dddddd" linewidth 1
bar = 0.24
share(n, of) = of > 0 ? 100.0 * n / of : 0
plot for [i = 0 : 2] DATA using (share(column(3 + i), $2)):($0 + (i - 1) * bar):(0):(share(column(3 + i), $2)):\
		($0 + (i - 1) * bar - bar / 2):($0 + (i - 1) * bar + bar / 2) \
		with boxxyerror fillstyle solid noborder linecolor rgb COLOUR[i + 1] \
		title i == 0 ? "8 bytes" : i == 1 ? "a line of 64" : "a page", \
	for [i = 0 : 2] DATA using (share(column(3 + i), $2)):($0 + (i - 1) * bar):\
		(sprintf(" %.1f", share(column(3 + i), $2))) with labels left font small notitle, \
	DATA using (0):0:ytic(1) with dots notitle
unset multiplot
