//! For any objects a and b of any kind: each patch computed from a to b, applied to a, gives b; so does applying b after a.

mod diffs;
mod objects;

use serde_json::Value;

use crate::{
    Shape, TYPES, Type,
    apply::{self, OneView, Operation, Owner, Owners, Set, Write},
    patch,
};
use objects::Random;

const SEEDS: u64 = 16;

/// Every kind: what has kind, version and metadata.
fn kinds() -> impl Iterator<Item = &'static Type> {
    let is_kind = |it: &&&'static Type| {
        ["apiVersion", "kind"].iter().all(|name| it.field(name).is_some())
            && it.field("metadata").is_some_and(|it| {
                matches!(it.shape, Shape::Object(of) if of.name == "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
            })
    };
    TYPES.iter().filter(is_kind).copied()
}

/// Runs `check` for pairs of objects of every kind; a failure names kind and seed.
fn for_all(check: impl Fn(&'static Type, &Value, &Value, &mut Random)) {
    let mut n_kinds = 0_u64;
    for (at, of) in kinds().enumerate() {
        n_kinds += 1;
        for seed in 0..SEEDS {
            let mut random = Random::new((at as u64) << 32 | seed);
            let (a, other) = (random.object(of), random.object(of));
            let b = if random.one_in(4) { other } else { random.mixed(of, &a, &other) };
            let told = std::panic::AssertUnwindSafe(|| check(of, &a, &b, &mut random));
            if std::panic::catch_unwind(told).is_err() {
                panic!("{} with seed {seed}\na: {a}\nb: {b}", of.name);
            }
        }
    }
    assert!(n_kinds > 50, "only {n_kinds} kinds");
}

#[test]
fn json_patches_lead_from_a_to_b() {
    for_all(|_, a, b, random| {
        let patch = diffs::json_patch(a, b, random);
        let result = patch::json(a.clone(), patch.to_string().as_bytes()).expect("it applies");
        assert_eq!(&result, b, "{patch}");
    });
}

#[test]
fn merge_patches_lead_from_a_to_b() {
    for_all(|_, a, b, _| {
        let patch = diffs::merge_patch(a, b);
        assert_eq!(&patch::merge(a.clone(), &patch), b, "{patch}");
    });
}

#[test]
fn strategic_merge_patches_lead_from_a_to_b() {
    for_all(|of, a, b, _| {
        let patch = diffs::strategic_patch(of, a, b);
        let result = patch::strategic(of.name, a.clone(), &patch).expect("it applies");
        assert_eq!(&result, b, "{patch}");
    });
}

fn write<'a>(of: &'static Type, manager: &'a str, operation: Operation, nothing: &'a Set<'static>) -> Write<'a> {
    let by = Owner::new(manager, operation, "v1", "");
    Write { of: of.into(), by, now: "2026-01-01T00:00:00Z", reset: nothing, views: &OneView }
}

/// What an object names, without what nobody owns.
fn ownable<'a>(of: &'static Type, object: &'a Value) -> Set<'a> {
    let nobodys: Vec<Vec<&'static str>> =
        ["name", "namespace", "uid", "selfLink", "generation", "resourceVersion", "creationTimestamp"]
            .into_iter()
            .map(|it| vec!["metadata", it])
            .chain([vec!["apiVersion"], vec!["kind"]])
            .collect();
    let nobodys: Vec<&[&'static str]> = nobodys.iter().map(Vec::as_slice).collect();
    apply::fields(of, object).without(&Set::of_fields(&nobodys))
}

#[test]
fn a_sole_applier_gets_what_it_applies() {
    let nothing = Set::default();
    for_all(|of, a, b, _| {
        let write = write(of, "sole", Operation::Apply, &nothing);
        let first = apply::apply(&write, None, a, Owners::default(), false).expect("nobody is in the way");
        let live = first.object.expect("it was created");
        assert_eq!(&live, a);
        let owners = first.owned.owners.write();
        let owners = Owners::read(&owners).expect("the owners were written");
        let second = apply::apply(&write, Some(&live), b, owners, false).expect("nobody is in the way");
        match &second.object {
            Some(now) => assert_eq!(now, b),
            // Another order alone of items that have keys is no change (`Updater.Apply`).
            None => assert!(apply::compare(of, Some(&live), b).is_same(), "{b} is not applied"),
        }
        let owned = second.owned.owners.0.first().map(|it| it.set().into_owned()).unwrap_or_default();
        assert_eq!(owned, ownable(of, b));
    });
}

#[test]
fn a_forced_applier_gets_what_it_applies_and_others_keep_the_rest() {
    let nothing = Set::default();
    for_all(|of, a, b, _| {
        let creator = write(of, "creator", Operation::Update, &nothing);
        let owners = apply::update(&creator, None, a, Owners::default()).owners.write();
        let applier = write(of, "applier", Operation::Apply, &nothing);
        let read = || Owners::read(&owners).expect("the owners were written");
        let applied = apply::apply(&applier, Some(a), b, read(), true).expect("it is forced");
        let now = applied.object.as_ref().unwrap_or(a);
        // Applying again changes nothing: all that b names is there.
        let owners = applied.owned.owners.write();
        let again = Owners::read(&owners).expect("the owners were written");
        let again = apply::apply(&applier, Some(now), b, again, false).expect("all of it is its own");
        assert!(again.object.is_none() && again.owned.same, "{:?}", again.object);
        for field in ownable(of, a).paths() {
            assert!(apply::fields(of, now).paths().contains(&field), "{field} is lost");
        }
    });
}

#[test]
fn every_field_has_an_owner_and_every_owner_a_field() {
    let nothing = Set::default();
    for_all(|of, a, b, _| {
        let owners = apply::update(&write(of, "first", Operation::Update, &nothing), None, a, Owners::default());
        let owners = owners.owners.write();
        if owners.is_empty() {
            return; // What nobody owned is not tracked.
        }
        let owners = Owners::read(&owners).expect("the owners were written");
        let owners = apply::update(&write(of, "second", Operation::Update, &nothing), Some(a), b, owners).owners;
        let owned = owners.0.iter().fold(Set::default(), |all, it| all.union(it.set().into_owned()));
        let there = apply::compare(of, None, b);
        // Who makes a value zero owns it, though Go omits a zero.
        let changes = apply::compare(of, Some(a), b);
        // A struct of which nothing is left stays where Go writes it empty: whoever owned it still does.
        let stayed = apply::compare(of, None, a).added.difference(&changes.removed);
        let there = there.added.union(there.modified).union(changes.modified).union(stayed);
        assert!(there.contains(&owned), "{:?}", owned.clone().difference(&there).paths());
        let ownable = ownable(of, b);
        assert!(owned.contains(&ownable), "{:?}", ownable.difference(&owned).paths());
    });
}

#[test]
fn what_is_compared_with_itself_is_the_same() {
    for_all(|of, a, b, _| {
        assert!(apply::compare(of, Some(a), a).is_same());
        let (there, back) = (apply::compare(of, Some(a), b), apply::compare(of, Some(b), a));
        assert_eq!((there.added, there.removed, there.modified), (back.removed, back.added, back.modified));
    });
}
