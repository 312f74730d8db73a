-- SPDX-License-Identifier: MIT
-- The evidence of many machines, as "tmax merge" writes it: version 4 (PRAGMA user_version).
-- Times are seconds since 1970; ticks are of the TSC.

-- What is judged together: a microarchitecture, its microcode, what it runs under, its shape.
CREATE TABLE kind (
  id INTEGER PRIMARY KEY,
  vendor TEXT NOT NULL, family INTEGER NOT NULL, model INTEGER NOT NULL, stepping INTEGER NOT NULL,
  microcode TEXT NOT NULL,
  hypervisor TEXT NOT NULL, -- "none" on bare metal
  sockets INTEGER NOT NULL, cores INTEGER NOT NULL, cpus INTEGER NOT NULL,
  brand TEXT NOT NULL,      -- shown, never compared
  UNIQUE (vendor, family, model, stepping, microcode, hypervisor, sockets, cores, cpus)
) STRICT;

CREATE TABLE machine (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

-- One calibration, verification or stress run.
CREATE TABLE run (
  id INTEGER PRIMARY KEY,
  print TEXT NOT NULL UNIQUE, -- of its first cell, or of its contents: the same run, or its journal, comes in once
  machine INTEGER NOT NULL REFERENCES machine,
  kind INTEGER NOT NULL REFERENCES kind,
  time INTEGER NOT NULL,      -- when it ended
  up INTEGER NOT NULL,        -- seconds since its boot; -1: unknown
  boot TEXT NOT NULL,
  kernel TEXT NOT NULL,
  source TEXT NOT NULL,       -- "quick", "default", "verify", ..., "journal"
  cpus TEXT NOT NULL,         -- that it was allowed to use
  dropped INTEGER NOT NULL DEFAULT 0, -- 1: its store began an epoch behind it, by the user or by its counts
  tsc_khz INTEGER NOT NULL DEFAULT 0 -- ticks of a millisecond; 0: unknown
) STRICT;
CREATE INDEX run_of_kind ON run (kind, machine, time);
CREATE INDEX run_of_boot ON run (boot);

-- What a run has counted for one rung, crossing and placement.
CREATE TABLE sum (
  run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  what TEXT NOT NULL,         -- "wait", "alone", "rested", "rested-alone", "membarrier", "store", "gap"
  first INTEGER NOT NULL, second INTEGER NOT NULL, stretch INTEGER NOT NULL,
  crossing TEXT NOT NULL, placement TEXT NOT NULL, executors INTEGER NOT NULL,
  slices INTEGER NOT NULL, toggles INTEGER NOT NULL, tears INTEGER NOT NULL,
  unevenness REAL NOT NULL, squares REAL NOT NULL, ticks REAL NOT NULL,
  worst_tears INTEGER NOT NULL, worst_toggles INTEGER NOT NULL,
  PRIMARY KEY (run, what, first, second, stretch, crossing, placement, executors)
) STRICT, WITHOUT ROWID;

-- What the steps of a protocol did in a run of tmax protocols, at the sites where its file claims that they hold.
CREATE TABLE protocol (
  run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  name TEXT NOT NULL,         -- of its file
  changes INTEGER NOT NULL, tears INTEGER NOT NULL, -- that could tear; that did
  died INTEGER NOT NULL,      -- sites where executors died
  PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;

-- Lines that were no evidence, each once.
CREATE TABLE aside (
  print TEXT PRIMARY KEY,
  file TEXT NOT NULL,
  line INTEGER NOT NULL,      -- from 1
  reason TEXT NOT NULL
) STRICT;
