//! Rules that combine others: `allOf`, `anyOf`, `oneOf` and `not`.
//!
//! Alternatives are tried first: what one of them finds is made only where it is told.

use serde_json::Value;

use super::{NestedValueValidation, Structural, report::Report, validate::Walk};

/// The alternative that fitted best of those that all failed.
struct Best<'s> {
    schema: &'s Structural,
    matches: u64,
}

impl Walk {
    pub(super) fn logic(&mut self, logic: &NestedValueValidation, value: &Value, report: &mut Report) {
        self.any_of(&logic.any_of, value, report);
        self.one_of(&logic.one_of, value, report);
        self.all_of(&logic.all_of, value, report);
        if let Some(not) = &logic.not
            && self.tried(not, value).is_valid()
        {
            report.without_path(|| format!("{:?} must not validate the schema (not)", self.path));
        }
        report.matched();
    }

    fn tried(&mut self, schema: &Structural, value: &Value) -> Report {
        let mut report = Report::untold();
        self.part(schema, value, None, &mut report);
        report
    }

    fn any_of(&mut self, schemas: &[Structural], value: &Value, report: &mut Report) {
        let mut best: Option<Best<'_>> = None;
        for schema in schemas {
            let tried = self.tried(schema, value);
            if tried.is_valid() {
                return report.count(tried.matches);
            }
            best = Some(better(best, schema, &tried));
        }
        if let Some(best) = best {
            report.without_path(|| format!("{:?} must validate at least one schema (anyOf)", self.path));
            self.tell(&best, value, report);
        }
    }

    fn one_of(&mut self, schemas: &[Structural], value: &Value, report: &mut Report) {
        if schemas.is_empty() {
            return;
        }
        let (mut valid, mut first, mut best) = (0, None, None);
        for schema in schemas {
            let tried = self.tried(schema, value);
            if tried.is_valid() {
                valid += 1;
                first.get_or_insert(tried.matches);
            } else if valid == 0 {
                best = Some(better(best, schema, &tried));
            }
        }
        match (valid, first, best) {
            (1, Some(matches), _) => report.count(matches),
            (0, _, best) => {
                report.without_path(|| {
                    format!("{:?} must validate one and only one schema (oneOf). Found none valid", self.path)
                });
                if let Some(best) = best {
                    self.tell(&best, value, report);
                }
            }
            (n, ..) => report.without_path(|| {
                format!("{:?} must validate one and only one schema (oneOf). Found {n} valid alternatives", self.path)
            }),
        }
    }

    fn all_of(&mut self, schemas: &[Structural], value: &Value, report: &mut Report) {
        let mut valid = 0;
        for schema in schemas {
            valid += usize::from(report.is_valid_within(|it| self.part(schema, value, None, it)));
        }
        if valid < schemas.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            report.without_path(|| format!("{:?} must validate all the schemas (allOf){none}", self.path));
        }
    }

    /// Tells what is wrong with an alternative that was tried.
    fn tell(&mut self, best: &Best<'_>, value: &Value, report: &mut Report) {
        if report.keeps() {
            self.part(best.schema, value, None, report);
        } else {
            report.count(best.matches);
        }
    }
}

/// Of two that failed, the one with more checks that held; of equal ones the first.
fn better<'s>(best: Option<Best<'s>>, schema: &'s Structural, tried: &Report) -> Best<'s> {
    match best {
        Some(best) if best.matches >= tried.matches => best,
        _ => Best { schema, matches: tried.matches },
    }
}
