//! What must hold for every row.

use std::collections::BTreeSet;

use super::*;

mod columns;
mod extremes;
mod fixtures;
#[path = "../../schema/src/golden.rs"]
mod golden;
mod golden_objects;
mod odd_objects;
mod status_metadata;
mod versions;
mod wide;

#[test]
fn rows_are_sorted_and_found() {
    let places: Vec<_> =
        KINDS.iter().map(|it| (&*it.resource.group, &*it.resource.version, &*it.resource.plural)).collect();
    assert!(places.is_sorted(), "{places:?}");
    for kind in KINDS.iter() {
        let resource = &kind.resource;
        let found = by_path(&resource.group, &resource.version, &resource.plural).expect("by path");
        assert_eq!(found.resource, *resource);
        assert_eq!(by_kind(&resource.api_version(), &resource.kind).expect("by kind").resource, *resource);
        if kind.view_of.is_none() {
            assert_eq!(by_qualified(&resource.qualified()).expect("by qualified name").resource, *resource);
        }
    }
    assert!(by_path("apps", "v1", "pods").is_none());
    assert!(by_kind("v1", "Deployment").is_none());
}

#[test]
fn names_are_unique() {
    let mut seen = BTreeSet::new();
    // The metrics of nodes and pods are named as what they are of, which comes first.
    let is_of_others = |it: &&Kind| it.view_of.is_none() && it.resource.group != "metrics.k8s.io";
    for kind in KINDS.iter().filter(is_of_others) {
        let names: BTreeSet<&str> =
            [&*kind.resource.plural, &*kind.singular].into_iter().chain(kind.short_names.iter()).collect();
        for name in names {
            assert!(seen.insert(name), "{name} names two kinds");
        }
    }
}

#[test]
fn every_built_in_group_is_served_here_alone_but_that_of_metrics() {
    for kind in KINDS.iter() {
        let group = &*kind.resource.group;
        assert_eq!(served_here_alone(group), group != "metrics.k8s.io", "{group}");
    }
}

#[test]
fn every_row_has_a_type() {
    for kind in KINDS.iter() {
        assert!(corten_schema::find(kind.schema.name()).is_some(), "{}", kind.schema.name());
    }
}
