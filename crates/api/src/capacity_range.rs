//! Ranges of what a request may take of a device's capacity (KEP-5075).

use corten_meta::Quantity;

/// Whether the range is reckoned in thousandths: where a bound of it is no whole number, and all of them have a place in 64 bits as
/// thousandths (feature gate `DRAFractionalCapacityRange`, on since v1.37). Else it is in whole units, rounded up.
pub fn reckons_in_millis(min: Quantity, max: Option<Quantity>, step: Option<Quantity>) -> bool {
    let bounds = || [Some(min), max, step].into_iter().flatten();
    let fits = |it: Quantity| it.value().checked_mul(1_000).is_some();
    bounds().any(|it| it.exact().is_none()) && bounds().all(fits) && step.is_none_or(|it| it.milli_value() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_with_parts_of_a_unit_is_reckoned_in_thousandths() {
        for (min, max, step, expected) in [
            ("1", "", "", false),
            ("1", "9", "2", false),
            ("500m", "", "", true),
            ("1", "2500m", "", true),
            ("0", "1", "100m", true),
            ("0", "10P", "100m", false),
            ("500m", "", "-1m", false),
        ] {
            let quantity = |text: &str| text.parse::<Quantity>().ok();
            let found = reckons_in_millis(quantity(min).expect("a quantity"), quantity(max), quantity(step));
            assert_eq!(found, expected, "{min} {max} {step}");
        }
    }
}
