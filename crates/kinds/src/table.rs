//! All rows that are served at one moment: the constant ones, and those of definitions. A value that is replaced as a whole.

use std::{collections::BTreeMap, sync::Arc};

use crate::{KINDS, Kind, KindRef, by_kind, by_path};

/// What is served. Cheap to copy: a change of a definition makes a new one.
#[derive(Clone, Default)]
pub struct Kinds {
    /// Sorted as [`KINDS`] is.
    custom: BTreeMap<Place, Arc<Kind>>,
}

/// Group, version and plural.
type Place = (String, String, String);

fn place(kind: &Kind) -> Place {
    let resource = &kind.resource;
    (resource.group.to_string(), resource.version.to_string(), resource.plural.to_string())
}

impl Kinds {
    /// With these rows of definitions, and no others. What a built-in row has already it keeps.
    pub fn with(rows: impl IntoIterator<Item = Arc<Kind>>) -> Self {
        let is_free = |it: &Arc<Kind>| by_path(&it.resource.group, &it.resource.version, &it.resource.plural).is_none();
        Self { custom: rows.into_iter().filter(is_free).map(|it| (place(&it), it)).collect() }
    }

    /// See [`by_path`].
    pub fn by_path(&self, group: &str, version: &str, plural: &str) -> Option<KindRef> {
        let custom = || {
            let place = (group.to_owned(), version.to_owned(), plural.to_owned());
            self.custom.get(&place).cloned().map(KindRef::Custom)
        };
        match by_path(group, version, plural) {
            Some(kind) => Some(KindRef::BuiltIn(kind)),
            None if self.custom.is_empty() => None,
            None => custom(),
        }
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

    fn custom_row(&self, api_version: &str, kind: &str) -> Option<&Arc<Kind>> {
        let (group, version) = api_version.split_once('/')?;
        let from = (group.to_owned(), version.to_owned(), String::new());
        let of_version = self.custom.range(from..).take_while(|((of, at, _), _)| of == group && at == version);
        of_version.map(|it| it.1).find(|it| it.resource.kind == kind)
    }

    /// Every row: the built-in ones first.
    pub fn iter(&self) -> impl Iterator<Item = KindRef> + Clone {
        KINDS.iter().map(KindRef::BuiltIn).chain(self.custom())
    }

    pub fn custom(&self) -> impl Iterator<Item = KindRef> + Clone {
        self.custom.values().cloned().map(KindRef::Custom)
    }
}
