//! The rules that somebody holds, found by what they name: who may write roles of many rules must not make the server compare each
//! with all that are held.

use std::collections::BTreeMap;

use crate::rule::{PolicyRule, Texts};

/// So many texts are compared for one role, which takes less than a second. Upstream has no bound.
const COMPARISONS_MAX: usize = 20_000_000;
/// So many texts of one list are looked up.
const LOOKUPS_MAX: usize = 16;

/// So many parts of one role's rules are compared one by one; rules beyond are compared as a whole. The parts of a rule are a
/// product of four lists.
const ATOMS_MAX: usize = 10_000;
/// And of so many bytes of text: a text of a rule stands in many of its parts.
const ATOM_BYTES_MAX: usize = 2 << 20;
/// So many lines tell enough.
const LINES_MAX: usize = 100;
const LINE_CHARS_MAX: usize = 1000;

/// What is said of rules that take too long to compare.
const TOO_MANY: &str = "more rules than can be compared with those that are held: write them as several roles";

/// There are too many to be compared.
#[derive(Debug)]
pub(crate) struct TooMany;

/// Which of the rules name a text.
type Naming<'a> = BTreeMap<&'a str, Vec<&'a PolicyRule>>;

#[derive(Default)]
pub(crate) struct HeldRules<'a> {
    all: Vec<&'a PolicyRule>,
    verbs: Naming<'a>,
    groups: Naming<'a>,
    resources: Naming<'a>,
    names: Naming<'a>,
    /// Those of them that name no object.
    unnamed: Vec<&'a PolicyRule>,
    n_compared: usize,
}

impl<'a> HeldRules<'a> {
    pub(crate) fn new(rules: &[&'a PolicyRule]) -> Self {
        let mut all = rules.to_vec();
        all.sort_unstable();
        all.dedup();
        let mut held = Self::default();
        for &rule in &all {
            for (naming, texts) in [
                (&mut held.verbs, &rule.verbs),
                (&mut held.groups, &rule.api_groups),
                (&mut held.resources, &rule.resources),
                (&mut held.names, &rule.resource_names),
            ] {
                texts.iter().for_each(|it| naming.entry(it).or_default().push(rule));
            }
            if rule.resource_names.is_empty() {
                held.unnamed.push(rule);
            }
        }
        Self { all, ..held }
    }

    /// Does one of them, alone, allow all that `wanted` allows?
    ///
    /// # Errors
    /// It would take too many comparisons.
    pub(crate) fn cover(&mut self, wanted: &PolicyRule) -> Result<bool, TooMany> {
        let mut n_compared = self.n_compared;
        let mut covers = |it: &PolicyRule| {
            n_compared = n_compared.saturating_add(it.n_comparisons(wanted));
            if n_compared > COMPARISONS_MAX { Err(TooMany) } else { Ok(it.covers(wanted)) }
        };
        let mut is_covered = false;
        for rule in self.candidates(wanted).into_iter().flatten() {
            is_covered = covers(rule)?;
            if is_covered {
                break;
            }
        }
        self.n_compared = n_compared;
        Ok(is_covered)
    }

    /// Those that name one of the texts of `wanted`, the text that the fewest name: no other rule can cover it.
    fn candidates(&self, wanted: &PolicyRule) -> Vec<&[&'a PolicyRule]> {
        let mut best = vec![&*self.all];
        let mut offer = |lists: Vec<_>| {
            let count = |lists: &[&[&PolicyRule]]| lists.iter().map(|it| it.len()).sum::<usize>();
            if count(&lists) < count(&best) {
                best = lists;
            }
        };
        for (naming, texts) in [(&self.verbs, &wanted.verbs), (&self.groups, &wanted.api_groups)] {
            texts.iter().take(LOOKUPS_MAX).for_each(|it| offer(vec![of(naming, it), of(naming, "*")]));
        }
        for text in wanted.resources.iter().take(LOOKUPS_MAX) {
            let subresource = text.split_once('/').map(|(_, it)| format!("*/{it}"));
            let any = subresource.map_or(&[][..], |it| of(&self.resources, &it));
            offer(vec![of(&self.resources, text), of(&self.resources, "*"), any]);
        }
        for text in wanted.resource_names.iter().take(LOOKUPS_MAX) {
            offer(vec![of(&self.names, text), &self.unnamed]);
        }
        best
    }
}

fn of<'n, 'a>(naming: &'n Naming<'a>, text: &str) -> &'n [&'a PolicyRule] {
    naming.get(text).map_or(&[][..], Vec::as_slice)
}

/// What `wanted` allows and `held` does not, as a line per rule; empty where all is held. A rule of very many parts that no
/// single rule covers counts as not held, and so do rules that take too long to compare.
pub fn missing(held: &[&PolicyRule], wanted: &[PolicyRule]) -> Vec<String> {
    let merged = match lacking(HeldRules::new(held), wanted) {
        Ok(merged) => merged,
        Err(TooMany) => return vec![TOO_MANY.to_owned()],
    };
    let mut lines: Vec<String> =
        merged.into_iter().map(|(rule, verbs)| cut(PolicyRule { verbs: verbs.into(), ..rule }.compact())).collect();
    lines.sort();
    if let Some(n_more) = lines.len().checked_sub(LINES_MAX).filter(|it| *it > 0) {
        lines.truncate(LINES_MAX);
        lines.push(format!("and {n_more} more"));
    }
    lines
}

/// The rules that are not held, with their verbs: those that differ in the verb only become one.
fn lacking(mut held: HeldRules<'_>, wanted: &[PolicyRule]) -> Result<BTreeMap<PolicyRule, Vec<Box<str>>>, TooMany> {
    let mut merged: BTreeMap<PolicyRule, Vec<Box<str>>> = BTreeMap::new();
    let (mut atoms, mut bytes) = (ATOMS_MAX, ATOM_BYTES_MAX);
    for rule in wanted {
        if held.cover(rule)? {
            continue;
        }
        let room = atoms.checked_sub(rule.n_atoms()).zip(bytes.checked_sub(rule.n_atom_bytes()));
        let Some(room) = room else {
            merged.insert(PolicyRule { verbs: Texts::default(), ..rule.clone() }, rule.verbs.to_vec());
            continue;
        };
        (atoms, bytes) = room;
        for mut atom in rule.atoms() {
            if held.cover(&atom)? {
                continue;
            }
            let verbs = std::mem::take(&mut atom.verbs);
            let all = merged.entry(atom).or_default();
            let new: Vec<Box<str>> = verbs.into_iter().filter(|it| !all.contains(it)).collect();
            all.extend(new);
        }
    }
    Ok(merged)
}

fn cut(line: String) -> String {
    match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[String]) -> PolicyRule {
        let list = |it: &str| Texts::from([it.into()]);
        PolicyRule {
            api_groups: list(""),
            resources: list("configmaps"),
            verbs: list("get"),
            resource_names: names.iter().map(|it| it.as_str().into()).collect(),
            ..PolicyRule::default()
        }
    }

    #[test]
    fn many_rules_are_compared_with_those_that_name_the_same() {
        let held: Vec<PolicyRule> = (0..3_000).map(|it| named(&[format!("n{it}")])).collect();
        let held: Vec<&PolicyRule> = held.iter().collect();
        let wanted: Vec<PolicyRule> = (0..30_000).map(|it| named(&[format!("n{}", it % 3_000)])).collect();
        assert_eq!(missing(&held, &wanted), [""; 0]);
        let more = [wanted, vec![named(&["else".into()])]].concat();
        let line = r#"{APIGroups:[""], Resources:["configmaps"], ResourceNames:["else"], Verbs:["get"]}"#;
        assert_eq!(missing(&held, &more), [line]);
    }

    /// Every text is named by many of them, and none covers the rule.
    #[test]
    fn what_takes_too_long_to_compare_counts_as_not_held() {
        let names = |letter: char| (0..20).map(|it| format!("{letter}{it}")).collect::<Vec<_>>();
        let (some, others) = (names('a'), names('b'));
        let one = |list: &[String], it: usize| named(&[list, &[format!("own{it}")]].concat());
        let held: Vec<PolicyRule> = (0..3_000).flat_map(|it| [one(&some, it), one(&others, it)]).collect();
        let held: Vec<&PolicyRule> = held.iter().collect();
        let both = named(&[some, others].concat());
        assert_eq!(missing(&held, &vec![both.clone(); 2]), [""; 0], "its parts are held");
        let lines = missing(&held, &vec![both; 30_000]);
        assert!(lines.len() == 1 && lines[0].starts_with("more rules than can be compared"), "{lines:?}");
    }

    fn rule(n: usize, names: usize) -> PolicyRule {
        let list = |letter: &str, n: usize| (0..n).map(|it| format!("{letter}{it}").into()).collect::<Texts>();
        PolicyRule {
            api_groups: list("g", n),
            resources: list("r", n),
            verbs: list("v", n),
            resource_names: list("n", names),
            ..PolicyRule::default()
        }
    }

    #[test]
    fn a_rule_of_many_parts_costs_no_more_than_its_text() {
        let (none, all) = (PolicyRule::default(), rule(1000, 0));
        for (held, n, names, n_lines) in [
            (&none, 2, 0, 4),
            (&none, 2, 2, 8),
            (&none, 11, 0, LINES_MAX + 1),
            (&none, 90, 90, 1),
            (&none, 10_000, 10_000, 1),
            (&all, 90, 90, 0),
        ] {
            let lines = missing(&[held], &[rule(n, names)]);
            assert_eq!(lines.len(), n_lines, "{n} {names}");
            assert!(lines.iter().all(|it| it.len() < 2 * LINE_CHARS_MAX), "{n} {names}");
        }
    }

    #[test]
    fn a_long_text_is_not_copied_into_many_parts() {
        let long = PolicyRule { api_groups: ["x".repeat(100_000).into()].into(), ..rule(100, 99) };
        assert!(
            long.n_atoms() < 1_000_000
                && PolicyRule { verbs: ["get".into()].into(), ..long.clone() }.n_atoms() < ATOMS_MAX
        );
        let lines = missing(&[], &[PolicyRule { verbs: ["get".into()].into(), ..long }]);
        assert_eq!(lines.len(), 1, "it is told as a whole");
        let short =
            PolicyRule { api_groups: ["x".repeat(100).into()].into(), verbs: ["get".into()].into(), ..rule(10, 9) };
        assert_eq!(missing(&[], &[short]).len(), 90, "each part is told");
    }

    #[test]
    fn many_rules_together_cost_no_more() {
        let wanted = vec![rule(20, 0); 1000];
        assert!(missing(&[], &wanted).len() <= LINES_MAX + 1);
    }
}
