//! What befalls the cluster.

use std::{fmt, time::Duration};

use anyhow::Result;
use rand::{Rng, rngs::StdRng, seq::SliceRandom};

use super::cluster::{Cluster, NAMES, Part};

/// How long what is killed or stopped stays so. Longer than etcd's election, which takes one to two seconds; leases of leaders last
/// longer.
const STAYS_MS: std::ops::Range<u64> = 50..4_000;

#[derive(Debug)]
pub(super) struct Fault {
    killed: Vec<Part>,
    stopped: Vec<Part>,
    stays: Duration,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { killed, stopped, stays } = self;
        write!(f, "{killed:?} are killed and {stopped:?} are stopped for {stays:?}")
    }
}

impl Fault {
    /// One process or several, also most of the members: then nothing can be written for a while.
    pub(super) fn drawn(dice: &mut StdRng) -> Self {
        let mut parts: Vec<Part> = (0..NAMES.len()).flat_map(|it| [Part::Server(it), Part::Member(it)]).collect();
        parts.shuffle(dice);
        let n = match dice.random_range(0..10) {
            0..5 => 1,
            5..8 => 2,
            8 => 3,
            _ => parts.len(),
        };
        parts.truncate(n);
        let stays = Duration::from_millis(dice.random_range(STAYS_MS));
        let (killed, stopped) = parts.into_iter().partition(|_| dice.random_bool(0.5));
        Self { killed, stopped, stays }
    }

    pub(super) async fn play(&self, cluster: &mut Cluster) -> Result<()> {
        for part in &self.stopped {
            cluster.stop(*part)?;
        }
        for part in &self.killed {
            cluster.kill(*part)?;
        }
        tokio::time::sleep(self.stays).await;
        Ok(())
    }
}
