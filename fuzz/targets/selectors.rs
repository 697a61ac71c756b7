//! Texts that people write into queries and fields: selectors, quantities, times, schedules.

#![no_main]

use std::collections::BTreeMap;

use corten_meta::{FieldSelector, Quantity, Requirement, Selector, Time, selector::requirements};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let labels = BTreeMap::from([("app".to_owned(), "web".to_owned()), ("a/b".to_owned(), String::new()), ("n".to_owned(), "7".to_owned())]);
    if let Ok(selector) = Selector::parse(text) {
        let all = requirements(text).expect("it was read before").iter().all(|it| holds(it, &labels));
        assert_eq!(selector.matches(&labels), all, "a selector is the sum of its requirements");
    }
    if let Ok(selector) = FieldSelector::parse(text) {
        for one in &selector.0 {
            assert_eq!(FieldSelector(vec![one.clone()]).matches(|_| &one.value), !one.negated);
        }
    }
    if let Ok(quantity) = text.parse::<Quantity>() {
        let written = quantity.to_string();
        let again: Quantity = written.parse().expect("what was written can be read");
        assert_eq!(again.value(), quantity.value(), "{text} as {written}");
    }
    if let Ok(time) = text.parse::<Time>() {
        assert_eq!(time.to_string().parse::<Time>().expect("what was written can be read").to_string(), time.to_string());
    }
});

/// What a requirement says, word by word.
fn holds(requirement: &Requirement, labels: &BTreeMap<String, String>) -> bool {
    let number = |key: &String| labels.get(key).and_then(|it| it.parse::<i64>().ok());
    match requirement {
        Requirement::In(key, values) => labels.get(key).is_some_and(|it| values.contains(it)),
        Requirement::NotIn(key, values) => labels.get(key).is_none_or(|it| !values.contains(it)),
        Requirement::Exists(key) => labels.contains_key(key),
        Requirement::DoesNotExist(key) => !labels.contains_key(key),
        Requirement::GreaterThan(key, least) => number(key).is_some_and(|it| it > *least),
        Requirement::LessThan(key, most) => number(key).is_some_and(|it| it < *most),
    }
}
