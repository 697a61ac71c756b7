//! Links in doc comments to what is not there any more: ``[`crate::Gone`]``. rustdoc finds them, too, and takes minutes for it.

use std::collections::{BTreeMap, BTreeSet};

/// The words of each crate's code, by its folder, and the links of its doc comments.
#[derive(Default)]
pub(super) struct DocLinks {
    words: BTreeMap<String, BTreeSet<String>>,
    links: Vec<Link>,
}

struct Link {
    file: String,
    line: usize,
    path: String,
}

impl DocLinks {
    pub(super) fn read(&mut self, file: &str, text: &str) {
        let words = self.words.entry(folder_of(file).to_owned()).or_default();
        for (at, line) in text.lines().enumerate() {
            let trimmed = line.trim_start();
            if trimmed.starts_with("///") || trimmed.starts_with("//!") {
                let link = |path: &str| Link { file: file.to_owned(), line: at + 1, path: path.to_owned() };
                self.links.extend(links(trimmed).map(link));
            } else if !trimmed.starts_with("//") {
                let found = line.split(|it: char| !is_of_word(it)).filter(|it| !it.is_empty());
                words.extend(found.map(str::to_owned));
            }
        }
    }

    /// Each name of a path must stand in the code of the crate; what a name has within it may be another crate's.
    pub(super) fn sins(&self) -> Vec<String> {
        let is_anywhere = |name: &str| self.words.values().any(|it| it.contains(name));
        let is_broken = |link: &&Link| {
            let own = self.words.get(folder_of(&link.file));
            let names = link.path.split("::").filter(|it| !matches!(*it, "crate" | "self" | "super" | "Self"));
            let is_of_crate = |name: &str| own.is_some_and(|it| it.contains(name));
            names.enumerate().any(|(n, name)| !is_of_crate(name) && (n == 0 || !is_anywhere(name)))
        };
        let broken = self.links.iter().filter(is_broken);
        broken.map(|it| format!("{}:{}: [`{}`] leads nowhere", it.file, it.line, it.path)).collect()
    }
}

/// `crates/meta` of `crates/meta/src/key.rs`.
fn folder_of(file: &str) -> &str {
    let end = file.match_indices('/').nth(1).map_or(file.len(), |it| it.0);
    &file[..end]
}

fn is_of_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// Paths between ``[` `` and `` `]`` that are no names of addresses: ``[`text`](address)``.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("[`").skip(1).filter_map(|it| {
        let (path, rest) = it.split_once("`]")?;
        let path = path.trim_end_matches("()").trim_end_matches('!');
        let is_path = path.chars().all(|it| is_of_word(it) || it == ':') && !path.is_empty();
        (is_path && !rest.starts_with('(')).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_something() {
        let mut links = DocLinks::default();
        links.read(
            "crates/a/src/lib.rs",
            "/// [`B`], [`crate::C::d`], [`Gone`], [`text`](address), [`B::e()`]\nstruct B;\nstruct C;",
        );
        links.read("crates/b/src/lib.rs", "//! [`B`]\n// Gone\nfn d() {}\nfn e() {}");
        assert_eq!(
            links.sins(),
            ["crates/a/src/lib.rs:1: [`Gone`] leads nowhere", "crates/b/src/lib.rs:1: [`B`] leads nowhere"]
        );
    }
}
