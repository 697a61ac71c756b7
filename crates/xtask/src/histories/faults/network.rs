//! What befalls the link.

use std::fmt;

use anyhow::Result;
use rand::{Rng, rngs::StdRng};

use crate::histories::{
    cluster::NAMES,
    machines::{End, Loss, Machines},
};

/// Of all that is sent.
const LOST_PERCENT: std::ops::RangeInclusive<u8> = 5..=40;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Partition {
    /// Clients go on asking a machine that does not hear the others.
    Alone(usize),
    /// As [`Self::Alone`], the one with etcd's leader.
    Leader(usize),
    Unplugged(usize),
    AllApart,
    /// It is not heard by the other, which it hears.
    OneWay(usize, usize),
}

impl Partition {
    pub(super) fn drawn(dice: &mut StdRng, leader: impl FnOnce() -> Result<usize>) -> Result<Self> {
        let n = NAMES.len();
        let machine = dice.random_range(0..n);
        Ok(match dice.random_range(0..5) {
            0 => Self::Alone(machine),
            1 => Self::Leader(leader()?),
            2 => Self::Unplugged(machine),
            3 => Self::AllApart,
            _ => Self::OneWay(machine, (machine + dice.random_range(1..n)) % n),
        })
    }

    pub(super) fn play(&self, machines: &mut Machines) -> Result<()> {
        match self {
            Self::Unplugged(machine) => machines.unplug(*machine),
            _ => machines.lose(&self.losses()),
        }
    }

    fn losses(&self) -> Vec<Loss> {
        let is_cut = |from: usize, to: usize| match self {
            Self::Alone(machine) | Self::Leader(machine) => from == *machine || to == *machine,
            Self::Unplugged(_) => false,
            Self::AllApart => true,
            Self::OneWay(unheard, deaf) => (from, to) == (*unheard, *deaf),
        };
        let pairs = pairs().filter(|it| matches!(it, (End::Machine(from), End::Machine(to)) if is_cut(*from, *to)));
        pairs.map(|(from, to)| Loss { from, to, percent: 100 }).collect()
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alone(machine) => write!(f, "{} is cut off from the others", NAMES[*machine]),
            Self::Leader(machine) => write!(f, "{}, which leads etcd, is cut off from the others", NAMES[*machine]),
            Self::Unplugged(machine) => write!(f, "{} is unplugged", NAMES[*machine]),
            Self::AllApart => f.write_str("all three are cut off from each other"),
            Self::OneWay(unheard, deaf) => write!(f, "{} does not hear {}", NAMES[*deaf], NAMES[*unheard]),
        }
    }
}

/// A link that loses some of what is sent.
#[derive(Debug)]
pub(super) struct Lossy {
    between: Between,
    percent: u8,
}

#[derive(Debug)]
enum Between {
    Machines,
    One(End),
    All,
}

impl Lossy {
    pub(super) fn drawn(dice: &mut StdRng) -> Self {
        let between = match dice.random_range(0..4) {
            0 => Between::Machines,
            1 => Between::All,
            _ => Between::One(End::ALL[dice.random_range(0..End::ALL.len())]),
        };
        Self { between, percent: dice.random_range(LOST_PERCENT) }
    }

    pub(super) fn losses(&self) -> Vec<Loss> {
        let is_lossy = |(from, to): &(End, End)| match self.between {
            Between::Machines => ![*from, *to].contains(&End::Clients),
            Between::One(end) => [*from, *to].contains(&end),
            Between::All => true,
        };
        pairs().filter(is_lossy).map(|(from, to)| Loss { from, to, percent: self.percent }).collect()
    }
}

impl fmt::Display for Lossy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { between, percent } = self;
        write!(f, "{percent} of 100 packets are lost ")?;
        match between {
            Between::Machines => f.write_str("between machines"),
            Between::One(end) => write!(f, "to and from {end}"),
            Between::All => f.write_str("everywhere"),
        }
    }
}

/// All that send to each other.
fn pairs() -> impl Iterator<Item = (End, End)> {
    End::ALL.into_iter().flat_map(|from| End::ALL.into_iter().map(move |to| (from, to))).filter(|it| it.0 != it.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(partition: &Partition) -> String {
        let named = |it: Loss| format!("{}>{}", it.from, it.to);
        partition.losses().into_iter().map(named).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_partition_leaves_its_machines_to_clients() {
        assert_eq!(cut(&Partition::Alone(0)), "one>two one>three two>one three>one");
        assert_eq!(cut(&Partition::AllApart), "one>two one>three two>one two>three three>one three>two");
        assert_eq!(cut(&Partition::OneWay(2, 1)), "three>two");
        assert_eq!(cut(&Partition::Unplugged(1)), "");
    }

    #[test]
    fn what_is_lossy_is_so_both_ways() {
        let n_losses = |between| Lossy { between, percent: 5 }.losses().len();
        assert_eq!([Between::Machines, Between::One(End::Clients), Between::All].map(n_losses), [6, 6, 12]);
    }
}
