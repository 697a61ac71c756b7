//! TCP from a Pod of one machine to a Pod of another, through the tunnel that nodes make between them, with all their packet rules,
//! beside a tunnel that is made by hand and has none. Machines and Pods are network namespaces.

mod machines;
mod traffic;

use anyhow::{Context, Result};

use self::machines::{Cluster, Rules};
use super::{
    super::{
        load::middle,
        report::{Row, Unit},
    },
    Scale,
};

/// What is measured in one round, in the order of [`NAMES`].
type Figures = [f64; 3];

const NAMES: [(&str, Unit); 3] = [
    ("Pods of two machines: one TCP stream", Unit::MegabytesPerSecond),
    ("Pods of two machines: a round trip", Unit::Milliseconds),
    ("Pods of two machines: a connection is made", Unit::Milliseconds),
];

pub(super) fn measure(scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let clusters = [Cluster::corten(Rules::All)?, Cluster::corten(Rules::OfTunnel)?, Cluster::by_hand()?];
    for it in &clusters {
        // What is learnt once, by the first packets: neighbours, and how large a packet may be.
        figures(it, Scale::QUICK).with_context(|| format!("trying {}", it.name()))?;
    }
    let mut rounds: [Vec<Figures>; 3] = Default::default();
    for round in 0..scale.rounds {
        for at in 0..clusters.len() {
            let at = (at + round) % clusters.len();
            let figures = figures(&clusters[at], scale);
            rounds[at].push(figures.with_context(|| format!("measuring {}", clusters[at].name()))?);
        }
    }
    let [.., by_hand] = &rounds;
    for (at, (what, unit)) in NAMES.into_iter().enumerate() {
        for (cluster, ours) in clusters.iter().zip(&rounds).take(2) {
            let of = |turns: &[Figures]| turns.iter().map(|it| it[at]).collect::<Vec<_>>();
            let row = Row::new(format!("{what}, {}", cluster.name()), middle(of(ours).into_iter()), unit);
            rows.push(row.note(beside(&of(ours), &of(by_hand))));
        }
    }
    Ok(())
}

/// By rounds: what else the machine does falls on both alike.
fn beside(ours: &[f64], by_hand: &[f64]) -> String {
    let mut ratios: Vec<f64> = ours.iter().zip(by_hand).map(|(ours, theirs)| ours / theirs).collect();
    ratios.sort_by(f64::total_cmp);
    let quarter = |n: usize| ratios[(ratios.len() - 1) * n / 4];
    format!(
        "median of {} rounds by turns; {:.3} by hand; in one round {:.2} times what it is by hand, in half of them {:.2} to {:.2}",
        ours.len(),
        middle(by_hand.iter().copied()),
        quarter(2),
        quarter(1),
        quarter(3)
    )
}

fn figures(cluster: &Cluster, scale: Scale) -> Result<Figures> {
    let ends = cluster.ends();
    Ok([
        traffic::megabytes_per_second(&ends, scale.time)?,
        traffic::round_trip(&ends, scale.round_trips)?,
        traffic::connection(&ends, scale.connections)?,
    ])
}
