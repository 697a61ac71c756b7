//! How many seats each priority level has: what one does not use others borrow (KEP-1040, "Dispatching").

/// What is known of a level when the seats are divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allotment {
    pub nominal: u32,
    /// What it keeps however much others want.
    pub lower: u32,
    /// What it has at most.
    pub upper: u32,
    pub demand: Demand,
}

/// How many seats a level wanted since the seats were divided last.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Demand {
    /// The most at once.
    pub highest: u32,
    /// Mean and standard deviation together, which falls slowly where less is wanted.
    pub smooth: f64,
    /// Of the time that was turned last.
    pub mean: f64,
    pub deviation: f64,
    /// Seconds, seats by seconds, and squares of seats by seconds.
    sums: (f64, f64, f64),
}

/// So much of what was wanted before is kept each time.
const SMOOTHING: f64 = 0.977;

impl Demand {
    /// So many seats were wanted for so long.
    pub fn note(&mut self, seats: u32, seconds: f64) {
        let wanted = f64::from(seats);
        self.highest = self.highest.max(seats);
        self.sums = (
            self.sums.0 + seconds,
            wanted.mul_add(seconds, self.sums.1),
            (wanted * wanted).mul_add(seconds, self.sums.2),
        );
    }

    /// What is to be divided by; then a new time begins, in which `seats` are wanted.
    pub fn turn(&mut self, seats: u32) -> Self {
        let (seconds, sum, squares) = self.sums;
        (self.mean, self.deviation) = if seconds > 0.0 {
            let mean = sum / seconds;
            (mean, (squares / seconds - mean * mean).max(0.0).sqrt())
        } else {
            (f64::from(seats), 0.0)
        };
        let envelope = self.mean + self.deviation;
        self.smooth =
            if envelope > self.smooth { envelope } else { SMOOTHING * self.smooth + (1.0 - SMOOTHING) * envelope };
        let turned = *self;
        *self = Self { highest: seats, sums: (0.0, 0.0, 0.0), ..turned };
        turned
    }
}

impl Allotment {
    /// What a level may lend and borrow, in percent of its nominal seats.
    pub fn new(nominal: u32, lendable_percent: u32, borrowing_percent: Option<u32>, all: u32) -> Self {
        let percent = |percent: u32| (u64::from(nominal) * u64::from(percent) + 50) / 100;
        let lendable = u32::try_from(percent(lendable_percent.min(100))).unwrap_or(nominal);
        let borrowed = borrowing_percent.map(|it| u32::try_from(percent(it)).unwrap_or(u32::MAX));
        let upper = borrowed.map_or(nominal.max(all), |it| nominal.saturating_add(it));
        Self { nominal, lower: nominal - lendable, upper, demand: Demand::default() }
    }

    /// What it keeps of its own, for it has wanted so much lately.
    fn kept(&self) -> f64 {
        f64::from(self.lower.max(self.nominal.min(self.demand.highest)))
    }

    /// What it would have, were there no others.
    pub fn target(&self) -> f64 {
        self.kept().max(self.demand.smooth)
    }
}

/// How seats are divided.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    /// Of each level.
    pub seats: Vec<u32>,
    /// The part of what it wants that each level gets.
    pub fair_fraction: f64,
}

/// Divides `all` seats: each level gets the same part of what it wants, but no less than it keeps and no more than it may have.
pub fn allot(all: u32, levels: &[Allotment]) -> Division {
    let all = f64::from(all);
    let kept: f64 = levels.iter().map(Allotment::kept).sum();
    if kept >= all {
        let seats = levels.iter().map(|it| rounded(it.kept() * all / kept)).collect();
        return Division { seats, fair_fraction: all / kept };
    }
    // Nobody wants less than a seat: else a level that wanted nothing so far gets nothing of what nobody uses.
    let share = |part: f64, it: &Allotment| {
        let kept = it.kept();
        (part * it.target().max(1.0)).clamp(kept, f64::from(it.upper).max(kept))
    };
    let given = |part: f64| levels.iter().map(|it| share(part, it)).sum::<f64>();
    let (mut low, mut high) = (0.0_f64, all.max(1.0));
    for _ in 0..64 {
        let middle = f64::midpoint(low, high);
        if given(middle) > all { high = middle } else { low = middle }
    }
    Division { seats: levels.iter().map(|it| rounded(share(low, it))).collect(), fair_fraction: low }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it lies between zero and the number of all seats"
)]
fn rounded(seats: f64) -> u32 {
    seats.round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(nominal: u32, lendable: u32, borrowing: Option<u32>, highest: u32, smooth: f64) -> Allotment {
        let demand = Demand { highest, smooth, ..Demand::default() };
        Allotment { demand, ..Allotment::new(nominal, lendable, borrowing, 600) }
    }

    #[test]
    fn who_wants_more_borrows_what_others_do_not_use() {
        let quiet = level(300, 50, None, 10, 10.0);
        let busy = level(300, 0, None, 900, 900.0);
        let Division { seats, fair_fraction } = allot(600, &[quiet, busy]);
        assert_eq!(seats, [150, 450], "half of the quiet one's is not for others");
        assert!((fair_fraction - 0.5).abs() < 1e-6, "the busy one gets half of what it wants: {fair_fraction}");
        let bounded = level(300, 0, Some(10), 900, 900.0);
        assert_eq!(allot(600, &[quiet, bounded]).seats, [270, 330], "it borrows a tenth at most");
    }

    #[test]
    fn what_was_lent_comes_back_when_it_is_wanted() {
        let own = level(300, 100, None, 400, 350.0);
        let busy = level(300, 0, None, 900, 900.0);
        assert_eq!(allot(600, &[own, busy]).seats, [300, 300]);
    }

    #[test]
    fn where_shares_are_rounded_up_none_is_left_without() {
        let levels: Vec<Allotment> = (0..7).map(|_| level(1, 0, None, 0, 0.0)).collect();
        assert!(allot(4, &levels).seats.iter().all(|it| *it <= 1));
    }

    #[test]
    fn demand_rises_at_once_and_falls_slowly() {
        let mut demand = Demand::default();
        demand.note(100, 10.0);
        assert!((demand.turn(0).smooth - 100.0).abs() < 0.01);
        demand.note(0, 10.0);
        let turned = demand.turn(0);
        assert!((turned.smooth - 97.7).abs() < 0.01, "{turned:?}");
        assert_eq!(turned.highest, 0);
    }
}
