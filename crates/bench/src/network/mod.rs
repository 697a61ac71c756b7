//! `cargo xtask bench network`: what a node's network does in the kernel, in network namespaces, by the code that nodes run: policies,
//! and the tunnel between nodes, beside one that is made by hand. Needs root, and no containers.

mod namespace;
mod policies;
mod tunnel;

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, bail};

use super::report::Row;

#[derive(Clone, Copy)]
pub(super) struct Scale {
    policies: usize,
    pods: usize,
    /// Of each kind.
    changes: usize,
    /// By turns.
    rounds: usize,
    /// How long bytes are sent in each round.
    time: Duration,
    /// Of each round.
    round_trips: usize,
    connections: usize,
}

impl Scale {
    pub(super) const FULL: Self = Self {
        policies: 1_000,
        pods: 5_000,
        changes: 100,
        rounds: 25,
        time: Duration::from_millis(500),
        round_trips: 5_000,
        connections: 500,
    };
    pub(super) const QUICK: Self = Self {
        policies: 500,
        pods: 2_500,
        changes: 10,
        rounds: 3,
        time: Duration::from_millis(200),
        round_trips: 2_000,
        connections: 100,
    };
}

type Part = fn(&Path, Scale, &mut Vec<Row>) -> Result<()>;

pub(super) const PARTS: &[(&str, Part)] =
    &[("policies", policies::measure), ("tunnel", |_, scale, rows| tunnel::measure(scale, rows))];

pub(super) fn all(program: &Path, scale: Scale, only: &[String]) -> Result<Vec<Row>> {
    if !rustix::process::geteuid().is_root() {
        bail!("networks of one's own need root");
    }
    let mut rows = Vec::new();
    for (name, part) in PARTS.iter().filter(|it| only.is_empty() || only.iter().any(|only| only == it.0)) {
        eprintln!("measuring {name}");
        part(program, scale, &mut rows).with_context(|| format!("measuring {name}"))?;
    }
    Ok(rows)
}

/// An object as a mind sees it.
fn read<T: serde::de::DeserializeOwned>(object: serde_json::Value) -> T {
    serde_json::from_value(object).expect("it has the fields of its kind")
}
