//! Many NetworkPolicies and Pods, and how long it takes from one change until the kernel has it: decided by the mind of policies,
//! taken by the packet filter of a network namespace. Once by themselves, and once behind a server whose API is written to.

mod objects;
mod through_api;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use corten_machine::Layout;
use corten_meta::Key;
use corten_netpolicy::{Event, NetworkPolicies};
use corten_network::PolicyRules;

use super::{
    super::{
        load::{millis, quantile},
        report::{Row, Unit},
    },
    Scale,
    namespace::Namespace,
    read,
};

/// What is promised of one change.
const BOUND_MS: u128 = 50;

pub(super) fn measure(program: &Path, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    by_themselves(scale, rows)?;
    through_api::measure(program, scale, rows).context("measuring behind a server")
}

fn by_themselves(scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let namespace = Namespace::new("policies")?;
    let folder = tempfile::tempdir()?;
    let rules = PolicyRules::new(&Layout::new(folder.path().join("data"), folder.path().join("run")));
    let measured = namespace.run_async(async move || {
        let mut table = Table { mind: NetworkPolicies::new(objects::HERE), rules };
        table.measure(scale).await
    })?;
    rows.extend(measured);
    Ok(())
}

/// What is told of the change with this number.
type News<'a> = Box<dyn Fn(usize) -> Vec<Event> + 'a>;

struct Table {
    mind: NetworkPolicies,
    rules: PolicyRules,
}

/// How long one change took, and how much of that came before the kernel: the mind, or the API's answer.
struct Took {
    whole: Duration,
    before: Duration,
    n_changes: usize,
}

impl Table {
    async fn measure(&mut self, scale: Scale) -> Result<Vec<Row>> {
        let Scale { policies, pods, changes, .. } = scale;
        let of = format!("{policies} policies, {pods} Pods");
        self.rules.apply(self.mind.whole()).await.context("making the table")?;
        let policy = |n, like| Event::Policy(read(objects::policy(n, like)));
        let all = (0..objects::NAMESPACES).map(|it| Event::Namespace(read(objects::namespace(it))));
        let all = all.chain((0..policies).map(|it| policy(it, it)));
        let first = self.step(all.chain((0..pods).flat_map(|it| pod(it, it))).collect()).await?;
        let note = format!("all at once, {} changes, decided in {} ms", first.n_changes, millis(first.before));
        let mut rows =
            vec![Row::new(format!("{of}: in the kernel"), first.whole.as_secs_f64(), Unit::Seconds).note(note)];

        // Every other one is on this node.
        let numbers = |is_here: bool| (pods..).filter(move |it| objects::is_here(*it) == is_here);
        let numbers: Vec<usize> = numbers(true).zip(numbers(false)).flat_map(|(a, b)| [a, b]).take(changes).collect();
        let number = |it: usize| numbers[it];
        let tasks: [(&str, News<'_>); 4] = [
            ("a Pod comes", Box::new(|it| pod(number(it), it).collect())),
            ("a Pod has other labels", Box::new(|it| pod(number(it), it + objects::NAMESPACES + 1).take(1).collect())),
            ("a policy says something else", Box::new(|it| vec![policy(it * 7 % policies, it + 3)])),
            ("a Pod goes", Box::new(|it| pod_gone(number(it)))),
        ];
        for (what, news) in tasks {
            let mut times = Vec::new();
            for n in 0..changes {
                times.push(self.step(news(n)).await.context(what)?);
            }
            rows.push(row(&format!("{of}: {what}, until the kernel has it"), "decided", &times));
        }
        Ok(rows)
    }

    async fn step(&mut self, events: Vec<Event>) -> Result<Took> {
        let begun = Instant::now();
        let step = self.mind.step(events);
        let (decided, n_changes) = (begun.elapsed(), step.changes.len());
        self.rules.apply(step.changes).await?;
        Ok(Took { whole: begun.elapsed(), before: decided, n_changes })
    }
}

/// `first`: what is done before the kernel is told.
fn row(what: &str, first: &str, all: &[Took]) -> Row {
    let sorted = |of: fn(&Took) -> Duration| {
        let mut times: Vec<Duration> = all.iter().map(of).collect();
        times.sort();
        times
    };
    let (whole, before) = (sorted(|it| it.whole), sorted(|it| it.before));
    let [median, p99] = [0.5, 0.99].map(|it| quantile(&whole, it));
    let within = whole.iter().filter(|it| it.as_millis() < BOUND_MS).count();
    let most = all.iter().map(|it| it.n_changes).max().unwrap_or_default();
    let note = format!(
        "median of {}, p99 {} ms; {first} in {} ms; at most {most} changes; within the bound of {BOUND_MS} ms: {within} of {}",
        all.len(),
        millis(p99),
        millis(quantile(&before, 0.5)),
        all.len()
    );
    Row::new(what, median.as_secs_f64() * 1e3, Unit::Milliseconds).note(note)
}

/// One of this node has its sandbox, too.
fn pod(n: usize, like: usize) -> impl Iterator<Item = Event> {
    let plugged = objects::is_here(n).then(|| Event::Plugged(objects::plugged(n, &objects::pod_name(n))));
    [Event::Pod(read(objects::pod(n, like)))].into_iter().chain(plugged)
}

fn pod_gone(n: usize) -> Vec<Event> {
    let unplugged = objects::is_here(n).then(|| Event::Unplugged(objects::pod_name(n)));
    let gone = Event::PodGone(Key::new(objects::namespace_name(n), objects::pod_name(n)));
    unplugged.into_iter().chain([gone]).collect()
}
