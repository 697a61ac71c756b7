//! What the loops of this server wait for, counted: by kind, by reason, and by who must act.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use corten_meta::{Key, Resource, Time};
use corten_reconcile::{Decision, Wait};

use crate::{
    MetricFamily,
    scraped::{gauge, number},
};

/// More rows than these are counted together. Reasons are words of the program, and definitions of custom resources can be many.
const ROWS_MAX: usize = 1_000;
const OTHER: &str = "other";
const LABELS: [&str; 3] = ["resource", "reason", "actor"];

#[derive(Default)]
struct Waiting {
    n_objects: u64,
    oldest: Option<Time>,
}

/// By kind, reason, and who must act. Nothing is copied where the row is known: the loops are held up meanwhile.
#[derive(Default)]
struct Rows {
    known: BTreeMap<Resource, BTreeMap<String, BTreeMap<&'static str, Waiting>>>,
    n_known: usize,
    /// Those beyond the bound.
    others: BTreeMap<&'static str, Waiting>,
}

/// Both families, of the objects that wait now: `each_waiting` shows each of them with what loops last decided about it.
pub fn families(each_waiting: impl FnOnce(&dyn Fn(&Resource, &Key, &[Decision]) -> bool)) -> Vec<MetricFamily> {
    let rows = RefCell::new(Rows::default());
    each_waiting(&|resource, _, decisions| {
        rows.borrow_mut().add(resource, decisions);
        false
    });
    let rows = rows.into_inner().labelled();
    let labelled: Vec<([&str; 3], &Waiting)> =
        rows.iter().map(|(row, it)| (row.each_ref().map(String::as_str), it)).collect();
    let mut families = gauge(
        "corten_waits",
        "Objects that wait, by why they do and who must act: Cluster goes on by itself, Author wrote the object, Operator runs the cluster, External is a program outside of it.",
        &LABELS,
        labelled.iter().map(|(labels, it)| (&labels[..], number(it.n_objects))),
    );
    families.extend(gauge(
        "corten_waits_oldest_timestamp_seconds",
        "Since when the object has waited that has waited longest, as a unix timestamp.",
        &LABELS,
        labelled.iter().filter_map(|(labels, it)| {
            let seconds = u64::try_from(it.oldest?.unix_millis()).ok()? / 1000;
            Some((&labels[..], number(seconds)))
        }),
    ));
    families
}

impl Rows {
    /// An object counts once for each reason, however many loops have it.
    fn add(&mut self, resource: &Resource, decisions: &[Decision]) {
        let mut counted = BTreeSet::new();
        for wait in decisions.iter().flat_map(waits) {
            let is_new = counted.insert((&*wait.reason, wait.actor.as_str()));
            let row = self.row(resource, &wait.reason, wait.actor.as_str());
            row.n_objects += u64::from(is_new);
            row.oldest = [row.oldest, wait.since].into_iter().flatten().min();
        }
    }

    fn row(&mut self, resource: &Resource, reason: &str, actor: &'static str) -> &mut Waiting {
        let of_reason = self.known.get(resource).and_then(|it| it.get(reason));
        if !of_reason.is_some_and(|it| it.contains_key(actor)) {
            if self.n_known == ROWS_MAX {
                return self.others.entry(actor).or_default();
            }
            self.n_known += 1;
            let of_resource = self.known.entry(resource.clone()).or_default();
            of_resource.entry(reason.to_owned()).or_default().insert(actor, Waiting::default());
        }
        let row = self.known.get_mut(resource).and_then(|it| it.get_mut(reason)).and_then(|it| it.get_mut(actor));
        row.expect("it was there, or has been put there")
    }

    /// With the values of the labels: the plural with its group, the reason, and who must act.
    fn labelled(self) -> Vec<([String; 3], Waiting)> {
        let mut out = Vec::new();
        for (resource, reasons) in self.known {
            for (reason, actors) in reasons {
                let row = |(actor, it): (&str, _)| ([resource.qualified(), reason.clone(), actor.to_owned()], it);
                out.extend(actors.into_iter().map(row));
            }
        }
        let others = self.others.into_iter();
        out.extend(others.map(|(actor, it)| ([OTHER.to_owned(), OTHER.to_owned(), actor.to_owned()], it)));
        out
    }
}

fn waits(decision: &Decision) -> impl Iterator<Item = &Wait> {
    decision.waits.iter().chain(decision.steps.iter().filter_map(|it| it.wait.as_ref()))
}

#[cfg(test)]
mod tests {
    use corten_api::resources::{DEPLOYMENTS, PODS};
    use corten_reconcile::Actor;

    use super::*;

    fn told(book: &[(Resource, Vec<Decision>)]) -> String {
        crate::encoded(&families(|each| {
            for (resource, decisions) in book {
                assert!(!each(resource, &Key::new("shop", "web"), decisions), "keys are not asked for");
            }
        }))
    }

    fn decision(by: &str, reasons: &[(&str, Actor, i64)]) -> Decision {
        let wait = |&(reason, actor, since): &(&str, Actor, i64)| {
            let wait = Wait::new(reason, "it waits", actor);
            Wait { since: Some(Time::from_unix_seconds(since)), ..wait }
        };
        Decision { by: by.to_owned(), waits: reasons.iter().map(wait).collect(), ..Decision::default() }
    }

    #[test]
    fn objects_are_counted_once_for_each_reason_and_the_oldest_is_told() {
        let pending = ("NoNodes", Actor::Operator);
        let twice = [
            decision("scheduler", &[(pending.0, pending.1, 300)]),
            decision("kubelet", &[(pending.0, pending.1, 200)]),
        ];
        let book = vec![
            (PODS, twice.to_vec()),
            (PODS, vec![decision("scheduler", &[(pending.0, pending.1, 400)])]),
            (DEPLOYMENTS, vec![decision("deployment", &[("PodsNotReady", Actor::Cluster, 500)])]),
        ];
        let text = told(&book);
        let lines: Vec<&str> = text.lines().filter(|it| !it.starts_with('#')).collect();
        assert_eq!(
            lines,
            [
                r#"corten_waits{actor="Cluster",reason="PodsNotReady",resource="deployments.apps"} 1"#,
                r#"corten_waits{actor="Operator",reason="NoNodes",resource="pods"} 2"#,
                r#"corten_waits_oldest_timestamp_seconds{actor="Cluster",reason="PodsNotReady",resource="deployments.apps"} 500"#,
                r#"corten_waits_oldest_timestamp_seconds{actor="Operator",reason="NoNodes",resource="pods"} 200"#,
            ],
            "{text}"
        );
    }

    #[test]
    fn rows_are_bounded() {
        let of = |n: usize| (PODS, vec![decision("x", &[(&*format!("R{n:05}"), Actor::Author, 1)])]);
        let text = told(&(0..ROWS_MAX + 5).map(of).collect::<Vec<_>>());
        assert!(text.contains(r#"corten_waits{actor="Author",reason="other",resource="other"} 5"#), "{text}");
    }
}
