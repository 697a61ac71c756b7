//! The one kind that is stored and that no schema describes: which numbers of a range are given away (`core/v1 RangeAllocation`).

use super::{
    ProtoError,
    body::{ENVELOPE_TAIL, envelope},
    enveloped, read_type_meta, text,
    wire::{Payload, Reader, Writer},
};

/// Of an ObjectMeta in which nothing is set: what is no pointer in Go is written all the same.
const EMPTY_METADATA: &[u8] = &[
    1 << 3 | 2,
    0,
    2 << 3 | 2,
    0,
    3 << 3 | 2,
    0,
    4 << 3 | 2,
    0,
    5 << 3 | 2,
    0,
    6 << 3 | 2,
    0,
    7 << 3,
    0,
    8 << 3 | 2,
    0,
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeAllocation {
    /// An ObjectMeta as it was read.
    metadata: Box<[u8]>,
    /// `30000-32767`.
    pub range: String,
    /// A bitmap as Go writes a large number: without zeros at its beginning, the first number of the range last.
    pub data: Vec<u8>,
}

impl RangeAllocation {
    pub fn new(range: &str) -> Self {
        Self { metadata: EMPTY_METADATA.into(), range: range.to_owned(), data: Vec::new() }
    }

    /// # Errors
    /// See [`ProtoError`].
    pub fn decode(stored: &[u8]) -> Result<Self, ProtoError> {
        let (type_meta, raw) = enveloped(stored)?;
        let (api_version, kind) = read_type_meta(type_meta)?;
        if kind != "RangeAllocation" {
            return Err(ProtoError::UnknownKind(kind, api_version));
        }
        let mut found = Self { metadata: Box::default(), ..Self::new("") };
        let mut fields = Reader(raw);
        while let Some((number, payload)) = fields.next()? {
            match (number, payload) {
                (1, Payload::Bytes(bytes)) => found.metadata = bytes.into(),
                (2, Payload::Bytes(bytes)) => found.range = text(bytes)?,
                (3, Payload::Bytes(bytes)) => found.data = bytes.to_vec(),
                _ => return Err(ProtoError::Malformed("RangeAllocation")),
            }
        }
        Ok(found)
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut raw = Writer::default();
        raw.bytes(1, &self.metadata);
        raw.bytes(2, self.range.as_bytes());
        raw.bytes(3, &self.data);
        let mut out = Vec::with_capacity(raw.0.len() + 40);
        envelope("v1", "RangeAllocation", raw.0.len(), &mut out);
        out.extend_from_slice(&raw.0);
        out.extend_from_slice(&ENVELOPE_TAIL);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_kubernetes_writes() {
        let allocation = RangeAllocation { data: vec![0x80, 0, 1], ..RangeAllocation::new("30000-32767") };
        let written = allocation.encode();
        let expected: &[&[u8]] = &[
            b"k8s\0\x0a\x15\x0a\x02v1\x12\x0fRangeAllocation\x12\x24",
            b"\x0a\x10\x0a\0\x12\0\x1a\0\x22\0\x2a\0\x32\0\x38\0\x42\0",
            b"\x12\x0b30000-32767\x1a\x03\x80\0\x01\x1a\0\x22\0",
        ];
        assert_eq!(written, expected.concat());
        assert_eq!(RangeAllocation::decode(&written).expect("it is one"), allocation);
        let other = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09Endpoints\x12\0";
        assert_eq!(
            RangeAllocation::decode(other),
            Err(ProtoError::UnknownKind("Endpoints".into(), "v1".into())),
            "of another kind"
        );
    }
}
