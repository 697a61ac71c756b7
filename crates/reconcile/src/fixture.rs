//! Text worlds for tests of minds: a few lines of objects, `----`, and the plan they lead to.
//!
//! ```text
//! # The pod that is not ready goes first.
//! replica-set web replicas=1
//! pod web-1 owner=replica-set/web ready
//! pod web-2 owner=replica-set/web
//! ----
//! delete Pod default/web-2
//! ```
//!
//! A file holds any number of such cases, each begun by its `# comment`. `UPDATE=1 cargo test` rewrites what stands
//! below the lines. This is the one file of its floor that touches the disk, and only tests are built with it.

mod extremes;
mod line;
mod storage;
mod words;
mod workloads;
mod world;

use std::fmt::Write as _;

use corten_meta::Key;
use corten_schema::extremes::Cases;

pub use world::World;

use crate::{Controller, Plan};

/// Checks every case of every file of text worlds in the folder `dir` against `controller`; and that it comes to a plan
/// whatever number of theirs is at its end.
///
/// # Panics
/// Where a plan is not the expected one, with both; or where a file or line cannot be read.
pub fn check(controller: &dyn Controller, dir: &str) {
    check_with(dir, |world| {
        let mut text = String::new();
        let watches = controller.watches();
        let plan = controller.reconcile(&world.view(&watches), &world.asked(), world.now);
        describe(&plan, world, &mut text);
        text
    });
    let (cases, mut tried) = (Cases::default(), extremes::Tried::default());
    each_world(dir, |case, world| {
        extremes::each(&world, &mut tried, |change, world| {
            cases.run(&format!("{case}, {change}"), || {
                controller.reconcile(&world.view(&controller.watches()), &world.asked(), world.now)
            });
        });
    });
}

/// Every world of every file of cases in `dir`, with some number at the end of what the API takes: `run` must come to an end
/// with each.
///
/// # Panics
/// As [`check`]; or where `run` does.
pub fn each_extreme(dir: &str, mut run: impl FnMut(&World)) {
    let (cases, mut tried) = (Cases::default(), extremes::Tried::default());
    each_world(dir, |case, world| {
        extremes::each(&world, &mut tried, |change, world| cases.run(&format!("{case}, {change}"), || run(world)));
    });
}

/// As [`check`], for minds that are no controllers: `run` turns a world into the text that is expected of it.
///
/// # Panics
/// As [`check`].
pub fn check_with(dir: &str, run: impl Fn(&World) -> String) {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|error| panic!("read {dir}: {error}"));
    let mut paths: Vec<_> = entries.map(|it| it.expect("the folder can be read").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{dir} holds no case");
    paths.iter().for_each(|it| check_file(&it.to_string_lossy(), &run));
}

/// Every world of every file of cases in the folder `dir`, with the file's name and the case's first line.
///
/// # Panics
/// As [`check`].
pub fn each_world(dir: &str, mut run: impl FnMut(&str, World)) {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|error| panic!("read {dir}: {error}"));
    for path in entries.map(|it| it.expect("the folder can be read").path()) {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("read {path:?}: {error}"));
        for case in cases(&text) {
            let world_text = case.split_once("----\n").map_or(case, |it| it.0);
            let world = World::parse(world_text).unwrap_or_else(|error| panic!("{path:?}: {error} in\n{world_text}"));
            run(&format!("{}: {}", path.display(), case.lines().next().unwrap_or_default()), world);
        }
    }
}

fn check_file(path: &str, run: &impl Fn(&World) -> String) {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("read {path}: {error}"));
    let mut actual = String::new();
    for case in cases(&text) {
        let world_text = case.split_once("----\n").map_or(case, |it| it.0);
        let world = World::parse(world_text).unwrap_or_else(|error| panic!("{path}: {error} in\n{world_text}"));
        let _ = write!(actual, "{}----\n{}\n", with_newline(world_text), run(&world));
    }
    let actual = format!("{}\n", actual.trim_end());
    if actual == text {
        return;
    }
    #[expect(clippy::disallowed_methods, reason = "the switch that rewrites expectations; tests only")]
    let update = std::env::var("UPDATE").is_ok();
    assert!(update, "{path}: {}\nUPDATE=1 rewrites it. Now it would be:\n{actual}", first_difference(&text, &actual));
    std::fs::write(path, actual).unwrap_or_else(|error| panic!("write {path}: {error}"));
}

/// A case begins with a comment that follows an empty line (or opens the file).
fn cases(text: &str) -> Vec<&str> {
    let mut starts: Vec<usize> = text.match_indices("\n\n#").map(|(at, _)| at + 2).collect();
    starts.insert(0, 0);
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(start, end)| &text[*start..end]).collect()
}

fn with_newline(text: &str) -> String {
    format!("{}\n", text.trim_end())
}

fn first_difference(expected: &str, actual: &str) -> String {
    let differing = expected.lines().zip(actual.lines()).enumerate().find(|(_, it)| it.0 != it.1);
    match differing {
        Some((idx, (expected, actual))) => format!("line {}: expected\n  {expected}\nfound\n  {actual}", idx + 1),
        None => "one is longer than the other".into(),
    }
}

/// A plan as fixtures write it: effects, then waits, then the next wake-up.
fn describe(plan: &Plan, world: &World, text: &mut String) {
    for (at, effect) in plan.effects.iter().flat_map(|it| it.parts().iter().enumerate()) {
        let is_told = matches!(effect, crate::Effect::Event { .. } | crate::Effect::Count(_));
        let then = if at > 0 && !is_told { "then " } else { "" };
        let _ = writeln!(text, "{then}{effect}");
        if let (crate::Effect::Create { object, .. }, true) = (effect, world.shows_objects) {
            let _ = writeln!(text, "  {object}");
        }
    }
    for wait in &plan.waits {
        let on = wait.on.as_ref().map(|it| format!(" on {it}")).unwrap_or_default();
        let _ = writeln!(text, "wait {}{on} ({:?}): {}", wait.reason, wait.actor, wait.message);
    }
    if let Some(at) = plan.wake_at {
        let _ = writeln!(text, "wake in {} ms", at.unix_millis() - world.now.unix_millis());
    }
}

/// `kind/name` in the default namespace, or `kind/namespace/name`.
fn reference(text: &str) -> Result<(corten_meta::Resource, Key), String> {
    let (kind, name) = text.split_once('/').ok_or_else(|| format!("{text:?} is not kind/name"))?;
    let resource = line::resource(kind)?;
    let key = match name.split_once('/') {
        Some((namespace, name)) => Key::new(namespace, name),
        None if resource.namespaced => Key::new("default", name),
        None => Key::cluster(name),
    };
    Ok((resource, key))
}
