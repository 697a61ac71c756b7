//! JSON for people to read, written so while its pieces pass.

use corten_meta::depth::LEVELS_MAX;

/// Puts line ends and blanks between the tokens of one JSON text, as Go's `json.Indent` does. What was valid stays the same
/// document, however deep it is; what is deeper than any object may be moves no further to the right.
#[derive(Default)]
pub struct Indent {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// A list or an object has begun, and nothing of it has come yet.
    is_open: bool,
}

impl Indent {
    /// What the next piece of the text becomes.
    pub fn write(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(piece.len() * 2);
        for byte in piece {
            self.one(*byte, &mut out);
        }
        out
    }

    fn one(&mut self, byte: u8, out: &mut Vec<u8>) {
        if self.in_string {
            out.push(byte);
            self.in_string = self.is_escaped || byte != b'"';
            self.is_escaped = !self.is_escaped && byte == b'\\';
            return;
        }
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if !std::mem::take(&mut self.is_open) {
                    self.line(out);
                }
                out.push(byte);
            }
            _ => {
                if std::mem::take(&mut self.is_open) {
                    self.line(out);
                }
                out.push(byte);
                self.after(byte, out);
            }
        }
    }

    fn after(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            b'"' => self.in_string = true,
            b':' => out.push(b' '),
            b',' => self.line(out),
            b'{' | b'[' => {
                self.depth += 1;
                self.is_open = true;
            }
            _ => {}
        }
    }

    fn line(&self, out: &mut Vec<u8>) {
        out.push(b'\n');
        out.resize(out.len() + 2 * self.depth.min(LEVELS_MAX), b' ');
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pieces_become_what_the_whole_would() {
        let value = json!({
            "a": [], "b": {}, "c": [1, [2, { "d": null }], "x,y:{}[]\\\"", "\\"], "e\"": { "f": { "g": true } }, "h": -1.5e3,
        });
        let text = serde_json::to_vec(&value).expect("JSON");
        let wanted = serde_json::to_string_pretty(&value).expect("JSON");
        for length in 1..=text.len() {
            let mut indent = Indent::default();
            let written: Vec<u8> = text.chunks(length).flat_map(|it| indent.write(it)).collect();
            assert_eq!(String::from_utf8(written).expect("UTF-8"), wanted, "in pieces of {length}");
        }
        let deep = Indent::default().write(&b"[".repeat(10_000));
        assert!(deep.len() < 10_000 * (2 + 2 * LEVELS_MAX), "{}", deep.len());
        assert_eq!(Indent::default().write(wanted.as_bytes()), wanted.as_bytes(), "what is indented stays so");
    }
}
