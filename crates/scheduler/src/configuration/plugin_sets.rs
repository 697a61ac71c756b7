//! Which plugins a profile has at which extension point: `plugins` of a profile, merged with the default ones.

use std::collections::{BTreeMap, BTreeSet};

use super::reader::{At, Reader};
use crate::{PLUGINS, Plugin, Profile};

/// Has a plugin something to say at an extension point?
type Extends = fn(&Plugin) -> bool;

/// The extension points that can be set. At all others a plugin does what it does wherever it is enabled.
const POINTS: &[(&str, Extends)] = &[
    ("preEnqueue", |it| it.pre_enqueue.is_some()),
    ("preFilter", |it| it.pre_filter.is_some()),
    ("filter", Plugin::has_filter),
    ("postFilter", |_| false),
    ("score", |it| it.score.is_some()),
];

const ALL_POINTS: &[&str] = &[
    "multiPoint",
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
];

/// Plugins of upstream's that are part of the scheduler itself.
const BUILT_IN: &[&str] = &["PrioritySort", "DefaultBinder"];
const PREEMPTION: &str = "DefaultPreemption";
/// They do something between the choice of a node and the binding, too, and cannot be left out.
const KEPT: &[&str] = &["VolumeBinding", "DynamicResources", "PrioritySort", "DefaultBinder"];

/// What is said of one extension point.
struct Set {
    is_all_disabled: bool,
    disabled: BTreeSet<String>,
    /// With their weights.
    enabled: BTreeMap<String, Option<i64>>,
}

impl Set {
    fn has(&self, plugin: &str, by_default: bool) -> bool {
        let is_disabled = self.is_all_disabled || self.disabled.contains(plugin);
        self.enabled.contains_key(plugin) || (by_default && !is_disabled)
    }
}

pub(super) fn profile(at: &At<'_>, reader: &mut Reader) -> Profile {
    let plugins = reader.child(at, "plugins", ALL_POINTS);
    for point in ALL_POINTS.iter().filter(|it| **it != "multiPoint" && !POINTS.iter().any(|known| known.0 == **it)) {
        if plugins.get(point).is_some() {
            let what = "cannot be set here: what a plugin does there goes with the plugin";
            reader.problem(&plugins.path(point), what);
        }
    }
    let everywhere = set(&plugins, "multiPoint", KEPT, reader);
    let mut found =
        Profile { filters: vec![], pre_filters: vec![], scores: vec![], pre_enqueue: vec![], ..Profile::default() };
    for (point, extends) in POINTS {
        let extending = |name: &&&str| PLUGINS.iter().any(|it| it.name == **name && extends(it));
        // What they score may be left out.
        let kept: Vec<&str> = KEPT.iter().filter(|it| *point != "score" && extending(it)).copied().collect();
        let here = set(&plugins, point, &kept, reader);
        for name in here.enabled.keys().filter(|it| !(*point == "postFilter" && **it == PREEMPTION)) {
            if PLUGINS.iter().any(|it| it.name == name && !extends(it))
                || BUILT_IN.contains(&&**name)
                || name == PREEMPTION
            {
                reader.problem(&plugins.path(point), &format!("plugin {name:?} does not extend it"));
            }
        }
        let has = |name: &str| here.has(name, everywhere.has(name, true));
        for (idx, plugin) in PLUGINS.iter().enumerate().filter(|it| extends(it.1) && has(it.1.name)) {
            match *point {
                "preEnqueue" => found.pre_enqueue.push(idx),
                "preFilter" => found.pre_filters.push(idx),
                "filter" => found.filters.push(idx),
                _ => found.scores.push((idx, weight(plugin, &here, &everywhere))),
            }
        }
        if *point == "postFilter" {
            found.preempts = has(PREEMPTION);
        }
    }
    found
}

/// As in `mergePluginSet`: a default plugin that is named again has the weight that is given there, 1 where none is.
fn weight(plugin: &Plugin, here: &Set, everywhere: &Set) -> i64 {
    let given = here.enabled.get(plugin.name).or_else(|| everywhere.enabled.get(plugin.name));
    let default = plugin.score.as_ref().map_or(1, |it| it.weight);
    given.map_or(default, |it| it.filter(|it| *it != 0).unwrap_or(1))
}

/// `kept` cannot be left out.
fn set(plugins: &At<'_>, point: &str, kept: &[&str], reader: &mut Reader) -> Set {
    let at = reader.child(plugins, point, &["enabled", "disabled"]);
    let mut set = Set { is_all_disabled: false, disabled: BTreeSet::new(), enabled: BTreeMap::new() };
    for it in reader.children(&at, "disabled", &["name", "weight"]) {
        let name = reader.text(&it, "name");
        if name == "*" {
            set.is_all_disabled = true;
        } else {
            check_name(&it, name, reader);
            set.disabled.insert(name.to_owned());
        }
    }
    for it in reader.children(&at, "enabled", &["name", "weight"]) {
        let name = reader.text(&it, "name");
        check_name(&it, name, reader);
        let weight =
            it.get("weight").is_some().then(|| reader.number(&it, "weight", 1, (0, i64::from(i32::MAX) / 100)));
        if set.enabled.insert(name.to_owned(), weight).is_some() {
            reader.problem(&it.path("name"), &format!("plugin {name:?} already registered"));
        }
    }
    let is_left_out =
        |it: &&&str| (set.is_all_disabled || set.disabled.contains(**it)) && !set.enabled.contains_key(**it);
    if let Some(name) = kept.iter().find(is_left_out) {
        reader.problem(&at.path("disabled"), &format!("{name} cannot be disabled here: enable it again"));
    }
    set
}

fn check_name(at: &At<'_>, name: &str, reader: &mut Reader) {
    let is_known = PLUGINS.iter().any(|it| it.name == name) || BUILT_IN.contains(&name) || name == PREEMPTION;
    if !is_known {
        reader.problem(&at.path("name"), &format!("plugin {name:?} does not exist"));
    }
}
