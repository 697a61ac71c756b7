//! All rows that are served at one moment: the constant ones, and those of definitions. A value that is replaced as a whole.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use corten_meta::Resource;

use crate::{KINDS, Kind, KindRef, by_journal, by_kind, by_path};

/// What is served. Cheap to copy: a change of a definition makes a new one.
#[derive(Clone, Default)]
pub struct Kinds {
    /// By group; of each, sorted by version and plural as [`KINDS`] is.
    custom: BTreeMap<Box<str>, Arc<[Arc<Kind>]>>,
}

/// The built-in rows that show the same objects, by group, version and plural of the one that is stored.
static VERSIONS: LazyLock<BTreeMap<GroupVersionResource<'static>, Vec<&'static Kind>>> = LazyLock::new(|| {
    let mut versions: BTreeMap<_, Vec<_>> = BTreeMap::new();
    KINDS.iter().for_each(|it| versions.entry(place(it.storage_resource())).or_default().push(it));
    versions
});

/// Group, version and plural.
type GroupVersionResource<'a> = (&'a str, &'a str, &'a str);

fn place(resource: &Resource) -> GroupVersionResource<'_> {
    (&resource.group, &resource.version, &resource.plural)
}

impl Kinds {
    /// With these rows of definitions, and no others. What a built-in row has already it keeps.
    pub fn with(rows: impl IntoIterator<Item = Arc<Kind>>) -> Self {
        let is_free = |it: &Arc<Kind>| by_path(&it.resource.group, &it.resource.version, &it.resource.plural).is_none();
        let mut groups: BTreeMap<Box<str>, Vec<Arc<Kind>>> = BTreeMap::new();
        for row in rows.into_iter().filter(is_free) {
            groups.entry((*row.resource.group).into()).or_default().push(row);
        }
        let sorted = |mut rows: Vec<Arc<Kind>>| {
            // Of two of one place the later is served.
            rows.reverse();
            rows.sort_by(|a, b| place(&a.resource).cmp(&place(&b.resource)));
            rows.dedup_by(|a, b| place(&a.resource) == place(&b.resource));
            rows.into()
        };
        Self { custom: groups.into_iter().map(|(group, rows)| (group, sorted(rows))).collect() }
    }

    /// See [`by_path`].
    pub fn by_path(&self, group: &str, version: &str, plural: &str) -> Option<KindRef> {
        if let Some(kind) = by_path(group, version, plural) {
            return Some(KindRef::BuiltIn(kind));
        }
        let rows = self.custom.get(group)?;
        let at = rows.binary_search_by(|it| place(&it.resource).cmp(&(group, version, plural))).ok()?;
        Some(KindRef::Custom(rows[at].clone()))
    }

    /// See [`by_kind`].
    pub fn by_kind(&self, api_version: &str, kind: &str) -> Option<KindRef> {
        if let Some(kind) = by_kind(api_version, kind) {
            return Some(KindRef::BuiltIn(kind));
        }
        self.custom_row(api_version, kind).cloned().map(KindRef::Custom)
    }

    /// As [`Kinds::by_kind`], for who only looks.
    pub fn row(&self, api_version: &str, kind: &str) -> Option<&Kind> {
        if let Some(kind) = by_kind(api_version, kind) {
            return Some(kind);
        }
        self.custom_row(api_version, kind).map(|it| &**it)
    }

    /// See [`by_journal`]: that row, and those of definitions whose objects a Journal of this name may be about, with the name of
    /// each.
    pub fn by_journal<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (KindRef, &'a str)> {
        let built_in = by_journal(name).map(|(kind, object)| (KindRef::BuiltIn(kind), object));
        let custom = self.custom().filter_map(move |kind| {
            let object = name.strip_prefix(&kind.resource.qualified())?.strip_prefix('.')?;
            (!object.is_empty()).then_some((kind, object))
        });
        built_in.into_iter().chain(custom)
    }

    fn custom_row(&self, api_version: &str, kind: &str) -> Option<&Arc<Kind>> {
        let (group, version) = api_version.split_once('/')?;
        self.custom.get(group)?.iter().find(|it| it.resource.version == version && it.resource.kind == kind)
    }

    /// All rows that show the objects of this one, itself among them.
    pub fn versions<'a>(&'a self, of: &'a Kind) -> impl Iterator<Item = KindRef> + 'a {
        let stored = of.storage_resource();
        let built_in = if of.is_custom() { None } else { VERSIONS.get(&place(stored)) };
        let custom = if of.is_custom() { self.custom.get(&*stored.group) } else { None };
        let custom = custom.into_iter().flat_map(|it| it.iter()).filter(move |it| it.storage_resource() == stored);
        built_in.into_iter().flatten().map(|it| KindRef::BuiltIn(it)).chain(custom.cloned().map(KindRef::Custom))
    }

    /// Every row: the built-in ones first.
    pub fn iter(&self) -> impl Iterator<Item = KindRef> + Clone {
        KINDS.iter().map(KindRef::BuiltIn).chain(self.custom())
    }

    pub fn custom(&self) -> impl Iterator<Item = KindRef> + Clone {
        self.custom.values().flat_map(|it| it.iter()).cloned().map(KindRef::Custom)
    }
}
