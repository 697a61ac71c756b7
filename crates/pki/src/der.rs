//! The little of DER that writing a certificate takes.

use corten_meta::Time;

pub(super) fn tlv(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match u8::try_from(content.len()) {
        Ok(short) if short < 0x80 => out.push(short),
        _ => {
            let bytes = content.len().to_be_bytes();
            let bytes: Vec<u8> = bytes.into_iter().skip_while(|it| *it == 0).collect();
            out.push(0x80 | u8::try_from(bytes.len()).expect("at most eight bytes of length"));
            out.extend(bytes);
        }
    }
    out.extend_from_slice(content);
    out
}

pub(super) fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    tlv(0x30, &parts.concat())
}

/// An object identifier whose encoding is known.
pub(super) fn oid(encoded: &[u8]) -> Vec<u8> {
    tlv(0x06, encoded)
}

pub(super) fn extension(encoded_oid: &[u8], critical: bool, value: &[u8]) -> Vec<u8> {
    let flag = if critical { tlv(0x01, &[0xff]) } else { Vec::new() };
    sequence(&[&oid(encoded_oid), &flag, &tlv(0x04, value)])
}

/// UTCTime until 2049, GeneralizedTime after, as RFC 5280 wants it.
pub(super) fn time(unix_seconds: i64) -> Vec<u8> {
    let text = Time::from_unix_seconds(unix_seconds).to_string();
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if digits.as_str() < "2050" {
        tlv(0x17, format!("{}Z", &digits[2..]).as_bytes())
    } else {
        tlv(0x18, format!("{digits}Z").as_bytes())
    }
}

/// A bit string of named bits, without its trailing zeros.
pub(super) fn bits(bits: &[u8]) -> Vec<u8> {
    let Some(last) = bits.iter().max() else { return tlv(0x03, &[0]) };
    let mut bytes = vec![0_u8; usize::from(last / 8) + 1];
    for bit in bits {
        bytes[usize::from(bit / 8)] |= 0x80 >> (bit % 8);
    }
    let unused = 7 - last % 8;
    tlv(0x03, &[&[unused][..], &bytes].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_der() {
        assert_eq!(tlv(4, &[1, 2]), [4, 2, 1, 2]);
        assert_eq!(tlv(4, &[0; 200])[..3], [4, 0x81, 200]);
        assert_eq!(tlv(4, &[0; 300])[..4], [4, 0x82, 1, 44]);
        assert_eq!(time(1_800_000_000), tlv(0x17, b"270115080000Z"));
        assert_eq!(time(2_600_000_000), tlv(0x18, b"20520522141320Z"));
        // digitalSignature and keyEncipherment.
        assert_eq!(bits(&[0, 2]), [3, 2, 5, 0xa0]);
        assert_eq!(bits(&[8]), [3, 3, 7, 0, 0x80]);
    }
}
