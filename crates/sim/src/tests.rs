mod custom;
mod quiet;
mod two_schedulers;

use std::thread;

use parking_lot::Mutex;

use super::*;

/// Seeds that once broke a rule.
const FOUND: &[u64] = &[0x51ea, 0x5259, 0x7777_0014];

/// The seeds of one run: as many as `CORTEN_SIM_SEEDS` says, always the same ones. Each takes seconds, most of them to compare
/// views with states; `cargo xtask sim` looks at more.
fn seeds() -> impl Iterator<Item = u64> {
    let n = std::env::var("CORTEN_SIM_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(10);
    FOUND.iter().copied().chain((0..n).map(|it: u64| 0x5eed_0000 + it))
}

#[test]
fn no_seed_breaks_a_rule() {
    let seeds = Mutex::new(seeds());
    let (failures, n_evictions) = (Mutex::new(Vec::new()), Mutex::new(0));
    let n_threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..n_threads {
            scope.spawn(|| {
                while failures.lock().len() < 3 {
                    let Some(seed) = seeds.lock().next() else { break };
                    match run(seed) {
                        Ok(report) => *n_evictions.lock() += report.evictions,
                        Err(failure) => failures.lock().push(failure.to_string()),
                    }
                }
            });
        }
    });
    let failures = failures.into_inner();
    assert!(failures.is_empty(), "\n{}", failures.join("\n\n"));
    assert!(n_evictions.into_inner() > 0, "nobody fought for room");
}

#[test]
fn one_seed_is_one_history() {
    let (first, second, other) = (run(7), run(7), run(8));
    assert_eq!(first.as_ref().ok(), second.as_ref().ok());
    let hash = |it: Result<Report, Box<Failure>>| it.expect("it converges").trace_hash;
    assert_ne!(hash(first), hash(other));
}
