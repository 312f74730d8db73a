// SPDX-License-Identifier: MIT
//
// A VolatileCallSite, changed by setTarget() while another thread runs through it, or none: see
// bench/peers/peer.h; times are nanoseconds of System.nanoTime(). It answers "toggle PAIRS HOT"
// alone, and of that what it is warm for.
//
//	java CallSites PATCHER EXECUTOR HOT	the CPUs of the two threads; HOT 0: no executor ever
//						runs, so nothing is ever compiled with the site
//
// The site is a static final, and run through dynamicInvoker(): to HotSpot a constant, so it
// compiles the call as that of an invokedynamic instruction, with what it inlines there.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.invoke.CallSite;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.VarHandle;
import java.lang.invoke.VolatileCallSite;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Semaphore;

public final class CallSites {
	private static final MethodType NOTHING = MethodType.methodType(void.class);
	private static final MethodHandle ON = target();
	private static final MethodHandle OFF = MethodHandles.empty(NOTHING);
	private static final CallSite SITE = new VolatileCallSite(ON);
	// What the patcher changes it by: no constant to the compiler. Else the patcher's code would have
	// the present target in it, for setTarget() to compare types, and each change threw it away.
	private static CallSite patched = SITE;
	private static final MethodHandle CALL = SITE.dynamicInvoker();

	// All that both threads use, lines apart, so that only the site itself is fought for.
	private static final VarHandle LONGS = MethodHandles.arrayElementVarHandle(long[].class);
	private static final long[] SHARED = new long[128];
	private static final int RUN = 32, ENDED = 64, CALLS = 96, SINK = 98;

	private static final int ROUND = 200;	// calls between two looks at RUN
	private static final int REST = 770;	// nanoseconds: some 2000 ticks, as in lines.h
	private static final int WARM_PAIRS = 10_000, WARM_HOT = 200;
	private static final int SETTLE_ROUNDS = 20;
	private static final int COMPILED = 25;	// nanoseconds a call, at most; an interpreter takes more
	private static final long WARM_MOST = 10_000_000_000L, SLICE = 100_000_000;

	private static final Semaphore go = new Semaphore(0), slept = new Semaphore(0);

	private static MethodHandle target() {
		try {
			return MethodHandles.lookup().findStatic(CallSites.class, "called", NOTHING);
		} catch (ReflectiveOperationException e) {
			throw new IllegalStateException(e);
		}
	}

	// A load and a store per call: calls that are only added up would be so by the compiler.
	private static void called() {
		LONGS.setOpaque(SHARED, CALLS, (long) LONGS.getOpaque(SHARED, CALLS) + 1);
	}

	// Java has no word for it: the calling thread.
	private static void pin(String cpu) throws Exception {
		Path thread = Files.readSymbolicLink(Path.of("/proc/thread-self"));

		if (new ProcessBuilder("taskset", "-pc", cpu, thread.getFileName().toString())
			.redirectOutput(ProcessBuilder.Redirect.DISCARD).start().waitFor() != 0) {
			throw new IllegalStateException("cannot pin a thread");
		}
	}

	// --- The executor -------------------------------------------------------------------

	private static long get(int which) {
		return (long) LONGS.getAcquire(SHARED, which);
	}

	// Each pass leaves a trace, or of a loop with nothing to call nothing would be left.
	private static void round() throws Throwable {
		for (int i = 0; i < ROUND; i++) {
			LONGS.setOpaque(SHARED, SINK, (long) i);
			CALL.invokeExact();
		}
	}

	private static void execute(String cpu) {
		try {
			pin(cpu);
			for (;;) {
				go.acquire();
				while (get(RUN) != 0) {
					round();
					LONGS.setRelease(SHARED, ENDED, get(ENDED) + 1);
				}
				slept.release();
			}
		} catch (Throwable e) {
			e.printStackTrace();
			System.exit(1);
		}
	}

	private static void awaitRounds(long more) {
		long until = get(ENDED) + more;

		while (get(ENDED) < until) {
			Thread.onSpinWait();
		}
	}

	private static void start() {
		LONGS.setRelease(SHARED, RUN, 1L);
		go.release();
		awaitRounds(2);
	}

	private static void stop() throws InterruptedException {
		LONGS.setRelease(SHARED, RUN, 0L);
		slept.acquire();
	}

	// --- The patcher --------------------------------------------------------------------

	private static long timedChange(MethodHandle target) {
		long before = System.nanoTime();

		patched.setTarget(target);
		return System.nanoTime() - before;
	}

	// An executor that runs has begun and ended a round by the end.
	private static void rest(boolean hot) {
		long until = System.nanoTime() + REST, rounds = get(ENDED) + 2;

		while (System.nanoTime() < until || (hot && get(ENDED) < rounds)) {
		}
	}

	private static long[] toggle(int pairs, boolean hot) throws InterruptedException {
		long[] times = new long[2 * pairs];

		if (hot) {
			start();
		}
		for (int i = 0; i < pairs; i++) {
			rest(hot);
			times[2 * i] = timedChange(ON);
			rest(hot);
			times[2 * i + 1] = timedChange(OFF);
		}
		if (hot) {
			stop();
		}
		return times;
	}

	// Until the executor is as fast as it gets: three slices within a twentieth, of compiled code.
	private static void warmExecutor() throws InterruptedException {
		long best = Long.MAX_VALUE, same = 0, until = System.nanoTime() + WARM_MOST;
		long most = (long) COMPILED * SETTLE_ROUNDS * ROUND;

		start();
		while ((same < 3 || best > most) && System.nanoTime() < until) {
			long end = System.nanoTime() + SLICE, least = Long.MAX_VALUE;

			for (long now = System.nanoTime(), begin = now; now < end; begin = now) {
				awaitRounds(SETTLE_ROUNDS);
				now = System.nanoTime();
				least = Math.min(least, now - begin);
			}
			same = least > best - best / 20 ? same + 1 : 0;
			best = Math.min(best, least);
		}
		stop();
		if (best > most) {
			throw new IllegalStateException("the loop was not compiled in time");
		}
	}

	private static void answer(long[] times) {
		StringBuilder text = new StringBuilder();

		for (long time : times) {
			text.append(Math.max(time, 0)).append('\n');
		}
		System.out.print(text.append(".\n"));
		System.out.flush();
	}

	public static void main(String[] args) throws Exception {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		boolean hot = args[2].equals("1");
		Thread executor = new Thread(() -> execute(args[1]));

		pin(args[0]);
		executor.setDaemon(true);
		executor.start();
		toggle(WARM_PAIRS, false);
		if (hot) {
			patched.setTarget(ON);
			warmExecutor();
			toggle(WARM_HOT, true);
		}
		answer(new long[0]);
		for (String line = in.readLine(); line != null; line = in.readLine()) {
			String[] word = line.split(" ");

			if (word.length == 3 && word[0].equals("toggle") && word[2].equals(args[2])) {
				answer(toggle(Integer.parseInt(word[1]), hot));
			} else {
				System.out.print("error no such request\n");
				System.out.flush();
			}
		}
	}
}
