//! Rules that combine others: `allOf`, `anyOf`, `oneOf` and `not`.

use serde_json::Value;

use super::{NestedValueValidation, Structural, report::Report, validate::Walk};

impl Walk {
    pub(super) fn logic(&mut self, logic: &NestedValueValidation, value: &Value) -> Report {
        let mut report = Report::default();
        self.any_of(&logic.any_of, value, &mut report);
        self.one_of(&logic.one_of, value, &mut report);
        self.all_of(&logic.all_of, value, &mut report);
        if let Some(not) = &logic.not
            && self.part(not, value, None).is_valid()
        {
            report.combination(format!("{:?} must not validate the schema (not)", self.path));
        }
        report.matched();
        report
    }

    fn any_of(&mut self, schemas: &[Structural], value: &Value, report: &mut Report) {
        let mut best: Option<Report> = None;
        for schema in schemas {
            let tried = self.part(schema, value, None);
            if tried.is_valid() {
                return report.merge(tried);
            }
            best = Some(better(best, tried));
        }
        if let Some(best) = best {
            report.combination(format!("{:?} must validate at least one schema (anyOf)", self.path));
            report.merge(best);
        }
    }

    fn one_of(&mut self, schemas: &[Structural], value: &Value, report: &mut Report) {
        if schemas.is_empty() {
            return;
        }
        let (mut valid, mut first, mut best) = (0, None, None);
        for schema in schemas {
            let tried = self.part(schema, value, None);
            if tried.is_valid() {
                valid += 1;
                first.get_or_insert(tried);
            } else if valid == 0 {
                best = Some(better(best, tried));
            }
        }
        match (valid, first, best) {
            (1, Some(first), _) => report.merge(first),
            (0, _, best) => {
                let message =
                    format!("{:?} must validate one and only one schema (oneOf). Found none valid", self.path);
                report.combination(message);
                report.merge(best.unwrap_or_default());
            }
            (n, ..) => report.combination(format!(
                "{:?} must validate one and only one schema (oneOf). Found {n} valid alternatives",
                self.path
            )),
        }
    }

    fn all_of(&mut self, schemas: &[Structural], value: &Value, report: &mut Report) {
        let mut valid = 0;
        for schema in schemas {
            let tried = self.part(schema, value, None);
            valid += usize::from(tried.is_valid());
            report.merge(tried);
        }
        if valid < schemas.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            report.combination(format!("{:?} must validate all the schemas (allOf){none}", self.path));
        }
    }
}

/// Of two that failed, the one with more checks that held; of equal ones the first.
fn better(best: Option<Report>, tried: Report) -> Report {
    match best {
        Some(best) if best.matches >= tried.matches => best,
        _ => tried,
    }
}
