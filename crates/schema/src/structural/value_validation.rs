//! What a text, a number or a list must be, in the words of kube-openapi's `pkg/validation/errors`.

use std::fmt::Arguments;

use corten_meta::Violation;
use serde_json::{Number, Value};

use super::{NumericFormat, ValueValidation, formats, report::Report};

impl ValueValidation {
    /// The first rule that a text breaks.
    pub(super) fn text(&self, path: &str, text: &str, report: &mut Report) {
        let n_chars = || text.chars().count() as u64;
        if let Some(most) = self.max_length.filter(|most| n_chars() > *most) {
            return report.add(|| Violation::too_long(path, usize::try_from(most).unwrap_or(usize::MAX)));
        }
        if let Some(least) = self.min_length.filter(|least| n_chars() < *least) {
            return invalid(path, text, format_args!("should be at least {least} chars long"), report);
        }
        let Some(asked) = &self.pattern else { return };
        let pattern = asked.text();
        match asked.is_match(text) {
            Ok(true) => {}
            // Said once, of the whole object.
            Err(_) if corten_cel::is_spent() => {}
            Ok(false) => invalid(path, text, format_args!("should match '{pattern}'"), report),
            Err(error) => {
                invalid(path, text, format_args!("should match '{pattern}, but pattern is invalid: {error}'"), report);
            }
        }
    }

    pub(super) fn format(&self, path: &str, text: &str, report: &mut Report) {
        if !formats::holds(&self.format, text) {
            report.add(|| {
                let detail = format!("{path} in body must be of type {}: {text:?}", self.format);
                Violation::wrong_type(path, format_args!("{text:?}"), &detail)
            });
        }
    }

    pub(super) fn number(&self, path: &str, number: &Number, report: &mut Report) {
        let value = number.as_f64().unwrap_or_default();
        // That a number is not whole has been told of its type.
        if number.is_i64() || value.fract() == 0.0 || self.numeric_format == Some(NumericFormat::Float) {
            self.size(path, "Checked", Some(value), report);
        }
        self.size(path, "MultipleOf", self.multiple_of, report);
        self.size(path, "Minimum boundary", self.minimum.map(|it| it.value), report);
        self.size(path, "Maximum boundary", self.maximum.map(|it| it.value), report);
        if let Some(factor) = self.multiple_of.filter(|it| !is_multiple(number, *it)) {
            invalid(path, number.clone(), format_args!("should be a multiple of {factor}"), report);
        }
        if let Some(bound) = self.minimum {
            let (is_below, words) = match bound.is_exclusive {
                true => (value <= bound.value, "should be greater than"),
                false => (value < bound.value, "should be greater than or equal to"),
            };
            if is_below {
                invalid(path, number.clone(), format_args!("{words} {}", bound.value), report);
            }
        }
        if let Some(bound) = self.maximum {
            let (is_above, words) = match bound.is_exclusive {
                true => (value >= bound.value, "should be less than"),
                false => (value > bound.value, "should be less than or equal to"),
            };
            if is_above {
                invalid(path, number.clone(), format_args!("{words} {}", bound.value), report);
            }
        }
    }

    /// The number itself, and what bounds it, are of the size that the format says (`numberValidator`). The error names its path
    /// in its words alone.
    fn size(&self, path: &str, what: &str, value: Option<f64>, report: &mut Report) {
        if let (Some(format), Some(value)) = (self.numeric_format, value)
            && !format.fits(value)
        {
            let (of_type, format) = (format.of_type().as_str(), format.as_str());
            report.without_path(|| format!("{what} value must be of type {of_type} with format {format} in {path}"));
        }
    }

    pub(super) fn list(&self, path: &str, size: usize, report: &mut Report) {
        if let Some(least) = self.min_items.filter(|least| (size as u64) < *least) {
            invalid(path, size, format_args!("should have at least {least} items"), report);
        }
        if let Some(most) = self.max_items.filter(|most| size as u64 > *most) {
            report.add(|| Violation::too_many(path, size, usize::try_from(most).unwrap_or(usize::MAX)));
        }
    }

    /// Is the number of its properties right? If it is not, no property is looked at.
    pub(super) fn check_property_count(&self, path: &str, size: usize, report: &mut Report) -> bool {
        if let Some(least) = self.min_properties.filter(|least| (size as u64) < *least) {
            invalid(path, size, format_args!("should have at least {least} properties"), report);
            return false;
        }
        if let Some(most) = self.max_properties.filter(|most| size as u64 > *most) {
            report.add(|| Violation::too_many(path, size, usize::try_from(most).unwrap_or(usize::MAX)));
            return false;
        }
        true
    }

    pub(super) fn check_enum(&self, path: &str, value: &Value, report: &mut Report) {
        let Some(allowed) = self.allowed.as_ref().filter(|it| !it.contains(value)) else { return };
        report.add(|| allowed.violation(path, value));
    }
}

/// The sentence begins with the path once more.
fn invalid(path: &str, value: impl Into<Value>, words: Arguments<'_>, report: &mut Report) {
    report.add(|| Violation::invalid(path, value.into(), &format!("{path} in body {words}")));
}

fn is_multiple(number: &Number, factor: f64) -> bool {
    const WHOLE: f64 = 9_007_199_254_740_992.0;
    if factor == 0.0 {
        return true;
    }
    #[expect(clippy::cast_possible_truncation, reason = "a whole number of 53 bits")]
    if factor.fract() == 0.0
        && factor.abs() < WHOLE
        && let Some(number) = number.as_i64()
    {
        return number.checked_rem(factor as i64).is_none_or(|it| it == 0);
    }
    let ratio = number.as_f64().unwrap_or_default() / factor;
    (ratio - ratio.round()).abs() <= f64::EPSILON * ratio.abs().max(1.0)
}
