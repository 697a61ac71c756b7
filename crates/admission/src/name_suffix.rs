//! The end of a generated name.

/// In bytes.
pub const SUFFIX_BYTES: usize = 5;

/// Five characters that make no words, of a fresh identifier: they are not likely to come twice.
pub fn name_suffix(uid: &str) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let digits: Vec<u8> = uid.bytes().filter(u8::is_ascii_hexdigit).collect();
    let suffix = digits.chunks(3).take(SUFFIX_BYTES).map(|it| {
        let number = it.iter().fold(0_usize, |sum, digit| sum * 16 + usize::from(hex(*digit)));
        char::from(ALPHABET[number % ALPHABET.len()])
    });
    suffix.collect()
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit.saturating_sub(b'A') + 10,
    }
}
