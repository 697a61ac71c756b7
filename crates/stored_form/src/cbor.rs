//! CBOR (RFC 8949) as kube-apiserver stores custom resources in it where its gate CBORServingAndStorage is on: one item of definite
//! length behind the tag that says what it is. Texts and keys may be byte strings.

use corten_meta::depth::{EXCEEDED, LEVELS_MAX};
use serde_json::{Map, Number, Value};

/// "Self-described CBOR".
pub(crate) const TAG: &[u8] = &[0xd9, 0xd9, 0xf7];

/// # Errors
/// What is wrong with it.
pub(crate) fn read(stored: &[u8]) -> Result<Value, String> {
    let mut reader = Reader(stored.strip_prefix(TAG).unwrap_or(stored));
    let value = reader.item(LEVELS_MAX)?;
    if reader.0.is_empty() { Ok(value) } else { Err("something follows the CBOR item".into()) }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn item(&mut self, levels: usize) -> Result<Value, String> {
        let first = self.take(1)?[0];
        let (major, argument) = (first >> 5, first & 0x1f);
        if major == 7 {
            return self.simple(argument);
        }
        let number = self.argument(argument)?;
        Ok(match major {
            0 => Number::from(number).into(),
            1 => match i64::try_from(number) {
                Ok(number) => Number::from(-1 - number).into(),
                Err(_) => return Err("a number is too small".into()),
            },
            2 | 3 => self.text(number)?.into(),
            4 => {
                let levels = levels.checked_sub(1).ok_or(EXCEEDED)?;
                let mut items = Vec::new();
                for _ in 0..number {
                    items.push(self.item(levels)?);
                }
                Value::Array(items)
            }
            5 => {
                let levels = levels.checked_sub(1).ok_or(EXCEEDED)?;
                let mut entries = Map::new();
                for _ in 0..number {
                    let Value::String(key) = self.item(levels)? else { return Err("a key is no text".into()) };
                    let value = self.item(levels)?;
                    entries.insert(key, value);
                }
                Value::Object(entries)
            }
            _ => return Err(format!("unrecognized tag {number}")),
        })
    }

    fn simple(&mut self, argument: u8) -> Result<Value, String> {
        Ok(match argument {
            20 => Value::Bool(false),
            21 => Value::Bool(true),
            22 => Value::Null,
            25 => float(half(u16::from_be_bytes(self.array()?)))?,
            26 => float(f32::from_be_bytes(self.array()?).into())?,
            27 => float(f64::from_be_bytes(self.array()?))?,
            other => return Err(format!("unrecognized simple value {other}")),
        })
    }

    fn argument(&mut self, argument: u8) -> Result<u64, String> {
        Ok(match argument {
            0..24 => argument.into(),
            24 => self.take(1)?[0].into(),
            25 => u16::from_be_bytes(self.array()?).into(),
            26 => u32::from_be_bytes(self.array()?).into(),
            27 => u64::from_be_bytes(self.array()?),
            _ => return Err("an item is of indefinite length".into()),
        })
    }

    fn text(&mut self, length: u64) -> Result<String, String> {
        let length = usize::try_from(length).map_err(|_| ENDS_EARLY)?;
        let text = std::str::from_utf8(self.take(length)?).map_err(|_| "a text is not UTF-8")?;
        Ok(text.to_owned())
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(ENDS_EARLY)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        Ok(self.take(N)?.try_into().expect("take gives as many bytes as asked for"))
    }
}

const ENDS_EARLY: &str = "the CBOR item ends early";

fn float(value: f64) -> Result<Value, String> {
    Number::from_f64(value).map(Value::Number).ok_or_else(|| format!("{value} is no number of JSON"))
}

/// A float of sixteen bits: sign, five bits of exponent, ten of fraction.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let size = match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2_f64.powi(exponent - 15),
    };
    if bits >> 15 == 0 { size } else { -size }
}
