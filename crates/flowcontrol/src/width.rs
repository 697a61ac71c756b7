//! How many seats a request takes: a write takes one, a list as many as it has objects to go through.

/// A list of so many objects takes one seat.
pub const OBJECTS_PER_SEAT: usize = 100;
/// No request takes more.
pub const SEATS_MAX: u32 = 10;

/// Of a level with so many seats one request takes at most these: 15 percent, and one at least.
pub fn width_max(nominal: u32) -> u32 {
    (nominal.saturating_mul(15) / 100).clamp(1, SEATS_MAX)
}

/// A list, or the first look of a watch, that goes through `objects` of which it sends at most `limit` where that is not zero.
///
/// What is selected by labels or fields is looked for among all objects (`listWorkEstimator`).
pub fn width_of_list(objects: usize, limit: usize, is_selected: bool) -> u32 {
    let gone_through = if limit == 0 || is_selected { objects } else { objects.min(limit) };
    u32::try_from(gone_through.div_ceil(OBJECTS_PER_SEAT)).unwrap_or(SEATS_MAX).clamp(1, SEATS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_as_wide_as_what_it_goes_through() {
        for (objects, limit, is_selected, width) in [
            (0, 0, false, 1),
            (100, 0, false, 1),
            (101, 0, false, 2),
            (5000, 0, false, 10),
            (5000, 500, false, 5),
            (5000, 500, true, 10),
            (3, 500, false, 1),
        ] {
            assert_eq!(width_of_list(objects, limit, is_selected), width, "{objects} {limit} {is_selected}");
        }
        assert_eq!([width_max(0), width_max(20), width_max(600)], [1, 3, 10]);
    }
}
