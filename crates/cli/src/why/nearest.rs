//! What somebody who wrote one name may have meant: the name among those that are there with the fewest letters to change.

/// The nearest of `names` to `wanted`, if it is near enough for a slip: a third of its letters. Of a name of one or two letters
/// nothing is left where one is another.
pub(super) fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = wanted.chars().count() / 3;
    let near = names.into_iter().map(|it| (distance(wanted, it), it)).filter(|it| it.0 <= allowed && it.0 > 0);
    near.min().map(|it| it.1)
}

/// Letters to insert, remove, change, or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let change = row[j] + usize::from(x != y);
            let mut best = change.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        for (wanted, names, expected) in [
            ("app-confg", vec!["app-config", "other"], Some("app-config")),
            ("wbe", vec!["web", "db"], Some("web")),
            ("web", vec!["web"], None),
            ("frontend", vec!["backend"], None),
            ("http", vec!["https", "metrics"], Some("https")),
            ("x", vec![], None),
            ("h", vec!["b", "ha"], None),
            ("db", vec!["dc", "d"], None),
        ] {
            assert_eq!(nearest(wanted, names), expected, "{wanted}");
        }
    }
}
