/* SPDX-License-Identifier: MIT */
/*
 * A profile of edges as JSON, as a trace for Perfetto, and as a page that draws the JSON.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/profile/command/edges.h"
#include "probes/told/told.h"

static json_t *block_json(const char *name)
{
	size_t len = strcspn(name, "\t"), rest = strcspn(name + len + !!name[len], "\t");

	if (!name[len])
		return json_pack("{s:s}", "block", name);
	return json_pack("{s:s%, s:s%}", "block", name, len, "object", name + len + 1, rest);
}

static json_t *moments_json(const struct edges *profile)
{
	json_t *array = json_array();

	for (size_t i = 0; i < profile->moments; i++) {
		const struct moment *one = &profile->moment[i];

		json_array_append_new(
			array, json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "start", one->start,
					 "length", one->length, "phases", one->phases, "on",
					 one->on, "toggling", one->toggling, "entries", one->runs,
					 "share", one->length > 0 ? one->on / one->length : 0));
	}
	return array;
}

int edges_write_json(const struct edges *profile, FILE *out)
{
	json_t *edges = json_array();
	json_t *root = json_pack("{s:s, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
				 "program", profile->program, "processes", (int)profile->processes,
				 "phases", profile->phases, "seconds", profile->wall,
				 "seconds_in_phases", profile->on, "seconds_toggling",
				 profile->toggling, "blocks", profile->blocks, "blocks_refused",
				 profile->refused, "outside_of_phases", profile->late, "lost",
				 profile->lost, "agreement_of_halves", edges_agreement(profile));

	for (size_t i = 0; i < profile->n; i++) {
		const struct row *row = &profile->row[i];

		json_array_append_new(
			edges, json_pack("{s:o, s:o, s:f, s:f, s:f}", "from", block_json(row->from),
					 "to", block_json(row->to), "count", edges_count(row),
					 "odd", row->half[0], "even", row->half[1]));
	}
	json_object_set_new(root, "edges", edges);
	json_object_set_new(root, "over_time", moments_json(profile));
	return told(out, "edges", root);
}

/* --- Trace events -------------------------------------------------------------------------------
 */

static json_t *slice(const char *name, double start, double length, const struct moment *moment)
{
	return json_pack("{s:s, s:s, s:i, s:i, s:f, s:f, s:{s:f, s:f}}", "name", name, "ph", "X",
			 "pid", 1, "tid", 1, "ts", start * 1e6, "dur", length * 1e6, "args",
			 "entries", moment->runs, "phases", moment->phases);
}

static json_t *counter(const char *name, const char *unit, double time, double value)
{
	return json_pack("{s:s, s:s, s:i, s:f, s:{s:f}}", "name", name, "ph", "C", "pid", 1, "ts",
			 time * 1e6, "args", unit, value);
}

/* Phases are slices, and how fast blocks were run in them is a counter. Microseconds. */
int edges_write_chrome(const struct edges *profile, FILE *out)
{
	json_t *events = json_array();

	json_array_append_new(events,
			      json_pack("{s:s, s:s, s:i, s:{s:s}}", "name", "process_name", "ph",
					"M", "pid", 1, "args", "name", profile->program));
	for (size_t i = 0; i < profile->moments; i++) {
		const struct moment *one = &profile->moment[i];
		double rate = one->on > 0 ? one->runs / one->on : 0;

		json_array_append_new(events, slice(one->phases > 1 ? "phases" : "phase",
						    one->start, one->on + one->toggling, one));
		json_array_append_new(
			events, counter("blocks per second in phases", "blocks", one->start, rate));
		json_array_append_new(events,
				      counter("time in phases, %", "share", one->start,
					      one->length > 0 ? 100 * one->on / one->length : 0));
	}
	return told_line(out,
			 json_pack("{s:s, s:o}", "displayTimeUnit", "ms", "traceEvents", events));
}

/* --- A page -------------------------------------------------------------------------------------
 */

static const char head[] =
	"<!DOCTYPE html>\n<html lang=en><meta charset=utf-8>\n"
	"<meta name=viewport content='width=device-width, initial-scale=1'>\n"
	"<title>fastinst profile --edges</title>\n<style>\n"
	":root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --pale: #59636e; "
	"--line: #d1d9e0; --bar: #2f7d4f }\n"
	"@media (prefers-color-scheme: dark) { :root { --paper: #14171a; --ink: #e6e8ea; "
	"--pale: #9aa4ae; --line: #394047; --bar: #4cab74 } }\n"
	"body { background: var(--paper); color: var(--ink); font: 15px/1.45 system-ui, "
	"sans-serif; margin: 0 auto; max-width: 70rem; padding: 1rem }\n"
	"h1 { font-size: 1.25rem; overflow-wrap: anywhere } h2 { font-size: 1.05rem }\n"
	"dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem } "
	"dt, .pale { color: var(--pale) } dd { margin: 0 }\n"
	"table { border-collapse: collapse; width: 100% } td, th { border-bottom: 1px solid "
	"var(--line); padding: .25rem .4rem; text-align: left; overflow-wrap: anywhere }\n"
	".number { text-align: right; white-space: nowrap } svg { width: 100%; height: 8rem } "
	"rect { fill: var(--bar) }\n"
	"</style>\n<h1></h1>\n<dl></dl>\n<h2>Over time</h2>\n<p class=pale>A bar is a phase, or "
	"several: where it stands is when, its height is how fast blocks were run in it.</p>\n"
	"<svg viewBox='0 0 1000 100' preserveAspectRatio=none></svg>\n<p id=shown class=pale></p>\n"
	"<h2>Edges</h2>\n<table><thead><tr><th>from<th>to<th class=number>count<th "
	"class=number>share</thead><tbody></tbody></table>\n<p id=rest class=pale></p>\n"
	"<script id=profile type=application/json>\n";

static const char tail[] =
	"</script>\n<script>\n'use strict'\n"
	"const p = JSON.parse(document.getElementById('profile').textContent), MOST = 200\n"
	"const at = (query) => document.querySelector(query)\n"
	"const put = (parent, tag, text, name) => { const e = document.createElement(tag)\n"
	"  e.textContent = text ?? ''; if (name) e.className = name; parent.append(e); return e }\n"
	"const whole = (n) => Math.round(n).toLocaleString('en'), ms = (s) => (1e3 * s).toFixed(2) "
	"+ ' ms'\n"
	"const share = (n) => (100 * n).toFixed(2) + ' %'\n"
	"document.title = p.program; at('h1').textContent = 'Edges of ' + p.program\n"
	"for (const [name, value] of [['time', p.seconds.toFixed(2) + ' s'], ['phases', "
	"whole(p.phases)],\n"
	"  ['in phases', ms(p.seconds_in_phases)], ['turning blocks on and off', "
	"ms(p.seconds_toggling)],\n"
	"  ['blocks', whole(p.blocks)], ['refused', whole(p.blocks_refused)], ['lost', "
	"whole(p.lost)],\n"
	"  ['outside of phases', whole(p.outside_of_phases)], ['odd and even phases agree', "
	"share(p.agreement_of_halves)]]) {\n"
	"  put(at('dl'), 'dt', name); put(at('dl'), 'dd', value) }\n"
	"const rate = (m) => m.on > 0 ? m.entries / m.on : 0\n"
	"const most = Math.max(1, ...p.over_time.map(rate)), end = Math.max(1e-9, "
	"...p.over_time.map(m => m.start + m.length))\n"
	"for (const m of p.over_time) { const r = "
	"document.createElementNS('http' + '://www.w3.org/2000/svg', 'rect'), h = 100 * rate(m) / "
	"most\n"
	"  const width = Math.max(2, 1000 * (m.phases > 1 ? m.length : m.on) / end)\n"
	"  for (const [k, v] of Object.entries({ x: 1000 * m.start / end, y: 100 - h, width, "
	"height: "
	"h })) r.setAttribute(k, v)\n"
	"  r.onmouseenter = () => { at('#shown').textContent = `${m.start.toFixed(3)} s: "
	"${whole(m.entries)} blocks in ${ms(m.on)}, ${share(m.share)} of the time until the next` "
	"}\n"
	"  at('svg').append(r) }\n"
	"const all = p.edges.reduce((n, e) => n + e.count, 0)\n"
	"for (const e of p.edges.slice(0, MOST)) { const row = put(at('tbody'), 'tr')\n"
	"  put(row, 'td', e.from.block); put(row, 'td', e.to.block); put(row, 'td', "
	"whole(e.count), "
	"'number'); put(row, 'td', share(e.count / all), 'number') }\n"
	"if (p.edges.length > MOST) at('#rest').textContent = `${whole(p.edges.length - MOST)} "
	"more: the JSON has them.`\n"
	"</script>\n";

/* A name may hold what ends a script. */
static void put_safely(const char *json, FILE *out)
{
	for (; *json; json++) {
		if (*json == '<')
			fputs("\\u003c", out);
		else
			fputc(*json, out);
	}
}

int edges_write_page(const struct edges *profile, FILE *out)
{
	char *json = NULL;
	size_t len;
	FILE *memory = open_memstream(&json, &len);
	int ret = memory ? edges_write_json(profile, memory) : -ENOMEM;

	if (memory)
		fclose(memory);
	if (!ret) {
		fputs(head, out);
		put_safely(json, out);
		fputs(tail, out);
	}
	free(json);
	return ret;
}
