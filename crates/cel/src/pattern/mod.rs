//! Regular expressions in Go's syntax (RE2), by a machine of bounded size: one pattern cannot make a match take long.
//!
//! A pattern that is written down, in a policy or a definition, is compiled when it is first asked, and the machine is kept where
//! all patterns of the same text find it; what is kept is bounded, whatever is stored. To compile takes fuel, as matching does.

mod cache;
mod translate;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use regex::{Regex, RegexBuilder};

use crate::fuel;

/// What a machine may take, tried one after the other: how large it is says what it takes to run it.
const SIZES: [usize; 4] = [4 << 10, 32 << 10, 256 << 10, 2 << 20];
/// The largest one of a pattern that an object holds: it is compiled while it is asked.
const FOUND_BYTES_MAX: usize = 64 << 10;
const DFA_BYTES: usize = 256 << 10;
const PATTERN_BYTES_MAX: usize = 16 << 10;
/// A named class of characters has hundreds of ranges, which are looked up and sorted, and with `(?i)` every class may have.
const CLASS_FUEL: u64 = 8_000;
/// Of each byte that is read.
const BYTE_FUEL: u64 = 20;

const TOO_LARGE: &str = "error parsing regexp: expression is too large";
pub(crate) const OUT_OF_FUEL: &str = "the regular expressions take more work to compile than those of one object may";

/// A machine, and how large it is.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) regex: Regex,
    bytes: usize,
}

impl Machine {
    /// What it takes to match one byte, at worst: every state of the machine is looked at.
    pub(crate) fn fuel(&self) -> u64 {
        (self.bytes as u64 >> 6).max(1)
    }

    /// Of a pattern that an object holds.
    ///
    /// # Errors
    /// What is wrong with it, or that there is no fuel to compile it.
    pub(crate) fn of_found(pattern: &str) -> Result<Self, String> {
        compiled(pattern, FOUND_BYTES_MAX).map_err(Refusal::into_words)
    }
}

/// A pattern that is written down. It is compiled when it is first asked.
#[derive(Debug)]
pub struct Pattern {
    text: Arc<str>,
    known: Mutex<PatternState>,
}

#[derive(Debug)]
enum PatternState {
    /// Kept with those of other patterns, or to be compiled.
    Machine(Weak<Machine>),
    Wrong(String),
}

/// Why there is no machine.
#[derive(Debug)]
enum Refusal {
    Wrong(String),
    OutOfFuel,
}

impl Refusal {
    fn into_words(self) -> String {
        match self {
            Self::Wrong(error) => error,
            Self::OutOfFuel => OUT_OF_FUEL.to_owned(),
        }
    }
}

impl Pattern {
    pub fn new(text: &str) -> Self {
        Self { text: text.into(), known: Mutex::new(PatternState::Machine(Weak::new())) }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Does a text of a value match it? Both to compile and to match take fuel.
    ///
    /// # Errors
    /// What is wrong with it, or that there is too little fuel.
    pub fn is_match(&self, text: &str) -> Result<bool, String> {
        let machine = self.machine()?;
        // A byte takes a quarter at most of what it takes at worst, as a rule far less.
        if !fuel::spend((text.len() as u64).saturating_mul(machine.fuel().div_ceil(4))) {
            return Err(OUT_OF_FUEL.to_owned());
        }
        Ok(machine.regex.is_match(text))
    }

    pub(crate) fn machine(&self) -> Result<Arc<Machine>, String> {
        match &*self.known() {
            PatternState::Wrong(error) => return Err(error.clone()),
            PatternState::Machine(machine) => {
                if let Some(machine) = machine.upgrade() {
                    return Ok(machine);
                }
            }
        }
        let found = cache::find(&self.text).map_or_else(|| compiled(&self.text, usize::MAX).map(Arc::new), Ok);
        match found {
            Ok(machine) => {
                cache::keep(&self.text, &machine);
                *self.known() = PatternState::Machine(Arc::downgrade(&machine));
                Ok(machine)
            }
            Err(Refusal::Wrong(error)) => {
                *self.known() = PatternState::Wrong(error.clone());
                Err(error)
            }
            Err(refusal) => Err(refusal.into_words()),
        }
    }

    fn known(&self) -> MutexGuard<'_, PatternState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Is a pattern that is written down one that can be asked? It takes as much fuel as to compile it, whether or not it is known: what
/// all patterns of a document may take together does not depend on what was read before.
///
/// # Errors
/// What is wrong with it, or that there is too little fuel.
pub fn check(text: &str) -> Result<(), String> {
    if let Some(machine) = cache::find(text) {
        let fuel = reading(text).saturating_add(trying(machine.bytes));
        return if fuel::spend(fuel) { Ok(()) } else { Err(OUT_OF_FUEL.to_owned()) };
    }
    let machine = compiled(text, usize::MAX).map_err(Refusal::into_words)?;
    cache::keep(&text.into(), &Arc::new(machine));
    Ok(())
}

/// What it takes to read a pattern.
fn reading(pattern: &str) -> u64 {
    let is_folded = pattern.contains("(?");
    let bytes = pattern.as_bytes();
    let is_class = |it: &[u8]| matches!(it, [b'\\', b'p' | b'P']) || is_folded && it[0] == b'[';
    let classes = bytes.windows(2).filter(|it| is_class(it)).count() as u64;
    bytes.len() as u64 * BYTE_FUEL + classes * CLASS_FUEL
}

/// What it takes to make a machine of this size, and to fail to make the smaller ones.
fn trying(bytes: usize) -> u64 {
    SIZES.iter().filter(|it| **it <= bytes).map(|it| *it as u64).sum()
}

fn compiled(pattern: &str, most: usize) -> Result<Machine, Refusal> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(Refusal::Wrong(TOO_LARGE.to_owned()));
    }
    let translated = translate::translated(pattern).map_err(Refusal::Wrong)?;
    if !fuel::spend(reading(pattern)) {
        return Err(Refusal::OutOfFuel);
    }
    for bytes in SIZES.map(|it| it.min(most)) {
        // What is made for a size that does not do is work, too.
        if !fuel::spend(bytes as u64) {
            return Err(Refusal::OutOfFuel);
        }
        let built = RegexBuilder::new(&translated).size_limit(bytes).dfa_size_limit(DFA_BYTES).nest_limit(100).build();
        match built {
            Ok(regex) => return Ok(Machine { regex, bytes }),
            Err(regex::Error::CompiledTooBig(_)) if bytes < most => {}
            Err(regex::Error::CompiledTooBig(_)) => break,
            Err(other) => {
                // The last line says what is wrong, the ones before point at it.
                let said = other.to_string();
                let why = said.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                return Err(Refusal::Wrong(format!("error parsing regexp: {}", in_gos_words(&why, pattern))));
            }
        }
    }
    Err(Refusal::Wrong(TOO_LARGE.to_owned()))
}

/// What is wrong with a pattern as Go's regexp/syntax says it, where it is what people usually get wrong.
fn in_gos_words(why: &str, pattern: &str) -> String {
    match why {
        "unclosed group" => format!("missing closing ): `{pattern}`"),
        "unopened group" => format!("unexpected ): `{pattern}`"),
        "repetition operator missing expression" => {
            let is_bare = |at: &usize| pattern[..*at].is_empty() || pattern[..*at].ends_with(['(', '|', '^']);
            let at = pattern.match_indices(['*', '+', '?']).map(|it| it.0).find(is_bare).unwrap_or_default();
            format!("missing argument to repetition operator: `{}`", &pattern[at..].chars().next().unwrap_or('*'))
        }
        "invalid character class range, the start must be <= the end" => {
            format!("invalid character class range: `{}`", backward_range(pattern).unwrap_or(pattern))
        }
        "invalid repetition count range, the start must be <= the end" => {
            format!("invalid repeat count: `{}`", backward_count(pattern).unwrap_or(pattern))
        }
        _ if why.starts_with("look-around") => look_around(pattern),
        other => format!("{other}: `{pattern}`"),
    }
}

/// `z-a`.
fn backward_range(pattern: &str) -> Option<&str> {
    pattern.match_indices('-').find_map(|(at, _)| {
        let before = pattern[..at].chars().next_back()?;
        let after = pattern[at + 1..].chars().next()?;
        (before > after).then(|| &pattern[at - before.len_utf8()..=at + after.len_utf8()])
    })
}

/// `{2,1}`.
fn backward_count(pattern: &str) -> Option<&str> {
    pattern.match_indices('{').find_map(|(at, _)| {
        let end = at + pattern[at..].find('}')?;
        let (low, high) = pattern[at + 1..end].split_once(',')?;
        let (low, high): (u64, u64) = (low.parse().ok()?, high.parse().ok()?);
        (low > high).then(|| &pattern[at..=end])
    })
}

/// What looks behind reads like the start of a name to Go, which is never closed or is no word.
fn look_around(pattern: &str) -> String {
    let at = |it: &&str| pattern.find(*it);
    if let Some(at) = ["(?<=", "(?<!"].iter().filter_map(at).min() {
        let end = pattern[at..].find('>').map_or(pattern.len(), |it| at + it + 1);
        return format!("invalid named capture: `{}`", &pattern[at..end]);
    }
    let at = ["(?=", "(?!"].iter().filter_map(at).min().unwrap_or_default();
    format!("invalid or unsupported Perl syntax: `{}`", pattern.get(at..at + 3).unwrap_or(pattern))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_names_within_brackets() {
        for (pattern, text, is_match) in [
            ("^[[:alpha:]]+$", "ab", true),
            ("^[[:^alpha:]]+$", "ab", false),
            ("^[[:]$", ":", true),
            ("^[[:]+$", "[:", true),
            ("[[:]]", "[]", true),
            ("^[:alpha:]+$", "hap:", true),
        ] {
            let machine = Machine::of_found(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(machine.regex.is_match(text), is_match, "{pattern}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_as_go_says_it() {
        for (pattern, said) in [
            ("a(b", "missing closing ): `a(b`"),
            ("a)b", "unexpected ): `a)b`"),
            ("*a", "missing argument to repetition operator: `*`"),
            ("a|(+b)", "missing argument to repetition operator: `+`"),
            ("[[:]]:]]", "invalid character class range: `[:]]:]`"),
            ("[[:letter:]]", "invalid character class range: `[:letter:]`"),
            ("([", "missing closing ]: `[`"),
            ("a[b-", "missing closing ]: `[b-`"),
            ("[z-a]", "invalid character class range: `z-a`"),
            ("a{2,1}", "invalid repeat count: `{2,1}`"),
            ("x(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
            ("x(?<!a)b", "invalid named capture: `(?<!a)b`"),
        ] {
            match Machine::of_found(pattern) {
                Err(error) => assert_eq!(error, format!("error parsing regexp: {said}")),
                Ok(_) => panic!("{pattern} is no pattern"),
            }
        }
    }
}
