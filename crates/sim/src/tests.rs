mod custom;
mod quiet;
mod two_schedulers;

use std::thread;

use parking_lot::Mutex;

use super::*;

/// Seeds that once broke a rule, with one control plane.
const FOUND: &[u64] = &[0x51ea, 0x5259, 0x7777_0014];

/// Seeds in which Pods are evicted for others.
const FIGHTS: &[u64] = &[0x1006, 0x1007];

/// The seeds of one run: as many as `CORTEN_SIM_SEEDS` says, always the same ones. Each takes seconds, most of them to compare
/// views with states; `cargo xtask sim` looks at more.
fn seeds() -> impl Iterator<Item = u64> {
    let told = std::env::var("CORTEN_SIM_SEEDS").ok();
    let n = told.map_or(10, |it| it.parse().expect("CORTEN_SIM_SEEDS is a number"));
    FIGHTS.iter().copied().chain((0..n).map(|it: u64| 0x5eed_0000 + it))
}

/// Plays these seeds with so many control planes, side by side.
fn play_all(histories: impl Iterator<Item = (u64, usize)> + Send) -> Vec<Report> {
    let histories = Mutex::new(histories);
    let (failures, reports) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let n_threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..n_threads {
            scope.spawn(|| {
                while failures.lock().len() < 3 {
                    let Some((seed, n_planes)) = histories.lock().next() else { break };
                    match run_of(seed, n_planes) {
                        Ok(report) => reports.lock().push(report),
                        Err(failure) => failures.lock().push(failure.to_string()),
                    }
                }
            });
        }
    });
    let failures = failures.into_inner();
    assert!(failures.is_empty(), "\n{}", failures.join("\n\n"));
    reports.into_inner()
}

#[test]
fn no_seed_breaks_a_rule() {
    let found = FOUND.iter().map(|it| (*it, 1));
    let reports = play_all(found.chain(seeds().map(|it| (it, planes_of(it)))));
    assert!(reports.iter().any(|it| it.evictions > 0), "nobody fought for room");
    let several: Vec<&Report> = reports.iter().filter(|it| it.elections > 0).collect();
    let (all, n) = (|of: fn(&Report) -> u64| several.iter().map(|it| of(it)).sum::<u64>(), several.len() as u64);
    // Each of both leases is taken once in any of these histories.
    assert!(n > 0 && all(|it| it.elections) >= 4 * n, "leadership stays where it is: {several:?}");
    assert!(all(|it| it.fenced) > 50 * n, "leaders do not write: {several:?}");
    for (what, of) in INTERRUPTIONS {
        assert!(all(*of) > 0, "never: {what}: {several:?}");
    }
}

/// What must have happened in some history, by its name.
type Happening = (&'static str, fn(&Report) -> u64);

const INTERRUPTIONS: &[Happening] = &[
    ("links were cut", |it| it.interruptions.links),
    ("servers were out of reach", |it| it.interruptions.partitions),
    ("processes stood still", |it| it.interruptions.pauses),
    ("processes ended", |it| it.interruptions.ends),
    ("clients went to another server", |it| it.moves),
    ("servers read all again", |it| it.forgotten),
];

#[test]
fn one_seed_is_one_history() {
    let (first, second, other) = (run(7), run(7), run(8));
    assert_eq!(first.as_ref().ok(), second.as_ref().ok());
    let hash = |it: Result<Report, Box<Failure>>| it.expect("it converges").trace_hash;
    assert_ne!(hash(first), hash(other));
}
