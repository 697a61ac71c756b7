//! What other API servers behind this one hold: which resources they serve, and whether that is known.

use std::collections::BTreeSet;

use corten_meta::{Key, Resource};
use corten_reconcile::{Origin, View, Wake, Watch, served::registered_elsewhere};

use crate::projections::{ApiGroup, ApiService, ApiVersion, Bare, defined};

/// More resources than these are not looked at: each costs a watch.
const RESOURCES_MAX: usize = 500;

/// A watch of each resource whose objects are elsewhere and can be listed and deleted, through its metadata.
pub(crate) fn watches(view: &View, wake: Wake) -> Vec<Watch> {
    let watch =
        |(resource, is_watched)| Watch::of::<Bare>(resource, wake).of_metadata().from(Origin::Elsewhere { is_watched });
    served(view).looked_at.into_iter().map(watch).collect()
}

pub(crate) fn resources(view: &View) -> impl Iterator<Item = Resource> {
    served(view).looked_at.into_iter().map(|it| it.0)
}

/// Each in the first of its versions, as discovery has them.
#[derive(Default)]
struct Served {
    /// With whether it can be watched.
    looked_at: Vec<(Resource, bool)>,
    /// Past what is looked at: nothing is known of its objects.
    beyond: Vec<Resource>,
}

fn served(view: &View) -> Served {
    let mut found = Served::default();
    if registered_elsewhere(view).next().is_none() {
        return found;
    }
    let mut seen: BTreeSet<(String, String)> =
        defined(view).map(|it| (it.group.to_string(), it.plural.to_string())).collect();
    for group in view.list::<ApiGroup>() {
        let name = &group.metadata.name;
        for version in group.versions.iter().filter(|it| is_of_another(view, name, &it.version)) {
            for it in version.resources.iter().filter(|it| it.has("list") && it.has("delete")) {
                if !seen.insert((name.clone(), it.resource.clone())) {
                    continue;
                }
                let resource = Resource {
                    group: name.clone().into(),
                    version: version.version.clone().into(),
                    kind: it.response_kind.kind.clone().into(),
                    plural: it.resource.clone().into(),
                    namespaced: it.scope == "Namespaced",
                };
                if found.looked_at.len() < RESOURCES_MAX {
                    found.looked_at.push((resource, it.has("watch")));
                } else {
                    found.beyond.push(resource);
                }
            }
        }
    }
    found
}

fn is_of_another(view: &View, group: &str, version: &str) -> bool {
    let service = view.get::<ApiService>(&Key::cluster(format!("{version}.{group}")));
    service.is_some_and(ApiService::is_elsewhere)
}

/// A version of which it is not known what its server holds.
pub(crate) struct Undiscovered<'a> {
    pub(crate) api_service: &'a str,
    pub(crate) group_version: String,
    /// What the availability check said, where that is why.
    pub(crate) message: &'a str,
}

/// In upstream's order, that of the versions' names.
pub(crate) fn undiscovered(view: &View) -> Vec<Undiscovered<'_>> {
    let mut undiscovered: Vec<Undiscovered<'_>> = registered_elsewhere(view).filter_map(|it| gap(view, it)).collect();
    undiscovered.sort_by(|a, b| a.group_version.cmp(&b.group_version));
    undiscovered
}

fn gap<'a>(view: &'a View, service: &'a ApiService) -> Option<Undiscovered<'a>> {
    let (group, version) = (&service.spec.group, &service.spec.version);
    let gap = |message| Undiscovered {
        api_service: &service.metadata.name,
        group_version: format!("{group}/{version}"),
        message,
    };
    match service.available() {
        Some(it) if it.status == "True" => {}
        Some(it) => return Some(gap(&it.message)),
        None => return Some(gap("it has not been asked yet")),
    }
    let versions = view.get::<ApiGroup>(&Key::cluster(&**group)).map(|it| &it.versions);
    let is_current = |it: &ApiVersion| it.version == *version && it.freshness == "Current";
    let is_known = versions.is_some_and(|it| it.iter().any(is_current));
    (!is_known).then(|| gap("what it serves has not been read yet"))
}

/// What a server that is taken to answer holds and has not told yet, as after a start. Of one that does not answer nothing is
/// to be learnt.
pub(crate) fn is_being_discovered(view: &View) -> bool {
    let answers = |it: &ApiService| it.available().is_none_or(|it| it.status != "False");
    registered_elsewhere(view).any(|it| answers(it) && gap(view, it).is_some())
        || resources(view).any(|it| view.table(&it).is_none())
}

/// The resources in namespaces whose objects have not been listed once.
pub(crate) fn unlisted(view: &View) -> Vec<Resource> {
    resources(view).filter(|it| it.namespaced && view.table(it).is_none()).collect()
}

/// Resources in namespaces that are not looked at, of one group and version.
pub(crate) struct Beyond {
    pub(crate) first: Resource,
    pub(crate) n: usize,
}

impl Beyond {
    pub(crate) fn message(&self) -> String {
        let others = if self.n > 1 { format!(" and {} others of its group", self.n - 1) } else { String::new() };
        format!("{}{others} are not looked at: other servers have more than {RESOURCES_MAX} resources", self.first)
    }
}

pub(crate) fn beyond(view: &View) -> Vec<Beyond> {
    let mut found: Vec<Beyond> = Vec::new();
    for first in served(view).beyond.into_iter().filter(|it| it.namespaced) {
        // Those of one group and version come one after another.
        match found.last_mut().filter(|it| (&it.first.group, &it.first.version) == (&first.group, &first.version)) {
            Some(it) => it.n += 1,
            None => found.push(Beyond { first, n: 1 }),
        }
    }
    found
}
