//! Traces: what the kubelet is told, line by line, and below each line what it wants done.
//!
//! `UPDATE=1 cargo test` rewrites the indented lines of every file in `testdata`.

mod extremes;
mod show;
mod world;

use std::fmt::Write as _;

use world::World;

#[test]
fn traces() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{folder} holds no trace");
    let mut wrong = Vec::new();
    for path in paths {
        let expected = std::fs::read_to_string(&path).unwrap();
        let actual = run(&expected);
        if actual == expected {
            continue;
        }
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, actual).unwrap();
        } else {
            wrong.push(format!("{}:\n{}", path.display(), difference(&expected, &actual)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A line that is not indented and no comment is told to a world; `----` begins another world.
fn run(text: &str) -> String {
    let mut world = World::new();
    let mut out = String::new();
    for line in text.lines().filter(|it| !it.starts_with("  ")) {
        let _ = writeln!(out, "{line}");
        match line {
            "----" => world = World::new(),
            line if line.is_empty() || line.starts_with('#') => {}
            line => world.tell(line).iter().for_each(|it| {
                let _ = writeln!(out, "  {it}");
            }),
        }
    }
    out
}

/// The first line that differs, with those before it.
fn difference(expected: &str, actual: &str) -> String {
    let same = expected.lines().zip(actual.lines()).take_while(|(a, b)| a == b).count();
    let shown = |text: &str| text.lines().skip(same.saturating_sub(3)).take(8).collect::<Vec<_>>().join("\n");
    format!("expected\n{}\nactual\n{}", shown(expected), shown(actual))
}
