//! A version as semver.org has it: read, compared. The complaints are blang/semver's, which upstream uses.

use std::{cmp::Ordering, fmt};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Semver {
    pub(crate) numbers: [u64; 3],
    before: Vec<Part>,
    build: Vec<String>,
}

/// A part of what comes before a release. Numbers come first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Text(String),
}

impl Semver {
    /// What is built of a version says nothing about which is newer.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| match (self.before.is_empty(), other.before.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.before.cmp(&other.before),
        })
    }
}

impl fmt::Display for Semver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        for (nth, part) in self.before.iter().enumerate() {
            f.write_str(if nth == 0 { "-" } else { "." })?;
            match part {
                Part::Number(it) => write!(f, "{it}")?,
                Part::Text(it) => f.write_str(it)?,
            }
        }
        for (nth, part) in self.build.iter().enumerate() {
            write!(f, "{}{part}", if nth == 0 { "+" } else { "." })?;
        }
        Ok(())
    }
}

pub(crate) fn parse(text: &str) -> Result<Semver, String> {
    if text.is_empty() {
        return Err("Version string empty".to_owned());
    }
    let mut parts = text.splitn(3, '.');
    let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("No Major.Minor.Patch elements found".to_owned());
    };
    let (rest, build) = rest.split_once('+').map_or((rest, None), |it| (it.0, Some(it.1)));
    let (patch, before) = rest.split_once('-').map_or((rest, None), |it| (it.0, Some(it.1)));
    let numbers = [digits("Major", major)?, digits("Minor", minor)?, digits("Patch", patch)?];
    let before = before.map_or(Ok(Vec::new()), |it| it.split('.').map(part).collect())?;
    let build = build.map_or(Ok(Vec::new()), |it| it.split('.').map(built).collect())?;
    Ok(Semver { numbers, before, build })
}

fn digits(name: &str, text: &str) -> Result<u64, String> {
    if text.is_empty() || !text.bytes().all(|it| it.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in {} number {text:?}", name.to_lowercase()));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{name} number must not contain leading zeroes {text:?}"));
    }
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing {text:?}: value out of range"))
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|it| it == b'-' || it.is_ascii_alphanumeric())
}

fn part(text: &str) -> Result<Part, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if text.bytes().all(|it| it.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            return Err(format!("Numeric PreRelease version must not contain leading zeroes {text:?}"));
        }
        return text
            .parse()
            .map(Part::Number)
            .map_err(|_| format!("strconv.ParseUint: parsing {text:?}: value out of range"));
    }
    if is_word(text) {
        Ok(Part::Text(text.to_owned()))
    } else {
        Err(format!("Invalid character(s) found in prerelease {text:?}"))
    }
}

fn built(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("Build meta data is empty".to_owned());
    }
    if is_word(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("Invalid character(s) found in build meta data {text:?}"))
    }
}

/// Without a `v`, with three numbers, none of them with zeros before it.
pub(crate) fn normalized(text: &str) -> Result<String, String> {
    let mut parts: Vec<String> = text.strip_prefix('v').unwrap_or(text).splitn(3, '.').map(str::to_owned).collect();
    for part in parts.iter_mut().filter(|it| it.len() > 1) {
        let trimmed = part.trim_start_matches('0');
        let needs_zero = !trimmed.starts_with(|it: char| it.is_ascii_digit());
        *part = format!("{}{trimmed}", if needs_zero { "0" } else { "" });
    }
    if parts.len() < 3 && parts.last().is_some_and(|it| it.contains(['+', '-'])) {
        return Err("short version cannot contain PreRelease/Build meta data".to_owned());
    }
    parts.resize(3, "0".to_owned());
    Ok(parts.join("."))
}
