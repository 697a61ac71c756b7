//! `successPolicy`: which indexes must succeed for the Job to have succeeded.

use corten_meta::Violation;
use corten_schema::Cursor;

const RULES_MAX: usize = 20;
const INDEXES_BYTES_MAX: usize = 64 * 1024;

pub(super) fn validate(spec: Cursor<'_>) {
    let rules = spec.at("successPolicy").at("rules");
    if rules.is_empty() {
        rules.missing("at least one rules must be specified when the successPolicy is specified");
    }
    rules.at_most(RULES_MAX);
    let completions = spec.at("completions").value().as_i64();
    rules.each().for_each(|it| rule(it, completions));
}

fn rule(rule: Cursor<'_>, completions: Option<i64>) {
    let (count, indexes) = (rule.at("succeededCount"), rule.at("succeededIndexes"));
    if !count.exists() && !indexes.exists() {
        return rule.missing("at least one of succeededCount or succeededIndexes must be specified");
    }
    let mut total = None;
    if indexes.exists() {
        if indexes.str().len() > INDEXES_BYTES_MAX {
            indexes.report(Violation::too_long(indexes.path(), INDEXES_BYTES_MAX));
        }
        total = Some(0);
        if let Some(completions) = completions {
            match number_of(indexes.str(), completions) {
                Ok(number) => total = Some(number),
                Err(reason) => indexes.invalid(&format!("error parsing succeededIndexes: {reason}")),
            }
        }
    }
    if !count.exists() {
        return;
    }
    count.non_negative_int();
    for (most, what) in [
        (completions, "the number of specified completions"),
        (total, "the number of indexes in the specified succeededIndexes field"),
    ] {
        if let Some(most) = most
            && count.int() > most
        {
            count.invalid(&format!("must be less than or equal to {most} ({what})"));
        }
    }
}

/// How many indexes `1,3-5` names.
pub(super) fn number_of(text: &str, completions: i64) -> Result<i64, String> {
    let (mut last, mut total) = (-1, 0);
    let mut next = |text: &str| -> Result<i64, String> {
        let index: i64 = text.parse().map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
        if index >= completions {
            return Err(format!("too large index: {text:?}"));
        }
        if last >= index {
            return Err(format!("non-increasing order, previous: {last}, current: {index}"));
        }
        last = index;
        Ok(index)
    };
    for interval in text.split(',').filter(|_| !text.is_empty()) {
        match interval.split('-').collect::<Vec<_>>()[..] {
            [one] => {
                next(one)?;
                total += 1;
            }
            [from, to] => {
                let from = next(from)?;
                total += next(to)?.saturating_sub(from).saturating_add(1);
            }
            _ => {
                return Err(format!(
                    "the fragment {interval:?} violates the requirement that an index interval can have at most two parts separated by '-'"
                ));
            }
        }
    }
    Ok(total)
}
