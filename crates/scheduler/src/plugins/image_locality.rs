//! A pod rather runs where its images are already, the more the larger they are: unless only few nodes have them, which would
//! draw all such pods to these.

use crate::{
    Plugin,
    framework::{Points, SCORE_MAX, Score, Scoring, real, whole},
    images::ImageState,
};

pub(super) const PLUGIN: Plugin =
    Plugin { name: "ImageLocality", score: Some(Score { weight: 1, points: Points::All(points) }), ..Plugin::NONE };

const MIB: i64 = 1024 * 1024;
const LEAST: i64 = 23 * MIB;
const MOST_PER_CONTAINER: i64 = 1000 * MIB;

fn points(scoring: &Scoring<'_>) -> Option<Vec<i64>> {
    let Scoring { pod, snapshot, feasible, .. } = *scoring;
    let known = pod.images.iter().filter_map(|it| Some((it, scaled(snapshot.images.get(it)?, snapshot.n_nodes()))));
    let known: Vec<(&String, i64)> = known.collect();
    if known.is_empty() {
        return None;
    }
    let most = MOST_PER_CONTAINER.saturating_mul(i64::try_from(pod.n_containers).unwrap_or(i64::MAX));
    let points = |idx: &usize| {
        let images = snapshot.images_of(*idx);
        let here = known.iter().filter(|it| images.contains(it.0)).map(|it| it.1);
        let sum = here.fold(0_i64, i64::saturating_add).min(most).max(LEAST);
        let share = i128::from(sum - LEAST) * i128::from(SCORE_MAX) / i128::from((most - LEAST).max(1));
        i64::try_from(share).unwrap_or(SCORE_MAX)
    };
    Some(feasible.iter().map(points).collect())
}

/// `scaledImageScore`: the size, as much of it as there are nodes with the image.
fn scaled(state: ImageState, n_nodes: usize) -> i64 {
    let count = |it: usize| real(i64::try_from(it).unwrap_or(i64::MAX));
    whole(real(state.bytes) * (count(state.n_nodes) / count(n_nodes.max(1))))
}
