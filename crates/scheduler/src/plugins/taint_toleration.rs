//! Taints keep pods away that do not tolerate them: `NoSchedule` and `NoExecute` strictly, `PreferNoSchedule` by score.

use corten_reconcile::Actor;

use crate::{
    Plugin, PodInfo,
    arguments::Arguments,
    framework::{Normalize, Points, Reason, Rejection, Score, Shortfall},
    placement::{tolerates, untolerated},
    snapshot::Row,
};

pub(crate) const NAME: &str = "TaintToleration";

pub(super) const PLUGIN: Plugin = Plugin {
    name: NAME,
    filter: Some(filter),
    shortfall: Some(Shortfall { size: shortfall, text: shortfall_text }),
    score: Some(Score { weight: 3, points: Points::Each { raw, normalize: Normalize::ToLeast } }),
    actor: Actor::Operator,
    wait: "UntoleratedTaint",
    ..Plugin::NONE
};

fn filter<'p>(pod: &'p PodInfo, row: &Row<'_>, _: &Arguments, rejection: &mut Rejection<'p>) {
    if untolerated(pod, row).next().is_some() {
        rejection.finally_because(Reason::Text("node(s) had untolerated taint(s)"));
    }
}

fn shortfall(pod: &PodInfo, row: &Row<'_>, _: &Arguments) -> i64 {
    i64::try_from(untolerated(pod, row).count()).unwrap_or(i64::MAX)
}

fn shortfall_text(pod: &PodInfo, row: &Row<'_>, _: &Arguments) -> String {
    let taints = untolerated(pod, row).map(|it| match &*it.value {
        "" => format!("{}:{}", it.key, it.effect),
        value => format!("{}={value}:{}", it.key, it.effect),
    });
    format!("has the taint {}", taints.collect::<Vec<_>>().join(", "))
}

fn raw(pod: &PodInfo, row: &Row<'_>, _: &Arguments) -> i64 {
    let preferences = row.taints.iter().filter(|it| it.effect == "PreferNoSchedule");
    let count = preferences.filter(|it| !tolerates(&pod.tolerations, &it.key, &it.value, &it.effect)).count();
    i64::try_from(count).unwrap_or(i64::MAX)
}
