// SPDX-License-Identifier: MIT
//! The wait of tmax for liteinst2, compiled in, and for reverie-liteinst, from the environment:
//!
//!     tmax export --for liteinst2 --accept 1e-4 --output budget.rs
//!     rustc --edition 2021 staleness.rs --extern liteinst2 && env $(tmax export --for reverie --accept 1e-4 | grep -v '^#') ./staleness
#[allow(dead_code)]
mod budget;
use std::arch::x86_64::__cpuid;

const TICKS_ENV: &str = "REVERIE_LITEINST_STRADDLER_STALENESS_TICKS";

/// The budget is of one machine: on another one there is none.
fn staleness() -> Option<liteinst2::patcher::StalenessBudget> {
    #[allow(unused_unsafe)] // it was unsafe before Rust 1.94
    let signature = u64::from(unsafe { __cpuid(1) }.eax);
    let family = (signature >> 8 & 15) + (signature >> 20 & 255);
    let model = (signature >> 4 & 15) | (signature >> 12 & 240);
    if (family, model, signature & 15) == (budget::FAMILY, budget::MODEL, budget::STEPPING) {
        budget::STALENESS
    } else {
        None
    }
}

fn main() {
    let Some(compiled) = staleness() else {
        println!("no budget: this is not {} family {} model {}", budget::VENDOR, budget::FAMILY, budget::MODEL);
        std::process::exit(3);
    };
    println!("liteinst2 waits {} ticks, at most {:e} tears per change", compiled.cycles(), budget::TEARS_PER_CHANGE);
    match std::env::var(TICKS_ENV).map(|text| text.trim().parse::<u64>()) {
        Ok(Ok(ticks)) if ticks > 0 => println!("reverie-liteinst waits {ticks} ticks"),
        _ => println!("reverie-liteinst has no budget, and takes its slow way"),
    }
}
