//! Which file of a crate imports which, and where folders import each other in a circle.
//!
//! A folder is a child of `src`: `x.rs`, `x/mod.rs` and all below `x/` are one. A module that only declares or passes on another
//! imports nothing of it: who imports a passed-on name imports the file that defines it. Tests import what they like.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result};

/// Files that import each other in a circle can only be understood together.
const CIRCLE_FILES_MAX: usize = 12;

/// The imports of one crate: for each file, by its path below the root of the workspace, the files that it names.
pub(crate) struct Imports {
    crate_dir: String,
    arrows: BTreeMap<String, BTreeSet<String>>,
}

impl Imports {
    /// Of the crate whose sources are `files`; their paths are below `root`.
    pub(crate) fn of(root: &Path, crate_dir: &str, files: &[String]) -> Result<Self> {
        let src = format!("{crate_dir}/src/");
        let mut texts = BTreeMap::new();
        for file in files.iter().filter(|it| it.starts_with(&src) && !is_test(it)) {
            let text = fs::read_to_string(root.join(file)).with_context(|| format!("reading {file}"))?;
            texts.insert(file.clone(), text);
        }
        Ok(Self::read(crate_dir, &texts))
    }

    fn read(crate_dir: &str, texts: &BTreeMap<String, String>) -> Self {
        let src = format!("{crate_dir}/src/");
        let modules: BTreeMap<Vec<String>, String> =
            texts.keys().map(|it| (module_of(it.strip_prefix(&src).unwrap_or(it)), it.clone())).collect();
        let names: BTreeMap<Vec<String>, Vec<Name>> =
            modules.iter().map(|(module, file)| (module.clone(), names_in(&texts[file], module))).collect();
        let tree = Tree { modules: &modules, names: &names };
        let mut arrows = BTreeMap::new();
        for (module, file) in &modules {
            let named = names[module].iter().filter(|it| !it.is_passed_on);
            let found: BTreeSet<String> =
                named.filter_map(|it| tree.file_of(&it.path, 8)).filter(|it| it != file).collect();
            arrows.insert(file.clone(), found);
        }
        Self { crate_dir: crate_dir.to_owned(), arrows }
    }

    /// Folders that import each other in a circle, and files that do in a large one.
    pub(super) fn sins(&self) -> Vec<String> {
        let folders = self.circles_of_folders().into_iter().flatten();
        let folders = folders.map(|it| format!("{}/src/{it}: is part of a circle of folders", self.crate_dir));
        let large = circles(&self.arrows).into_iter().filter(|it| it.len() > CIRCLE_FILES_MAX).flatten();
        folders
            .chain(large.map(|it| format!("{it}: is part of a circle of more than {CIRCLE_FILES_MAX} files")))
            .collect()
    }

    fn circles_of_folders(&self) -> Vec<BTreeSet<String>> {
        circles(&self.folders())
    }

    /// What each folder imports.
    fn folders(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut folders: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (file, found) in &self.arrows {
            let from = self.folder_of(file);
            let to = found.iter().map(|it| self.folder_of(it)).filter(|it| *it != from);
            folders.entry(from.clone()).or_default().extend(to);
        }
        folders
    }

    /// The folders by how many stand below each, where none is part of a circle: those of the lowest floor import none.
    pub(crate) fn floors(&self) -> Vec<Vec<String>> {
        let mut left = self.folders();
        let mut floors = Vec::new();
        while !left.is_empty() {
            let is_next = |it: &BTreeSet<String>| !it.iter().any(|it| left.contains_key(it));
            let floor: Vec<String> = left.iter().filter(|it| is_next(it.1)).map(|it| it.0.clone()).collect();
            if floor.is_empty() {
                break;
            }
            left.retain(|it, _| !floor.contains(it));
            floors.push(floor);
        }
        floors
    }

    fn folder_of(&self, file: &str) -> String {
        let below = file.strip_prefix(&self.crate_dir).and_then(|it| it.strip_prefix("/src/")).unwrap_or(file);
        below.split('/').next().unwrap_or_default().trim_end_matches(".rs").to_owned()
    }
}

fn is_test(file: &str) -> bool {
    file.ends_with("/tests.rs") || file.contains("/tests/") || file.ends_with("_tests.rs")
}

/// The path of the module that a file below `src` holds.
fn module_of(below: &str) -> Vec<String> {
    let mut path: Vec<String> = below.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if path.last().is_some_and(|it| it == "mod") || path == ["lib"] || path == ["main"] {
        path.pop();
    }
    path
}

/// A name that a file takes from its crate.
struct Name {
    path: Vec<String>,
    /// What it is called here.
    called: String,
    is_passed_on: bool,
}

struct Tree<'a> {
    modules: &'a BTreeMap<Vec<String>, String>,
    names: &'a BTreeMap<Vec<String>, Vec<Name>>,
}

impl Tree<'_> {
    /// The file that defines what `path` names, through at most `hops` modules that pass it on.
    fn file_of(&self, path: &[String], hops: u8) -> Option<String> {
        let (module, depth) =
            (0..=path.len()).rev().find_map(|n| self.modules.contains_key(&path[..n]).then(|| (&path[..n], n)))?;
        let passed_on = path
            .get(depth)
            .zip(self.names.get(module))
            .and_then(|(name, names)| names.iter().find(|it| it.is_passed_on && it.called == *name && it.path != path));
        match passed_on {
            Some(it) if hops > 0 => {
                let mut further = it.path.clone();
                further.extend_from_slice(&path[depth + 1..]);
                self.file_of(&further, hops - 1)
            }
            _ => self.modules.get(module).cloned(),
        }
    }
}

/// All names that a text takes from its crate: in `use`, and by a path in the middle of code.
fn names_in(text: &str, module: &[String]) -> Vec<Name> {
    let code = without_tests_and_comments(text);
    let mut names = Vec::new();
    let (mut rest, mut body) = (code.as_str(), String::new());
    while let Some(at) = next_use(rest) {
        let before = rest[..at.start].rsplit(['\n', ';', '}', '{']).next().unwrap_or_default().trim();
        let end = rest[at.end..].find(';').map_or(rest.len(), |it| at.end + it);
        let is_passed_on = before.starts_with("pub");
        for (path, called) in leaves(&rest[at.end..end]) {
            if let Some(path) = absolute(&path, module, true) {
                names.push(Name { path, called, is_passed_on });
            }
        }
        body.push_str(&rest[..at.start]);
        rest = &rest[end..];
    }
    body.push_str(rest);
    // What a file passes on it may need itself, too.
    let body: Vec<&str> = body.lines().filter(|it| !(it.contains("mod ") && it.ends_with(';'))).collect();
    let body = body.join("\n");
    let words: BTreeSet<&str> = body.split(|it: char| !it.is_alphanumeric() && it != '_').collect();
    let needed = names.iter().filter(|it| it.is_passed_on && words.contains(&*it.called));
    let needed: Vec<Name> =
        needed.map(|it| Name { path: it.path.clone(), called: String::new(), is_passed_on: false }).collect();
    names.extend(needed);
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            if code[..at].ends_with(|it: char| it.is_alphanumeric() || it == '_' || it == ':' || it == '$') {
                continue;
            }
            let path: String =
                code[at..].chars().take_while(|it| it.is_alphanumeric() || *it == '_' || *it == ':').collect();
            let path: Vec<String> = path.split("::").filter(|it| !it.is_empty()).map(str::to_owned).collect();
            if path.len() > 1
                && let Some(path) = absolute(&path, module, false)
            {
                names.push(Name { called: String::new(), path, is_passed_on: false });
            }
        }
    }
    names.extend(children_called(&code, module));
    names
}

/// `child::f()` in the file that declares `mod child`.
fn children_called(code: &str, module: &[String]) -> Vec<Name> {
    let declared = code.lines().map(str::trim).filter_map(|it| {
        let it =
            it.strip_prefix("pub(crate) ").or(it.strip_prefix("pub(super) ")).or(it.strip_prefix("pub ")).unwrap_or(it);
        it.strip_prefix("mod ")?.strip_suffix(';')
    });
    let mut names = Vec::new();
    for child in declared {
        let start = format!("{child}::");
        for (at, _) in code.match_indices(&start) {
            if code[..at].ends_with(|it: char| it.is_alphanumeric() || it == '_' || it == ':') {
                continue;
            }
            let path: String =
                code[at..].chars().take_while(|it| it.is_alphanumeric() || *it == '_' || *it == ':').collect();
            // What a `pub use` passes on is told by `next_use`.
            let line = code[..at].rsplit(['\n', ';']).next().unwrap_or_default().trim_start();
            if line.starts_with("pub") && line.contains("use ") {
                continue;
            }
            let mut whole = module.to_vec();
            whole.extend(path.split("::").filter(|it| !it.is_empty()).map(str::to_owned));
            names.push(Name { called: String::new(), path: whole, is_passed_on: false });
        }
    }
    names
}

fn next_use(code: &str) -> Option<std::ops::Range<usize>> {
    code.match_indices("use ").map(|(at, _)| at).find_map(|at| {
        let is_word = code[..at].chars().next_back().is_none_or(char::is_whitespace);
        is_word.then_some(at..at + 4)
    })
}

/// The single paths of a tree as in `a::{b, c::{self, d as e}}`, each with what it is called.
fn leaves(tree: &str) -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    let (mut prefixes, mut prefix, mut word) = (Vec::new(), Vec::<String>::new(), String::new());
    let mut close = |prefix: &[String], word: &mut String| {
        let text = std::mem::take(word);
        let (path, alias) = text.split_once(" as ").unwrap_or((&text, ""));
        if path.trim().is_empty() {
            return;
        }
        let mut whole = prefix.to_vec();
        let is_first = prefix.is_empty();
        let words = path.split("::").map(|it| it.trim().to_owned());
        whole.extend(words.filter(|it| !it.is_empty() && (is_first || it != "self")));
        let called = if alias.is_empty() { whole.last().cloned().unwrap_or_default() } else { alias.trim().to_owned() };
        found.push((whole, called));
    };
    for it in tree.chars() {
        match it {
            '{' => {
                prefixes.push(prefix.clone());
                prefix.extend(word.split("::").map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()));
                word.clear();
            }
            ',' => close(&prefix, &mut word),
            '}' => {
                close(&prefix, &mut word);
                prefix = prefixes.pop().unwrap_or_default();
            }
            it => word.push(it),
        }
    }
    close(&prefix, &mut word);
    found
}

/// The path from the crate's root. In `use`, a path that begins with none of its own words may begin with a child's name.
fn absolute(path: &[String], module: &[String], in_use: bool) -> Option<Vec<String>> {
    let n_up = path.iter().take_while(|it| *it == "super").count();
    match path.first()?.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "super" if n_up <= module.len() => {
            let mut whole = module[..module.len() - n_up].to_vec();
            whole.extend_from_slice(&path[n_up..]);
            Some(whole)
        }
        "super" => None,
        first => {
            let mut whole = module.to_vec();
            whole.extend_from_slice(if first == "self" { &path[1..] } else { path });
            in_use.then_some(whole)
        }
    }
}

/// The code alone: modules of tests stand at a file's end.
fn without_tests_and_comments(text: &str) -> String {
    let product = text.lines().take_while(|it| !it.starts_with("mod tests {"));
    product.map(|it| if it.trim_start().starts_with("//") { "" } else { it }).collect::<Vec<_>>().join("\n")
}

/// The sets of nodes that reach each other, of more than one (Tarjan, without recursion: by reachability, the graphs are small).
fn circles(arrows: &BTreeMap<String, BTreeSet<String>>) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> = arrows.keys().map(|it| (it, reach(arrows, it))).collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for node in arrows.keys().filter(|it| reached[it].contains(it)) {
        if found.iter().any(|it| it.contains(node)) {
            continue;
        }
        let circle = reached[node].iter().filter(|it| reached.get(**it).is_some_and(|back| back.contains(node)));
        found.push(circle.map(|it| (*it).clone()).collect());
    }
    found
}

fn reach<'a>(arrows: &'a BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut ahead: Vec<&String> = arrows.get(from).into_iter().flatten().collect();
    while let Some(node) = ahead.pop() {
        if found.insert(node) {
            ahead.extend(arrows.get(node).into_iter().flatten());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(files: &[(&str, &str)]) -> Imports {
        let texts = files.iter().map(|(file, text)| (format!("crates/x/src/{file}"), (*text).to_owned())).collect();
        Imports::read("crates/x", &texts)
    }

    #[test]
    fn circles_are_seen() {
        for (what, files, expected) in [
            ("none", &[("lib.rs", "mod a;\nmod b;"), ("a.rs", "use crate::b::B;"), ("b.rs", "")][..], &[][..]),
            ("two files", &[("a.rs", "use crate::b::B;"), ("b.rs", "use super::a::A;")], &["a", "b"]),
            (
                "in code",
                &[("a.rs", "fn f() { crate::b::g(); }"), ("b.rs", "use crate::{\n    a::{self, A},\n};")],
                &["a", "b"],
            ),
            (
                "by way of a third",
                &[("a.rs", "use crate::b;"), ("b.rs", "use crate::c;"), ("c.rs", "use crate::a;")],
                &["a", "b", "c"],
            ),
            (
                "by different files",
                &[("a/x.rs", "use crate::b::y::Y;"), ("b/z.rs", "use crate::a::w;"), ("a/w.rs", ""), ("b/y.rs", "")],
                &["a", "b"],
            ),
            ("within a folder", &[("a/mod.rs", "mod x;\nfn f() { x::g(); }"), ("a/x.rs", "use super::f;")], &[]),
            ("with the root", &[("lib.rs", "mod a;\nfn f() { a::g(); }"), ("a.rs", "use crate::f;")], &["a", "lib"]),
            (
                "a name that is passed on",
                &[("lib.rs", "mod a;\nmod b;\npub use b::{B as C};"), ("a.rs", "use crate::C;"), ("b.rs", "")],
                &[],
            ),
            (
                "a name that is passed on and needed",
                &[("lib.rs", "mod a;\npub use a::A;\nstruct B(A);"), ("a.rs", "use crate::B;")],
                &["a", "lib"],
            ),
            ("a test", &[("a.rs", "use crate::b;"), ("b.rs", "mod tests {\n    use crate::a;\n}")], &[]),
            ("a comment", &[("a.rs", "use crate::b;"), ("b.rs", "// See crate::a::f.")], &[]),
        ] {
            let found: Vec<String> = imports(files).circles_of_folders().into_iter().flatten().collect();
            assert_eq!(found, expected, "{what}");
        }
    }

    #[test]
    fn folders_have_floors() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\nmod c;"),
            ("a.rs", "use crate::b::B;"),
            ("b/mod.rs", "use crate::c::C;"),
            ("c.rs", ""),
        ];
        assert_eq!(
            imports(&files).floors(),
            [vec!["c".to_owned(), "lib".to_owned()], vec!["b".to_owned()], vec!["a".to_owned()]]
        );
    }

    #[test]
    fn large_circles_are_refused() {
        let ring = |n: usize| {
            let files: Vec<(String, String)> =
                (0..n).map(|it| (format!("a/f{it}.rs"), format!("use super::f{}::X;", (it + 1) % n))).collect();
            let files: Vec<(&str, &str)> = files.iter().map(|(file, text)| (&**file, &**text)).collect();
            imports(&files).sins().len()
        };
        assert_eq!((ring(CIRCLE_FILES_MAX), ring(CIRCLE_FILES_MAX + 1)), (0, CIRCLE_FILES_MAX + 1));
    }
}
