//! How many cuts there were of which kind, and what came of them.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use super::{cluster::Cluster, work::Work};

#[derive(Default)]
pub(super) struct Tally {
    /// Rounds, and those that failed.
    rounds: BTreeMap<Work, (usize, usize)>,
    n_writes: usize,
}

impl Tally {
    pub(super) fn count(&mut self, work: Work, is_ok: bool) {
        let counts = self.rounds.entry(work).or_default();
        counts.0 += 1;
        counts.1 += usize::from(!is_ok);
    }

    /// The machine goes.
    pub(super) fn ends(&mut self, cluster: Cluster) -> Result<()> {
        self.n_writes += cluster.truth.lock().n_answered();
        cluster.remove()
    }

    pub(super) fn verdict(&self) -> Result<()> {
        for (work, (n_rounds, n_failed)) in &self.rounds {
            println!("{work:?}: {n_rounds} rounds, {n_failed} that the machine did not come back from by itself");
        }
        let n_rounds: usize = self.rounds.values().map(|it| it.0).sum();
        println!("{n_rounds} rounds, {} answered writes", self.n_writes);
        let n_failed: usize = self.rounds.values().map(|it| it.1).sum();
        if n_failed > 0 {
            bail!("{n_failed} rounds failed");
        }
        Ok(())
    }
}
