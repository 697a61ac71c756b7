//! Every path the table of kinds gives the API, and what each method does there.

use corten_kinds::{KINDS, Kind, Subresource, Verb};

/// Where in the API a path of a kind stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathForm {
    /// `/api/v1/pods`: all objects of a namespaced kind.
    AllNamespaces,
    /// `/api/v1/namespaces/{namespace}/pods`, or `/api/v1/nodes` for a kind of the cluster.
    Collection,
    /// `/api/v1/namespaces/{namespace}/pods/{name}`.
    Object,
    /// `/api/v1/namespaces/{namespace}/pods/{name}/log`.
    Subresource(Subresource),
    /// `/api/v1/watch/pods`, the older way to say `?watch=true`.
    WatchAllNamespaces,
    /// `/api/v1/watch/namespaces/{namespace}/pods`.
    WatchCollection,
    /// `/api/v1/watch/namespaces/{namespace}/pods/{name}`.
    WatchObject,
}

/// One path of the API with its verbs.
#[derive(Clone, Copy)]
pub struct Pattern<'k> {
    pub kind: &'k Kind,
    pub place: PathForm,
}

/// Every path of every kind at which some method does something.
pub fn patterns() -> impl Iterator<Item = Pattern<'static>> {
    use PathForm as At;
    const PLACES: [At; 6] =
        [At::AllNamespaces, At::Collection, At::Object, At::WatchAllNamespaces, At::WatchCollection, At::WatchObject];
    KINDS.iter().flat_map(|kind| {
        let below = kind.subresources.iter().map(|it| At::Subresource(*it));
        PLACES.into_iter().chain(below).map(move |place| Pattern { kind, place }).filter(Pattern::exists)
    })
}

impl Pattern<'_> {
    /// Does any method do anything here?
    pub fn exists(&self) -> bool {
        let is_of_all = matches!(self.place, PathForm::AllNamespaces | PathForm::WatchAllNamespaces);
        let is_in_scope = !is_of_all || self.kind.resource.namespaced;
        is_in_scope && self.subresource().is_none_or(|it| self.kind.has(it)) && self.verbs().next().is_some()
    }

    /// The verbs that can be asked for here, as RBAC names them.
    pub fn verbs(&self) -> impl Iterator<Item = Verb> {
        let at_place: &'static [Verb] = match self.place {
            PathForm::AllNamespaces => &[Verb::List, Verb::Watch],
            PathForm::Collection => &[Verb::List, Verb::Watch, Verb::Create, Verb::DeleteCollection],
            PathForm::Object => &[Verb::Get, Verb::Update, Verb::Patch, Verb::Delete],
            PathForm::Subresource(it) => it.verbs(),
            PathForm::WatchAllNamespaces | PathForm::WatchCollection | PathForm::WatchObject => &[Verb::Watch],
        };
        let kind = self.kind;
        let is_subresource = self.subresource().is_some();
        at_place.iter().copied().filter(move |it| is_subresource || kind.allows(*it))
    }

    pub fn subresource(&self) -> Option<Subresource> {
        match self.place {
            PathForm::Subresource(it) => Some(it),
            _ => None,
        }
    }

    /// The path, with `{namespace}` and `{name}` where a request has its own.
    pub fn path(&self) -> String {
        let resource = &self.kind.resource;
        let collection = match self.place {
            PathForm::AllNamespaces | PathForm::WatchAllNamespaces => resource.collection_path(""),
            _ => resource.collection_pattern(),
        };
        let watched = || {
            let (root, below) = collection.split_at(resource.group_path().len());
            format!("{root}/watch{below}")
        };
        match self.place {
            PathForm::AllNamespaces | PathForm::Collection => collection,
            PathForm::Object => format!("{collection}/{{name}}"),
            PathForm::Subresource(it) => format!("{collection}/{{name}}/{}", it.as_str()),
            PathForm::WatchAllNamespaces | PathForm::WatchCollection => watched(),
            PathForm::WatchObject => format!("{}/{{name}}", watched()),
        }
    }
}
