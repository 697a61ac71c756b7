//! The three numbers of a semantic version.

/// Major, minor, patch; `None` where the text is no semantic version. What follows them (`-rc.1`, `+build`) is not compared.
pub fn release(text: &str) -> Option<(u64, u64, u64)> {
    let core = text.split(['-', '+']).next()?;
    let number = |it: &str| -> Option<u64> {
        let plain = !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit()) && (it == "0" || !it.starts_with('0'));
        if plain { it.parse().ok() } else { None }
    };
    match core.split('.').collect::<Vec<_>>()[..] {
        [major, minor, patch] => Some((number(major)?, number(minor)?, number(patch)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::release;

    #[test]
    fn versions_have_three_plain_numbers() {
        for (text, expected) in [
            ("1.37.0", Some((1, 37, 0))),
            ("1.2.3-rc.1+build", Some((1, 2, 3))),
            ("1.37", None),
            ("v1.37.0", None),
            ("1.037.0", None),
            ("1.2.3.4", None),
            ("", None),
        ] {
            assert_eq!(release(text), expected, "{text}");
        }
    }
}
