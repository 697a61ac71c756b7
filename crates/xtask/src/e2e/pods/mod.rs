//! The suite `pods`: Pods with real containers, and what must be seen of them, written as data in `e2e/pods/`.
//!
//! Each case has a namespace of its own and many are under way at once, so a case must not count on the node being quiet.

mod case;
mod expect;
mod play;
mod report;
mod world;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use anyhow::{Context, Result};
use case::Case;
use corten_client::{Client, https::HttpsTransport, kubeconfig::Kubeconfig};
use play::{Play, Stage};
use tokio::{sync::Semaphore, task::JoinSet};
use world::World;

use super::{Tally, cluster::Cluster};

/// Every case whose `path: name` contains `filter`, or one of several between commas.
pub(super) fn cases(root: &Path, filter: &str) -> Result<Vec<Case>> {
    let dir = root.join("e2e/pods");
    let entries = fs::read_dir(&dir).with_context(|| format!("listing {}", dir.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|it| it.ok().map(|it| it.path())).collect();
    paths.retain(|it| it.extension().is_some_and(|it| it == "yaml"));
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        cases.extend(case::read(root, &path)?);
    }
    cases.retain(|it| super::is_wanted(&format!("{}: {}", it.place, it.name), filter));
    Ok(cases)
}

/// Plays all, `at_once` of them side by side, and gives the cluster back.
pub(super) fn play(cases: Vec<Case>, at_once: usize, cluster: Cluster, tally: &mut Tally) -> Result<Cluster> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let target = Kubeconfig::load(cluster.kubeconfig())?.target(None)?;
    let client = Client::new(Arc::new(HttpsTransport::new(&target)?));
    runtime.block_on(async {
        let stage = Arc::new(Stage { world: World::watch(&client), client, cluster });
        play_all(cases, at_once, &stage, tally).await;
        let stage = Arc::into_inner(stage).context("every case has ended")?;
        Ok(stage.cluster)
    })
}

async fn play_all(cases: Vec<Case>, at_once: usize, stage: &Arc<Stage>, tally: &mut Tally) {
    let begin = Instant::now();
    let places = Arc::new(Semaphore::new(at_once.max(1)));
    let mut plays = JoinSet::new();
    let number = cases.len();
    for (idx, case) in cases.into_iter().enumerate() {
        let (stage, places) = (stage.clone(), places.clone());
        plays.spawn(async move {
            let _place = places.acquire().await.expect("nobody closes it");
            play_one(idx, &case, &stage).await
        });
    }
    while let Some(played) = plays.join_next().await {
        let (passed, text) = played.unwrap_or_else(|it| (Some(false), format!("FAILED {it}")));
        println!("{}", text.trim_end());
        match passed {
            Some(passed) => tally.count(passed),
            None => tally.skipped += 1,
        }
    }
    println!("e2e/pods: {number} cases in {:.0} s", begin.elapsed().as_secs_f64());
}

/// Has it passed? Nothing where it is not for this node.
async fn play_one(idx: usize, case: &Case, stage: &Stage) -> (Option<bool>, String) {
    let begin = Instant::now();
    let mut play = Play::new(stage, case, format!("case-{idx}"));
    match play.is_for_here().await {
        Ok(true) => {}
        Ok(false) => return (None, format!("skipped {} ({}): it is for other nodes", case.name, case.place)),
        Err(why) => return (Some(false), format!("FAILED {} ({}): {why}", case.name, case.place)),
    }
    let mut played = play.run().await;
    if let (Some(words), Err(failure)) = (&case.wrong, &played)
        && format!("{}\n{}", failure.step, failure.why).contains(words.as_str())
    {
        played = Ok(());
    } else if let (Some(words), Ok(())) = (&case.wrong, &played) {
        let why = format!("nothing: the case passed, and should have failed with {words:?}");
        played = Err(play.failure("wrong", why));
    }
    let text = match &played {
        Ok(()) => format!("ok     {} ({}, {:.1} s)", case.name, case.place, begin.elapsed().as_secs_f64()),
        Err(failure) => report::failure(case, failure, stage).await,
    };
    match play.clean().await {
        Ok(()) => (Some(played.is_ok()), text),
        Err(why) => (Some(false), format!("{text}\nFAILED {} ({}): {why}", case.name, case.place)),
    }
}
