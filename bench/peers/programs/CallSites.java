// SPDX-License-Identifier: MIT
//
// Call sites of java.lang.invoke, a VolatileCallSite and a MutableCallSite, changed by setTarget()
// while another thread runs through them. Spoken to by lines, see bench/peers/outside.h, that
// begin with the kind of site; times are nanoseconds of System.nanoTime(). Requests beside those:
//
//	KIND warm			make ready for all that follows; answers the cost of the
//					clock, and of a call
//	KIND still			make ready for toggle ... still alone: no executor ever runs
//	KIND toggle PAIRS MODE REST	still: the executor sleeps; hot: it runs, REST nanoseconds
//					between changes; compiled: until its code is so again
//
// A site is a static final, and run through dynamicInvoker(): to HotSpot a constant, so it
// compiles the call as that of an invokedynamic instruction, with what it inlines there.
// A mutable site is changed by setTarget() and syncAll(): without the second, its documentation
// promises no other thread that it will ever see the change. A volatile site needs no more.

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.invoke.CallSite;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.MutableCallSite;
import java.lang.invoke.VarHandle;
import java.lang.invoke.VolatileCallSite;
import java.lang.reflect.Constructor;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;

public final class CallSites {
	private static final String[] KINDS = { "volatile", "mutable" };

	private CallSites() {
	}

	// A class of its own per kind: two loaders.
	@SuppressWarnings("unchecked")
	private static Function<String[], double[]> load(String kind)
		throws ReflectiveOperationException {
		URL[] here = { CallSites.class.getProtectionDomain().getCodeSource().getLocation() };
		ClassLoader loader =
			new URLClassLoader(here, ClassLoader.getPlatformClassLoader());

		System.setProperty(Site.KIND, kind);
		Constructor<?> make =
			Class.forName("Site", true, loader).getDeclaredConstructor();
		make.setAccessible(true);
		return (Function<String[], double[]>) make.newInstance();
	}

	private static void answer(PrintStream out, double[] numbers) {
		StringBuilder text = new StringBuilder();

		for (double number : numbers) {
			// Never an exponent, at any size.
			text.append(new java.math.BigDecimal(Math.max(number, 0))
				.setScale(6, java.math.RoundingMode.HALF_UP).toPlainString());
			text.append('\n');
		}
		out.print(text.append(".\n"));
		out.flush();
	}

	private static void refuse(PrintStream out, String reason) {
		out.print("error " + reason + "\n");
		out.flush();
	}

	private static void serve(Function<String[], double[]> site, String[] word, PrintStream out) {
		if (site == null || word.length < 2) {
			refuse(out, "no such request");
			return;
		}
		try {
			answer(out, site.apply(Arrays.copyOfRange(word, 1, word.length)));
		} catch (RuntimeException e) {
			refuse(out, String.valueOf(e.getMessage()));
		}
	}

	private static void patch() {
		PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
		BufferedReader in = new BufferedReader(
			new InputStreamReader(System.in, StandardCharsets.US_ASCII));
		Map<String, Function<String[], double[]>> sites = new HashMap<>();

		try {
			for (String kind : KINDS) {
				sites.put(kind, load(kind));
			}
			answer(out, new double[0]);
			for (String line = in.readLine(); line != null; line = in.readLine()) {
				String[] word = line.split(" ");

				if (word[0].equals("quit")) {
					break;
				}
				serve(sites.get(word[0]), word, out);
			}
		} catch (IOException e) {
			System.exit(1);
		} catch (Throwable e) {
			e.printStackTrace();
			System.exit(1);
		}
		System.exit(0);
	}

	public static void main(String[] args) {
		new Thread(CallSites::patch, "tmax-patcher").start();
	}
}

// One kind of site. Loaded once for each, so that in either the site is a constant.
final class Site implements Function<String[], double[]> {
	static final String KIND = "tmax.site";		// property: which, when this is loaded
	private static final boolean MUTABLE = "mutable".equals(System.getProperty(KIND));
	private static final MethodType NOTHING = MethodType.methodType(void.class);
	private static final MethodHandle FIRST = target("first");
	private static final MethodHandle SECOND = target("second");
	private static final MethodHandle EMPTY = target("empty");
	private static final MethodHandle OFF = MethodHandles.empty(NOTHING);

	private static final CallSite SITE = site(FIRST);
	// What the patcher changes it by: no constant to the compiler. Else the patcher's code would have
	// the present target in it, for setTarget() to compare types, and each change threw it away.
	private static CallSite patched = SITE;
	private static final CallSite SITE_OFF = site(EMPTY);
	private static final CallSite SITE_ON = site(OFF);
	private static final MethodHandle CALL = SITE.dynamicInvoker();
	private static final MethodHandle CALL_OFF = SITE_OFF.dynamicInvoker();
	private static final MethodHandle CALL_ON = SITE_ON.dynamicInvoker();
	// To synchronise with, or none.
	private static final MutableCallSite[] SYNC =
		MUTABLE ? new MutableCallSite[] { (MutableCallSite) SITE } : null;

	// All that both threads use, lines apart, so that only the site itself is fought for.
	private static final VarHandle LONGS = MethodHandles.arrayElementVarHandle(long[].class);
	private static final long[] SHARED = new long[256];
	private static final int RUN = 32;	// patcher: 1 run, 0 sleep
	private static final int ROUNDS = 64;	// executor, after each round: begun, calls, calls
	private static final int ENDED = 68;	// and rounds again
	private static final int OWN = 96;	// executor's own counters
	private static final int OWN_SINK = 98;	// where its loop leaves a trace
	private static final int SINK = 128;	// and where the patcher's do

	private static final int ROUND = 200;	// calls between two looks at RUN
	private static final int REST = 1000;	// nanoseconds between two changes, unless told
	private static final int SETTLE_ROUNDS = 20;
	private static final long SETTLE_NAP = 200_000;
	private static final long SETTLE_MOST = 20_000_000;	// nanoseconds, if it never is
	private static final int COMPILED = 25;	// nanoseconds a call, at most; an interpreter takes more
	private static final int WARM_CHANGES = 9_000;
	private static final int WARM_STILL = 10_000;	// pairs
	private static final int WARM_HOT = 200;
	private static final long WARM_COST = 200_000;
	private static final long WARM_MOST = 10_000_000_000L;
	private static final long SLICE = 100_000_000;
	private static final int COST_CHUNK = 1000;
	private static final String FASTEST = "max";

	private static final Semaphore go = new Semaphore(0);
	private static final Semaphore slept = new Semaphore(0);
	private static long settled;		// nanoseconds of SETTLE_ROUNDS when all is compiled

	private enum Mode { STILL, HOT, COMPILED }

	// So that all classes are loaded with this one: their files do not stay.
	private static final Mode[] MODES = Mode.values();

	private static MethodHandle target(String name) {
		try {
			return MethodHandles.lookup().findStatic(Site.class, name, NOTHING);
		} catch (ReflectiveOperationException e) {
			throw new IllegalStateException(e);
		}
	}

	private static CallSite site(MethodHandle target) {
		return MUTABLE ? new MutableCallSite(target) : new VolatileCallSite(target);
	}

	// --- Targets ------------------------------------------------------------------------

	// A load and a store per call: calls that are only added up would be so by the compiler.
	private static void increment(int which) {
		LONGS.setOpaque(SHARED, which, (long) LONGS.getOpaque(SHARED, which) + 1);
	}

	private static void first() {
		increment(OWN);
	}

	private static void second() {
		increment(OWN + 1);
	}

	private static void empty() {
	}

	// --- The executor -------------------------------------------------------------------

	private static long get(int which) {
		return (long) LONGS.getAcquire(SHARED, which);
	}

	private static void put(int which, long value) {
		LONGS.setRelease(SHARED, which, value);
	}

	// Each pass leaves a trace, or of a loop with nothing to call nothing would be left.
	private static void round() throws Throwable {
		for (int i = 0; i < ROUND; i++) {
			LONGS.setOpaque(SHARED, OWN_SINK, (long) i);
			CALL.invokeExact();
		}
	}

	private static void publish(long rounds) {
		put(ROUNDS, rounds);
		VarHandle.storeStoreFence();
		put(ROUNDS + 1, SHARED[OWN]);
		put(ROUNDS + 2, SHARED[OWN + 1]);
		put(ENDED, rounds);
	}

	private static void execute() {
		long rounds = 0;

		try {
			for (;;) {
				go.acquire();
				while (get(RUN) != 0) {
					round();
					publish(++rounds);
				}
				slept.release();
			}
		} catch (Throwable e) {
			e.printStackTrace();
			System.exit(1);
		}
	}

	// Rounds, and calls of either target, as of one moment.
	private static void count(long[] counts) {
		do {
			counts[0] = get(ENDED);
			counts[1] = get(ROUNDS + 1);
			counts[2] = get(ROUNDS + 2);
			VarHandle.loadLoadFence();
		} while (get(ROUNDS) != counts[0]);
	}

	// The name is how it is found to be pinned, as the patcher is.
	Site() {
		Thread executor = new Thread(Site::execute, "tmax-executor");

		executor.setDaemon(true);
		executor.start();
	}

	// --- The patcher --------------------------------------------------------------------

	private static void awaitRounds(long more) {
		long until = get(ENDED) + more;

		while (get(ENDED) < until) {
			Thread.onSpinWait();
		}
	}

	private static void start() {
		put(RUN, 1);
		go.release();
		awaitRounds(2);
	}

	private static void stop() throws InterruptedException {
		put(RUN, 0);
		slept.acquire();
	}

	private static void change(MethodHandle target) {
		patched.setTarget(target);
		if (MUTABLE) {
			MutableCallSite.syncAll(SYNC);
		}
	}

	private static long timedChange(MethodHandle target) {
		long before = System.nanoTime();

		change(target);
		return System.nanoTime() - before;
	}

	private static long timedRounds() {
		long before = System.nanoTime();

		awaitRounds(SETTLE_ROUNDS);
		return System.nanoTime() - before;
	}

	// Code that a target is inlined in is thrown away by a change. The compiler may need this CPU
	// to compile it again.
	private static void awaitCompiled() {
		long most = System.nanoTime() + SETTLE_MOST;

		while (timedRounds() > 2 * settled && System.nanoTime() < most) {
			LockSupport.parkNanos(SETTLE_NAP);
		}
	}

	// Between two changes. An executor that runs has begun and ended a round by the end.
	private static void rest(Mode mode, long ns) {
		long until = System.nanoTime() + ns, rounds = get(ENDED) + 2;

		while (System.nanoTime() < until) {
		}
		if (mode == Mode.STILL) {
			return;
		}
		while (get(ENDED) < rounds) {
			Thread.onSpinWait();
		}
		if (mode == Mode.COMPILED) {
			awaitCompiled();
		}
	}

	// --- What is asked for --------------------------------------------------------------

	private static double[] toggle(int pairs, Mode mode, long ns) throws InterruptedException {
		double[] times = new double[2 * pairs];

		if (mode != Mode.STILL) {
			start();
		}
		for (int i = 0; i < pairs; i++) {
			rest(mode, ns);
			times[2 * i] = timedChange(FIRST);
			rest(mode, ns);
			times[2 * i + 1] = timedChange(OFF);
		}
		if (mode != Mode.STILL) {
			stop();
		}
		return times;
	}

	private static final long NAP = 200_000, NAP_ENDS_BEFORE = 100_000;

	// With time to spare the patcher leaves its CPU to the compilers, which may have no other.
	private static void nap(long ns) {
		if (ns > NAP) {
			LockSupport.parkNanos(ns - NAP_ENDS_BEFORE);
		}
	}

	// Changes at their due times until the end. One that is late puts off the next: to catch up
	// would give the two targets unlike shares of the time.
	private static long keepRate(double rate, long begin, long end, MethodHandle other) {
		double step = rate > 0 ? 1e9 / rate : Double.POSITIVE_INFINITY, due = step;
		long changes = 0, now = begin;

		while (now < end) {
			now = System.nanoTime();
			if (now - begin >= due && rate > 0) {
				change((changes & 1) == 0 ? other : FIRST);
				changes++;
				due = Math.max(due + step, now - begin);
			}
			nap(begin + (long) Math.min(due, end - begin) - System.nanoTime());
		}
		return changes;
	}

	private static double[] flow(double rate, long ns, boolean onOff)
		throws InterruptedException {
		long[] before = new long[3], after = new long[3];
		long begin, end, changes;

		change(FIRST);
		start();
		rest(Mode.COMPILED, REST);
		count(before);
		begin = System.nanoTime();
		changes = keepRate(rate, begin, begin + ns, onOff ? OFF : SECOND);
		count(after);
		end = System.nanoTime();
		stop();
		change(FIRST);
		double calls = (after[0] - before[0]) * ROUND, first = after[1] - before[1];
		double second = onOff ? calls - first : after[2] - before[2];
		return new double[] { end - begin, changes, first, second };
	}

	private static void passes() {
		for (int i = 0; i < COST_CHUNK; i++) {
			LONGS.setOpaque(SHARED, SINK, (long) i);
		}
	}

	private static void passesOff() throws Throwable {
		for (int i = 0; i < COST_CHUNK; i++) {
			LONGS.setOpaque(SHARED, SINK, (long) i);
			CALL_OFF.invokeExact();
		}
	}

	private static void passesOn() throws Throwable {
		for (int i = 0; i < COST_CHUNK; i++) {
			LONGS.setOpaque(SHARED, SINK, (long) i);
			CALL_ON.invokeExact();
		}
	}

	private static double[] cost(long calls) throws Throwable {
		long chunks = Math.max(calls / COST_CHUNK, 1), t0, t1, t2;
		double all = (double) chunks * COST_CHUNK;

		t0 = System.nanoTime();
		for (long i = 0; i < chunks; i++) {
			passes();
		}
		t1 = System.nanoTime();
		for (long i = 0; i < chunks; i++) {
			passesOff();
		}
		t2 = System.nanoTime();
		for (long i = 0; i < chunks; i++) {
			passesOn();
		}
		return new double[] { (t1 - t0) / all, (t2 - t1) / all,
			(System.nanoTime() - t2) / all };
	}

	// --- Warming up ---------------------------------------------------------------------

	// Enough to have them compiled. What a change costs depends on what went before: see
	// docs/peers.md.
	private static void warmChanges() throws InterruptedException {
		for (int i = 0; i < WARM_CHANGES / 3; i++) {
			timedChange(SECOND);
			timedChange(OFF);
			timedChange(FIRST);
		}
		start();
		for (int i = 0; i < 100; i++) {
			timedChange((i & 1) == 0 ? OFF : FIRST);
			rest(Mode.STILL, REST);
		}
		stop();
	}

	// Until the executor is as fast as it gets: three slices within a twentieth, of compiled code.
	private static void warmExecutor(long until) throws InterruptedException {
		long best = Long.MAX_VALUE, same = 0;

		start();
		while ((same < 3 || best > COMPILED * SETTLE_ROUNDS * ROUND) &&
			System.nanoTime() < until) {
			long end = System.nanoTime() + SLICE, least = Long.MAX_VALUE;

			while (System.nanoTime() < end) {
				least = Math.min(least, timedRounds());
			}
			same = least > best - best / 20 ? same + 1 : 0;
			best = Math.min(best, least);
		}
		settled = best;
		stop();
		if (best > COMPILED * SETTLE_ROUNDS * ROUND) {
			throw new IllegalStateException("the loop was not compiled in time");
		}
	}

	// As much as is compiled of changing a site that no thread runs.
	private static double[] warmStill() throws InterruptedException {
		toggle(WARM_STILL, Mode.STILL, REST);
		return new double[] { clockCost(), 0 };
	}

	private static double clockCost() {
		long begin = System.nanoTime(), now = begin;

		for (int i = 0; i < WARM_CHANGES; i++) {
			now = System.nanoTime();
		}
		return (now - begin) / (double) WARM_CHANGES;
	}

	// What it answers: the cost of reading the clock, and of one call.
	private static double[] warm() throws Throwable {
		long until = System.nanoTime() + WARM_MOST;

		// Sites that have been changed, as a site is that is on or off.
		SITE_OFF.setTarget(OFF);
		SITE_ON.setTarget(EMPTY);
		warmChanges();
		for (int i = 0; i < 20; i++) {
			flow(1e4, 5_000_000, (i & 1) == 0);
			cost(WARM_COST);
			clockCost();
		}
		change(FIRST);
		warmExecutor(until);
		toggle(20, Mode.COMPILED, REST);
		toggle(WARM_HOT, Mode.HOT, REST);
		return new double[] { clockCost(), settled / (double) (SETTLE_ROUNDS * ROUND) };
	}

	// --- Requests -----------------------------------------------------------------------

	private static double rate(String word) {
		return word.equals(FASTEST) ? Double.POSITIVE_INFINITY : Double.parseDouble(word);
	}

	private static Mode mode(String word) {
		for (Mode mode : MODES) {
			if (mode.name().equalsIgnoreCase(word)) {
				return mode;
			}
		}
		throw new IllegalArgumentException("no such mode");
	}

	private static double[] serve(String[] word) throws Throwable {
		switch (word[0]) {
		case "warm":
			return warm();
		case "still":
			return warmStill();
		case "toggle":
			return toggle(Integer.parseInt(word[1]), mode(word[2]),
				Long.parseLong(word[3]));
		case "flow":
			return flow(rate(word[1]), Long.parseLong(word[2]) * 1_000_000,
				word[3].equals("1"));
		case "cost":
			return cost(Long.parseLong(word[1]));
		default:
			throw new IllegalArgumentException("no such request");
		}
	}

	@Override
	public double[] apply(String[] word) {
		try {
			return serve(word);
		} catch (RuntimeException e) {
			throw e;
		} catch (Throwable e) {
			throw new IllegalStateException(e.toString());
		}
	}
}
