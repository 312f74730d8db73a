// SPDX-License-Identifier: MIT
//! The ladder of this machine as staleness budgets: how long a patching library that is written in Rust has to
//! wait between its stores for a bound on tears that its caller names. Without a budget it takes its slow way.
//!
//!     rustc budget.rs -L native=$(pkg-config --variable=libdir patchcore) && ./budget
mod patchcore;
use patchcore::*;

/// What such a library asks its caller for. Each wait is also at least `stretch` times what the slowest store of the
/// change took to become visible so far. It holds for this machine and for the CPUs that were calibrated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StalenessBudget {
    pub first_ticks: u64,
    pub second_ticks: u64,
    pub stretch: u64,
    pub tears_per_change: f64,
    pub runs: u64,
    /// Or on other machines of this kind.
    pub counted_here: bool,
}

fn status() -> Result<pc_status, i32> {
    let mut status = std::mem::MaybeUninit::<pc_status>::zeroed();
    match unsafe { pc_get_status(status.as_mut_ptr()) } {
        // Zeros are a status, and the library has filled it.
        0 => Ok(unsafe { status.assume_init() }),
        error => Err(error),
    }
}

/// The budget of the cheapest level that keeps tears below `p` a change, across pages too; None: there is none, and
/// the slow way (a membarrier) is to be taken.
pub fn budget(p: f64) -> Result<Option<StalenessBudget>, i32> {
    let ret = unsafe { pc_set_accept_p(p) };
    if ret < 0 {
        return Err(ret);
    }
    let s = status()?;
    if s.in_use != PC_POLICY_WAIT || s.upper_p > p {
        return Ok(None);
    }
    Ok(Some(StalenessBudget {
        first_ticks: s.first_wait,
        second_ticks: s.second_wait,
        stretch: s.stretch,
        tears_per_change: s.upper_p,
        runs: s.runs,
        counted_here: s.fleet == 0,
    }))
}

fn run() -> Result<(), i32> {
    let ret = unsafe { pc_init() };
    if ret < 0 {
        return Err(ret);
    }
    for decade in 3..=9 {
        match budget(10f64.powi(-decade))? {
            Some(b) => println!("below 1e-{decade}: {b:?}"),
            None => println!("below 1e-{decade}: no budget, membarrier"),
        }
    }
    match unsafe { pc_fini() } {
        0 => Ok(()),
        error => Err(error),
    }
}

fn main() {
    if let Err(error) = run() {
        eprintln!("patchcore: {}", std::io::Error::from_raw_os_error(-error));
        std::process::exit(1);
    }
}
