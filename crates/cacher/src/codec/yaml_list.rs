//! A list as YAML, written again piece by piece while it is sent: no answer is ever in memory as a whole.

use std::collections::BTreeMap;

use bytes::Bytes;
use corten_meta::Status;
use futures_util::{StreamExt, stream};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::{Value, value::RawValue};

use super::yaml;
use crate::{
    apart::in_turn,
    body::{self, Body, BoxError},
};

/// So much JSON is written again in one piece. An item that is larger is one.
const PIECE_BYTES: usize = 32 * 1024;
/// What comes before the items of a list, and after them.
const AROUND_BYTES_MAX: usize = 1024 * 1024;

/// The body of a list in JSON as one in YAML. What goes wrong after its first piece ends the connection.
///
/// # Errors
/// What goes wrong in the first piece.
pub(super) async fn rewritten(json: Body) -> Result<Body, Status> {
    let mut list = List { json, split: Split::default(), has_ended: false };
    let Some(first) = list.next().await? else { return Ok(body::whole("")) };
    let rest = stream::unfold(Some(list), |list| async move {
        let mut list = list?;
        match list.next().await {
            Ok(Some(piece)) => Some((Ok(Frame::data(piece)), Some(list))),
            Ok(None) => None,
            Err(status) => Some((Err(BoxError::from(status.to_string())), None)),
        }
    });
    let first = stream::once(std::future::ready(Ok(Frame::data(first))));
    Ok(StreamBody::new(first.chain(rest)).boxed_unsync())
}

struct List {
    json: Body,
    split: Split,
    has_ended: bool,
}

impl List {
    async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        while !self.has_ended {
            match self.json.frame().await.transpose().map_err(Status::internal)? {
                Some(frame) => {
                    let Ok(bytes) = frame.into_data() else { continue };
                    self.split.take(&bytes)?;
                    if self.split.waiting() < PIECE_BYTES {
                        continue;
                    }
                }
                None => self.has_ended = true,
            }
            let (split, has_ended) = (&mut self.split, self.has_ended);
            let piece = in_turn(|| split.written(has_ended)).await?;
            if !piece.is_empty() {
                return Ok(Some(piece.into()));
            }
        }
        Ok(None)
    }
}

/// Tells the items of the one long array of a list from what is around it, and from each other.
#[derive(Default)]
struct Split {
    place: ListPart,
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// The text around the items; the array in it is empty.
    around: Vec<u8>,
    name: &'static str,
    item: Vec<u8>,
    items: Vec<Vec<u8>>,
    bytes: usize,
    has_begun: bool,
    has_items: bool,
    /// What came before the items.
    head: Vec<u8>,
    /// The fields that were written.
    said: Vec<String>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ListPart {
    #[default]
    Head,
    Items,
    Tail,
}

/// The fields that hold the items of lists and the rows of tables.
const ARRAYS: [(&str, &[u8]); 2] = [("items", b"\"items\":["), ("rows", b"\"rows\":[")];

impl Split {
    fn take(&mut self, bytes: &[u8]) -> Result<(), Status> {
        bytes.iter().for_each(|it| self.one(*it));
        if self.around.len() > AROUND_BYTES_MAX {
            Err(Status::internal("too much around the items of a list"))
        } else {
            Ok(())
        }
    }

    fn one(&mut self, byte: u8) {
        let is_within = self.place == ListPart::Items;
        if self.in_string {
            self.in_string = self.is_escaped || byte != b'"';
            self.is_escaped = !self.is_escaped && byte == b'\\';
            return self.put(byte);
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        match byte {
            b',' if is_within && self.depth == 2 => return self.end_item(),
            b']' if is_within && self.depth == 1 => {
                self.end_item();
                self.place = ListPart::Tail;
            }
            _ => {}
        }
        self.put(byte);
        if byte == b'[' && self.depth == 2 && self.place == ListPart::Head {
            let array = ARRAYS.iter().find(|it| self.around.ends_with(it.1));
            if let Some((name, _)) = array {
                self.name = name;
                self.place = ListPart::Items;
                self.head = [&self.around[..], b"]}"].concat();
            }
        }
    }

    fn put(&mut self, byte: u8) {
        if self.place == ListPart::Items { self.item.push(byte) } else { self.around.push(byte) }
    }

    fn end_item(&mut self) {
        let item = std::mem::take(&mut self.item);
        if !item.trim_ascii().is_empty() {
            self.bytes += item.len();
            self.items.push(item);
        }
    }

    /// How much there is to be written.
    fn waiting(&self) -> usize {
        self.bytes
    }

    /// What can be written of what was taken.
    fn written(&mut self, has_ended: bool) -> Result<String, Status> {
        let mut out = String::new();
        if has_ended && self.name.is_empty() {
            return yaml::text(yaml::whole(&self.around)?);
        }
        for item in std::mem::take(&mut self.items) {
            self.begin(&mut out)?;
            if !std::mem::replace(&mut self.has_items, true) {
                out.push_str(&format!("{}:\n", self.name));
            }
            let item = yaml::whole(&item)?;
            append(&mut out, Value::Array(vec![item]))?;
        }
        self.bytes = 0;
        if has_ended {
            self.begin(&mut out)?;
            if !self.has_items {
                out.push_str(&format!("{}: []\n", self.name));
            }
            self.fields(&self.around, &mut out, |_| true)?;
        }
        Ok(out)
    }

    /// Writes the fields that stand before the items, by their names.
    fn begin(&mut self, out: &mut String) -> Result<(), Status> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        let name = self.name;
        let head = std::mem::take(&mut self.head);
        self.said = self.fields(&head, out, |it| it < name)?;
        Ok(())
    }

    /// Writes those of the fields around the items that are chosen and were not written before; gives their names.
    fn fields(&self, around: &[u8], out: &mut String, is_chosen: impl Fn(&str) -> bool) -> Result<Vec<String>, Status> {
        let fields: BTreeMap<&str, &RawValue> = serde_json::from_slice(around).map_err(Status::internal)?;
        let mut said = Vec::new();
        for (name, value) in fields {
            if name == self.name || !is_chosen(name) || self.said.iter().any(|it| it == name) {
                continue;
            }
            let value = yaml::whole(value.get().as_bytes())?;
            append(out, Value::Object([(name.to_owned(), value)].into_iter().collect()))?;
            said.push(name.to_owned());
        }
        Ok(said)
    }
}

/// Writes a part of the document, with a line end behind it.
fn append(out: &mut String, value: Value) -> Result<(), Status> {
    out.push_str(&yaml::text(value)?);
    if !out.ends_with('\n') {
        out.push('\n');
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is written of a list that comes in pieces of so many bytes.
    async fn written(list: &Value, piece: usize) -> String {
        let text = list.to_string() + "\n";
        let frames: Vec<_> =
            text.as_bytes().chunks(piece).map(|it| Ok(Frame::data(Bytes::copy_from_slice(it)))).collect();
        let body = rewritten(StreamBody::new(stream::iter(frames)).boxed_unsync()).await.expect("it begins");
        String::from_utf8(body.collect().await.expect("it is written").to_bytes().to_vec()).expect("it is a text")
    }

    #[tokio::test]
    async fn a_list_in_pieces_is_what_it_would_be_as_a_whole() {
        let item = |n: usize| json!({ "metadata": { "name": format!("a-{n}") }, "data": { "k": "],[\"items\":[\\", "items": "[1,2" } });
        let many: Vec<Value> = (0..2_000).map(item).collect();
        let of =
            |items: &[Value]| json!({ "kind": "L", "apiVersion": "v1", "metadata": { "items": [1] }, "items": items });
        let table = json!({ "kind": "Table", "apiVersion": "v1", "columnDefinitions": [{ "name": "N" }], "rows": [{ "cells": ["a", 1] }, { "cells": [] }] });
        let late = json!({ "kind": "L", "items": [{}, [], "a,b", null], "apiVersion": "v1", "spec": { "a": 1 } });
        for list in [of(&[]), of(&many[..1]), of(&many[..3]), table, late, json!({ "kind": "Odd" })] {
            for piece in [1, 7, 100_000] {
                let text = written(&list, piece).await;
                let read: Value = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
                assert_eq!(read, list, "{text}");
            }
        }
        let text = written(&of(&many), 1 << 20).await;
        assert!(text.starts_with("apiVersion: v1\nitems:\n- data:"), "{}", &text[..100]);
        assert_eq!(serde_saphyr::from_str::<Value>(&text).expect("it is YAML"), of(&many));
    }
}
