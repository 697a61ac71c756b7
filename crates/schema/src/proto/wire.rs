//! Protobuf's wire format: a message as a row of numbered payloads.

use super::ProtoError;

/// What stands behind one field number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

/// The rest of a message.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    /// The next field; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Payload<'a>)>, ProtoError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| ProtoError::Malformed("tag"))?;
        let payload = match tag & 7 {
            0 => Payload::Varint(self.varint()?),
            1 => Payload::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| ProtoError::Truncated)?;
                Payload::Bytes(self.take(length)?)
            }
            5 => Payload::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(ProtoError::Malformed("tag")),
        };
        Ok(Some((number, payload)))
    }

    pub(super) fn varint(&mut self) -> Result<u64, ProtoError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or(ProtoError::Truncated)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ProtoError::Malformed("varint"))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtoError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(ProtoError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ProtoError> {
        Ok(self.take(N)?.try_into().expect("take gives as many bytes as asked for"))
    }
}

/// A message that is being written.
#[derive(Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    fn tag(&mut self, number: u32, kind: u32) {
        put_varint(&mut self.0, u64::from(number << 3 | kind));
    }

    pub(super) fn varint(&mut self, number: u32, value: u64) {
        self.tag(number, 0);
        put_varint(&mut self.0, value);
    }

    pub(super) fn fixed64(&mut self, number: u32, bits: u64) {
        self.tag(number, 1);
        self.0.extend_from_slice(&bits.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, number: u32, bytes: &[u8]) {
        self.tag(number, 2);
        put_varint(&mut self.0, bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// A message within this one. Most are short, so one byte is kept for its length; what is longer moves on.
    pub(super) fn nested(&mut self, number: u32, content: impl FnOnce(&mut Self)) {
        self.tag(number, 2);
        let start = self.0.len();
        self.0.push(0);
        content(self);
        let length = self.0.len() - start - 1;
        let more = varint_len(length as u64) - 1;
        if more > 0 {
            let end = self.0.len();
            self.0.resize(end + more, 0);
            self.0.copy_within(start + 1..end, start + 1 + more);
        }
        write_varint(&mut self.0[start..=start + more], length as u64);
    }
}

/// Two's complement in 64 bits, also of 32-bit numbers.
pub(super) fn signed(number: i64) -> u64 {
    number.cast_unsigned()
}

pub(super) fn varint_len(value: u64) -> usize {
    let bits = (u64::BITS - (value | 1).leading_zeros()) as usize;
    bits.div_ceil(7)
}

pub(super) fn put_varint(out: &mut Vec<u8>, value: u64) {
    let start = out.len();
    out.resize(start + varint_len(value), 0);
    write_varint(&mut out[start..], value);
}

/// Fills the whole of `out`.
fn write_varint(out: &mut [u8], mut value: u64) {
    let last = out.len() - 1;
    for (at, byte) in out.iter_mut().enumerate() {
        *byte = u8::try_from(value & 0x7f).expect("seven bits") | if at < last { 0x80 } else { 0 };
        value >>= 7;
    }
}
