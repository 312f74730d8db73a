# SPDX-License-Identifier: MIT
#
# Witnesses of noise over measuring time, and the cells that tore.
#
#   gnuplot -d -c witnesses.gp FORMAT OUTPUT DATA PANELS
#
# FORMAT is svg or png. DATA has a row per cell: minutes, steal in percent, involuntary
# switches and interrupts per second, latency and distance in ticks, clock in cycles per
# tick, noisy, tears, longer wait, date. PANELS lists the witnesses that were read.

FORMAT = ARG1; OUTPUT = ARG2; DATA = ARG3; PANELS = ARG4
panels = words(PANELS)
high = 126
height = panels * high + 88
load ARG0[1 : strlen(ARG0) - strlen("witnesses.gp")] . "figure.gp"

ALL = "steal involuntary interrupts latency distance clock"
array TEXT[6] = ["steal (%)", "involuntary switches / s", "interrupts / s", \
	"latency of the INT3 store (ticks)", "distance (ticks)", "clock (cycles / tick)"]
# Tics at round numbers that do not begin below the data, where the marks stand.
round_step(raw) = (m = 10 ** floor(log10(raw)), raw / m < 1.5 ? m : raw / m < 3.5 ? 2 * m \
	: raw / m < 7.5 ? 5 * m : 10 * m)
index_of(name) = sum [k = 1 : 6] (word(ALL, k) eq name ? k : 0)

stats DATA using 1 name "X" nooutput
set xrange [-0.01 * X_max : 1.01 * X_max]
do for [p = 1 : panels] {
	k = index_of(word(PANELS, p))
	unset logscale y
	set yrange [*:*]
	stats DATA using (column(k + 1)) name "Y" nooutput
	logarithmic = Y_min > 0 && Y_max / Y_min > 30
	if (logarithmic) {
		set logscale y
		low = Y_min * 0.5
		room = Y_max * 2
		tip = low * (room / low) ** 0.06
		tall = low * (room / low) ** 0.14
		eval tics_of("y", "1")
	} else {
		first = Y_min >= 0 && Y_min < 0.7 * Y_max || Y_max <= 0 ? 0 : Y_min
		span = Y_max > first ? Y_max - first : (Y_max > 0 ? 0.1 * Y_max : 1)
		step = round_step(span / 3.0)
		set ytics ceil(first / step) * step, step
		low = first - 0.18 * span
		room = Y_max + 0.1 * span
		tip = low + 0.06 * (room - low)
		tall = low + 0.14 * (room - low)
		set format y "%g"
	}
	set yrange [low : room]
	set tmargin at screen from((p - 1) * high + 22.0)
	set bmargin at screen from(p * high - 10.0)
	set title TEXT[k] offset 0,-0.8
	if (p == panels) {
		set xlabel "measuring time (minutes)" offset 0,0.4
		set format x "%g"
	} else {
		unset xlabel
		set format x ""
	}
	plot DATA using ($9 > 0 && $10 < 1000 ? $1 : NaN):(low):(0):(tip - low) \
			with vectors nohead linewidth 1 linecolor rgb 0xf4a582, \
		DATA using ($9 > 0 && $10 >= 1000 ? $1 : NaN):(low):(0):(tall - low) \
			with vectors nohead linewidth 1.5 linecolor rgb 0xb2182b, \
		DATA using ($8 == 0 ? $1 : NaN):(column(k + 1)) \
			with points pointtype 7 pointsize 0.35 linecolor rgb 0x0072b2, \
		DATA using ($8 != 0 ? $1 : NaN):(column(k + 1)) \
			with points pointtype 6 pointsize 0.8 linewidth 1.2 linecolor rgb 0xe69f00
}
set tmargin at screen from(panels * high + 42.0)
set bmargin at screen 4.0 / height
set lmargin at screen 0.02
set key left center Left reverse vertical maxrows 2 samplen 1.5 width -3 noenhanced
unset title; unset xlabel; unset tics; unset grid; unset border; unset logscale
set xrange [0 : 1]; set yrange [0 : 1]
plot NaN with points pointtype 7 pointsize 0.5 linecolor rgb 0x0072b2 title "quiet cell", \
	NaN with points pointtype 6 pointsize 0.9 linecolor rgb 0xe69f00 title "noisy cell", \
	NaN with lines linewidth 1.5 linecolor rgb 0xf4a582 title "tears, wait < 1000", \
	NaN with lines linewidth 2 linecolor rgb 0xb2182b title "tears, wait >= 1000"
unset multiplot
unset output
