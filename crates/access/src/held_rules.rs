//! The rules that somebody holds, found by what they name: who may write roles of many rules must not make the server compare each
//! with all that are held.

use std::collections::BTreeMap;

use crate::rule::PolicyRule;

/// So many texts are compared for one role, which takes less than a second. Upstream has no bound.
const COMPARISONS_MAX: usize = 20_000_000;
/// So many texts of one list are looked up.
const LOOKUPS_MAX: usize = 16;

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

#[cfg(test)]
mod tests {
    use crate::rule::{PolicyRule, missing};

    fn named(names: &[String]) -> PolicyRule {
        let list = |it: &str| vec![it.to_owned()];
        PolicyRule {
            api_groups: list(""),
            resources: list("configmaps"),
            verbs: list("get"),
            resource_names: names.to_vec(),
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
}
