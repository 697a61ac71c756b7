//! When what is kept beside objects is looked through for those that are gone.

/// Counts what is added: with every second of all that is there, it is time to look through it. So each addition pays for two looks at
/// most, and never more than half of what is kept is of objects that are gone.
#[derive(Default)]
pub struct Sweeps {
    n_added: usize,
}

impl Sweeps {
    /// One was added, of so many that are there now. If it says so, what is gone is to be thrown away.
    pub fn is_due(&mut self, n_kept: usize) -> bool {
        self.n_added += 1;
        let is_due = self.n_added.saturating_mul(2) > n_kept;
        if is_due {
            self.n_added = 0;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_addition_pays_for_two_looks_at_most() {
        let (mut sweeps, mut n_looks) = (Sweeps::default(), 0);
        for n_kept in 1..=10_000 {
            if sweeps.is_due(n_kept) {
                n_looks += n_kept;
            }
        }
        assert!(n_looks <= 2 * 10_000, "{n_looks}");
    }
}
