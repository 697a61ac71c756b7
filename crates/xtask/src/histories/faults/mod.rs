//! What befalls the cluster.

mod network;

use std::{collections::BTreeMap, fmt, time::Duration};

use anyhow::Result;
use rand::{
    Rng,
    rngs::StdRng,
    seq::{IndexedRandom, SliceRandom},
};

use self::network::{Lossy, Partition};
use super::cluster::{Cluster, NAMES, Part};

/// How long it stays so. Longer than etcd's election, which takes one to two seconds; leases of leaders last longer.
const STAYS_MS: std::ops::Range<u64> = 50..4_000;
/// Of one in four: longer than what nobody answers is waited for, by clients of etcd and of servers.
const STAYS_LONG_MS: std::ops::Range<u64> = 4_000..20_000;
/// How far a clock is off: certificates are good from an hour before they are made.
const OFF_SECONDS: std::ops::RangeInclusive<i64> = -3_000..=3_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(super) enum Kind {
    Kills,
    Stops,
    Partitions,
    Loss,
    Clocks,
    FullDisk,
    LostMember,
}

impl Kind {
    pub(super) const ALL: [Self; 7] =
        [Self::Kills, Self::Stops, Self::Partitions, Self::Loss, Self::Clocks, Self::FullDisk, Self::LostMember];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kills => "kills",
            Self::Stops => "stops",
            Self::Partitions => "partitions",
            Self::Loss => "loss",
            Self::Clocks => "clocks",
            Self::FullDisk => "full-disk",
            Self::LostMember => "lost-member",
        })
    }
}

/// Which kinds come next: each as often as another, in any order.
pub(super) struct Deck {
    kinds: Vec<Kind>,
    left: Vec<Kind>,
    played: BTreeMap<Kind, usize>,
}

impl Deck {
    pub(super) fn new(kinds: &[Kind]) -> Self {
        Self { kinds: kinds.to_vec(), left: Vec::new(), played: kinds.iter().map(|it| (*it, 0)).collect() }
    }

    /// One, or two that befall it at once.
    fn draw(&mut self, dice: &mut StdRng) -> Vec<Kind> {
        if self.left.is_empty() {
            self.left.clone_from(&self.kinds);
            self.left.shuffle(dice);
        }
        let mut drawn: Vec<Kind> = self.left.pop().into_iter().collect();
        if dice.random_bool(0.4) {
            drawn.extend(self.kinds.choose(dice).filter(|it| !drawn.contains(it)));
        }
        for kind in &drawn {
            *self.played.entry(*kind).or_default() += 1;
        }
        drawn
    }

    /// In how many rounds each was.
    pub(super) fn tally(&self) -> String {
        self.played.iter().map(|(kind, n)| format!("{kind} {n}")).collect::<Vec<_>>().join(", ")
    }
}

#[derive(Debug)]
pub(super) struct Fault {
    mishaps: Vec<Mishap>,
    stays: Duration,
    /// What was killed starts again while the rest is as it is.
    starts_amid: bool,
}

#[derive(Debug)]
enum Mishap {
    Killed(Vec<Part>),
    Stopped(Vec<Part>),
    Cut(Partition),
    Lossy(Lossy),
    Clock { machine: usize, off: i64, is_killed: bool },
    Full(Vec<usize>),
    Lost(usize),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mishaps, stays, starts_amid } = self;
        write!(f, "{}, for {stays:?}", joined(mishaps))?;
        let is_killed = |it: &Mishap| matches!(it, Mishap::Killed(_) | Mishap::Clock { is_killed: true, .. });
        let starts_amid = *starts_amid && mishaps.iter().any(is_killed);
        f.write_str(if starts_amid { "; what is killed starts again amid it" } else { "" })
    }
}

impl fmt::Display for Mishap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Killed(parts) => write!(f, "killed: {}", joined(parts)),
            Self::Stopped(parts) => write!(f, "stopped: {}", joined(parts)),
            Self::Cut(partition) => partition.fmt(f),
            Self::Lossy(lossy) => lossy.fmt(f),
            Self::Clock { machine, off, is_killed } => {
                write!(f, "the clock of {} is {off:+} s off", NAMES[*machine])?;
                f.write_str(if *is_killed { ", and its server killed" } else { "" })
            }
            Self::Full(members) => {
                let disks: Vec<&str> = members.iter().map(|it| NAMES[*it]).collect();
                write!(f, "full: the disks of members {}", disks.join(", "))
            }
            Self::Lost(member) => write!(f, "member {} is lost for good", NAMES[*member]),
        }
    }
}

fn joined(all: &[impl fmt::Display]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Fault {
    pub(super) fn drawn(dice: &mut StdRng, deck: &mut Deck, cluster: &Cluster) -> Result<Self> {
        let kinds = deck.draw(dice);
        let mishaps = kinds.iter().map(|it| Mishap::drawn(dice, *it, cluster)).collect::<Result<_>>()?;
        let stays = if dice.random_bool(0.25) { STAYS_LONG_MS } else { STAYS_MS };
        let stays = Duration::from_millis(dice.random_range(stays));
        Ok(Self { mishaps, stays, starts_amid: dice.random_bool(0.3) })
    }

    pub(super) async fn play(&self, cluster: &mut Cluster) -> Result<()> {
        for mishap in &self.mishaps {
            mishap.play(cluster)?;
        }
        tokio::time::sleep(self.stays / 2).await;
        if self.starts_amid {
            cluster.start_killed()?;
        }
        tokio::time::sleep(self.stays / 2).await;
        Ok(())
    }
}

impl Mishap {
    fn drawn(dice: &mut StdRng, kind: Kind, cluster: &Cluster) -> Result<Self> {
        let machine = dice.random_range(0..NAMES.len());
        Ok(match kind {
            Kind::Kills => Self::Killed(parts(dice)),
            Kind::Stops => Self::Stopped(parts(dice)),
            Kind::Partitions => Self::Cut(Partition::drawn(dice, || cluster.leader())?),
            Kind::Loss => Self::Lossy(Lossy::drawn(dice)),
            Kind::Clocks => {
                Self::Clock { machine, off: dice.random_range(OFF_SECONDS), is_killed: dice.random_bool(0.5) }
            }
            // Of two nothing can be written until there is room again.
            Kind::FullDisk if dice.random_bool(0.3) => Self::Full(vec![machine, (machine + 1) % NAMES.len()]),
            Kind::FullDisk => Self::Full(vec![machine]),
            // Of two nothing would be left of etcd.
            Kind::LostMember => Self::Lost(machine),
        })
    }

    fn play(&self, cluster: &mut Cluster) -> Result<()> {
        match self {
            Self::Killed(parts) => parts.iter().try_for_each(|it| cluster.kill(*it)),
            Self::Stopped(parts) => parts.iter().try_for_each(|it| cluster.stop(*it)),
            Self::Cut(partition) => partition.play(&mut cluster.machines),
            Self::Lossy(lossy) => cluster.machines.lose(&lossy.losses()),
            Self::Clock { machine, off, is_killed } => {
                if *is_killed {
                    cluster.kill(Part::Server(*machine))?;
                }
                cluster.machines.set_clock(*machine, *off)
            }
            Self::Full(members) => members.iter().try_for_each(|it| cluster.fill_disk(*it)),
            Self::Lost(member) => cluster.lose(*member),
        }
    }
}

/// One process or several, also most of the members: then nothing can be written for a while.
fn parts(dice: &mut StdRng) -> Vec<Part> {
    let mut parts: Vec<Part> = (0..NAMES.len()).flat_map(|it| [Part::Server(it), Part::Member(it)]).collect();
    parts.shuffle(dice);
    let n = match dice.random_range(0..10) {
        0..5 => 1,
        5..8 => 2,
        8 => 3,
        _ => parts.len(),
    };
    parts.truncate(n);
    parts.sort();
    parts
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn each_kind_comes_as_often_as_another() {
        let (mut dice, mut deck) = (StdRng::seed_from_u64(1), Deck::new(&Kind::ALL));
        let drawn: Vec<Vec<Kind>> = (0..28).map(|_| deck.draw(&mut dice)).collect();
        for kind in Kind::ALL {
            assert_eq!(drawn.iter().filter(|it| it[0] == kind).count(), 4, "{kind}");
        }
        assert!(drawn.iter().any(|it| it.len() == 2));
        assert!(drawn.iter().all(|it| it.len() == 1 || it[0] != it[1]));
    }

    #[test]
    fn one_kind_alone_is_played_alone() {
        let (mut dice, mut deck) = (StdRng::seed_from_u64(1), Deck::new(&[Kind::Loss]));
        assert!((0..9).all(|_| deck.draw(&mut dice) == [Kind::Loss]));
        assert_eq!(deck.tally(), "loss 9");
    }
}
