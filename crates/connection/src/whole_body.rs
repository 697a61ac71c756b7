//! A request's body as it comes together. However small the frames are that it comes in, it takes no more than its bytes.

use bytes::Bytes;

#[derive(Default)]
pub struct WholeBody {
    /// Alone in most cases, and then not copied.
    first: Bytes,
    all: Vec<u8>,
}

impl WholeBody {
    pub fn push(&mut self, data: Bytes) {
        if !self.all.is_empty() {
            self.all.extend_from_slice(&data);
        } else if self.first.is_empty() {
            self.first = data;
        } else {
            self.all = [&self.first[..], &data[..]].concat();
            self.first = Bytes::new();
        }
    }
}

impl From<WholeBody> for Bytes {
    fn from(body: WholeBody) -> Self {
        if body.all.is_empty() { body.first } else { body.all.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_together() {
        for frames in [&[""; 0][..], &["a"], &["", "a"], &["a", "", "b"], &["a", "b", "c"]] {
            let mut body = WholeBody::default();
            for frame in frames {
                body.push(Bytes::from_static(frame.as_bytes()));
            }
            assert_eq!(Bytes::from(body), frames.concat(), "{frames:?}");
        }
        let mut body = WholeBody::default();
        let frame = Bytes::from(vec![1; 10]);
        body.push(frame.clone());
        assert_eq!(Bytes::from(body).as_ptr(), frame.as_ptr(), "one frame is not copied");
    }
}
