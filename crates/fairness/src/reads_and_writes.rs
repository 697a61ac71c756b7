//! How many requests wait and are answered in all levels together, those that change something and those that do not.

use corten_metrics::scraped::Distribution;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::timed_ratio::TimedRatio;

/// kube-apiserver's buckets of `read_vs_write_current_requests`.
const RATIOS: &[f64] = &[0.0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Waiting,
    Executing,
}

impl Phase {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Executing => "executing",
        }
    }
}

pub(crate) struct ReadsAndWrites(Mutex<Counted>);

struct Counted {
    waiting: PhaseCounts,
    executing: PhaseCounts,
}

struct PhaseCounts {
    /// So many may be in the phase.
    limit: f64,
    read_only: Requests,
    mutating: Requests,
}

struct Requests {
    n: u32,
    /// When the ratio was noted last.
    noted: Instant,
    ratio: TimedRatio,
}

impl Requests {
    fn note(&mut self, limit: f64, now: Instant) {
        self.ratio.stood(f64::from(self.n) / limit, now.saturating_duration_since(self.noted));
        self.noted = self.noted.max(now);
    }
}

impl PhaseCounts {
    fn new(now: Instant) -> Self {
        let none = || Requests { n: 0, noted: now, ratio: TimedRatio::new(RATIOS) };
        Self { limit: 1.0, read_only: none(), mutating: none() }
    }

    fn set_limit(&mut self, limit: u64, now: Instant) {
        self.read_only.note(self.limit, now);
        self.mutating.note(self.limit, now);
        self.limit = corten_metrics::scraped::number(limit.max(1));
    }
}

impl Counted {
    fn phase(&mut self, phase: Phase) -> &mut PhaseCounts {
        match phase {
            Phase::Waiting => &mut self.waiting,
            Phase::Executing => &mut self.executing,
        }
    }
}

impl ReadsAndWrites {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self(Mutex::new(Counted { waiting: PhaseCounts::new(now), executing: PhaseCounts::new(now) }))
    }

    /// So many may wait and be answered from now on, in all levels together.
    pub(crate) fn set_limits(&self, waiting: u64, executing: u64) {
        let now = Instant::now();
        let mut counted = self.0.lock();
        counted.waiting.set_limit(waiting, now);
        counted.executing.set_limit(executing, now);
    }

    pub(crate) fn begin(&self, phase: Phase, is_mutating: bool) {
        self.change(phase, is_mutating, |n| n + 1);
    }

    pub(crate) fn end(&self, phase: Phase, is_mutating: bool) {
        self.change(phase, is_mutating, |n| n.saturating_sub(1));
    }

    fn change(&self, phase: Phase, is_mutating: bool, to: impl Fn(u32) -> u32) {
        let now = Instant::now();
        let mut counted = self.0.lock();
        let of = counted.phase(phase);
        let requests = if is_mutating { &mut of.mutating } else { &mut of.read_only };
        requests.note(of.limit, now);
        requests.n = to(requests.n);
    }

    /// By phase, and by kind of request as kube-apiserver calls it.
    pub(crate) fn counted(&self) -> Vec<([&'static str; 2], Distribution)> {
        let now = Instant::now();
        let mut counted = self.0.lock();
        let mut all = Vec::new();
        for phase in [Phase::Executing, Phase::Waiting] {
            let PhaseCounts { limit, read_only, mutating } = counted.phase(phase);
            for (kind, requests) in [("mutating", mutating), ("readOnly", read_only)] {
                requests.note(*limit, now);
                all.push(([phase.as_str(), kind], requests.ratio.counted()));
            }
        }
        all
    }
}
