//! A watch: the endless answer of newline-delimited events, cut into events that share the received buffers.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use corten_meta::Status;
use futures_util::Stream;
use http_body::Body as _;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Body, Error, TransportError};

/// One event: the largest object the API takes, with room for what the server adds.
const LINE_BYTES_MAX: usize = 16 << 20;

/// One event of a watch, with its object as the server wrote it.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchEvent {
    Added(Bytes),
    Modified(Bytes),
    /// The object in its last state, at the version of its deletion.
    Deleted(Bytes),
    /// An object that carries nothing but the version up to which everything has been sent.
    Bookmark(Bytes),
    /// The server gives up, for example because the version asked for is gone.
    Error(Box<Status>),
}

/// See [`crate::Client::watch`]. Dropping it ends the watch.
pub struct Watch {
    body: Body,
    /// The frame being cut; whole lines are given out as slices of it.
    frame: Bytes,
    /// The beginning of a line whose end is in a later frame.
    begun: BytesMut,
    is_over: bool,
}

impl Watch {
    /// Reads events from a response's body.
    pub fn new(body: Body) -> Self {
        Self { body, frame: Bytes::new(), begun: BytesMut::new(), is_over: false }
    }

    /// The next event; `None` where the server ended the watch. Nothing is lost where the caller stops waiting.
    pub async fn next(&mut self) -> Option<Result<WatchEvent, Error>> {
        std::future::poll_fn(|context| self.poll_event(context)).await
    }

    pub(crate) fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<WatchEvent, Error>>> {
        loop {
            if let Some(line) = self.cut_line() {
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return Poll::Ready(Some(read_event(&line)));
            }
            if self.begun.len() > LINE_BYTES_MAX {
                self.end();
                let message = format!("an event of the watch is longer than {LINE_BYTES_MAX} bytes");
                return Poll::Ready(Some(Err(Error::Decode(message))));
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            match std::task::ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => self.frame = frame.into_data().unwrap_or_default(),
                Some(Err(error)) => {
                    self.end();
                    return Poll::Ready(Some(Err(TransportError(format!("the watch broke off: {error}")).into())));
                }
                // A line without its end is a line cut off: its event comes again from the version before it.
                None => self.end(),
            }
        }
    }

    /// Takes the next whole line out of the frame; keeps a line that only begins for the next frame.
    fn cut_line(&mut self) -> Option<Bytes> {
        match memchr::memchr(b'\n', &self.frame) {
            Some(at) => {
                let end = self.frame.split_to(at + 1);
                if self.begun.is_empty() {
                    return Some(end);
                }
                self.begun.extend_from_slice(&end);
                Some(self.begun.split().freeze())
            }
            None => {
                self.begun.extend_from_slice(&std::mem::take(&mut self.frame));
                None
            }
        }
    }

    fn end(&mut self) {
        self.is_over = true;
        self.begun = BytesMut::new();
        self.frame = Bytes::new();
    }
}

impl Stream for Watch {
    type Item = Result<WatchEvent, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_event(context)
    }
}

#[derive(Deserialize)]
struct RawEvent<'a> {
    #[serde(rename = "type")]
    event_type: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

fn read_event(line: &Bytes) -> Result<WatchEvent, Error> {
    if let Some(event) = plain_event(line) {
        return Ok(event);
    }
    let event: RawEvent = serde_json::from_slice(line).map_err(|error| Error::Decode(error.to_string()))?;
    let object = line.slice_ref(event.object.get().as_bytes());
    Ok(match event.event_type {
        "ADDED" => WatchEvent::Added(object),
        "MODIFIED" => WatchEvent::Modified(object),
        "DELETED" => WatchEvent::Deleted(object),
        "BOOKMARK" => WatchEvent::Bookmark(object),
        "ERROR" => WatchEvent::Error(Box::new(crate::params::status_of(500, &object))),
        other => return Err(Error::Decode(format!("a watch event has the unknown type {other:?}"))),
    })
}

/// An event as servers write it, nothing but type and object in this order, is cut without reading the object: who
/// decodes that finds out whether it is one.
fn plain_event(line: &Bytes) -> Option<WatchEvent> {
    type Make = fn(Bytes) -> WatchEvent;
    const KINDS: [(&[u8], Make); 3] = [
        (br#"{"type":"ADDED","object":{"#, WatchEvent::Added),
        (br#"{"type":"MODIFIED","object":{"#, WatchEvent::Modified),
        (br#"{"type":"DELETED","object":{"#, WatchEvent::Deleted),
    ];
    let (head, event) = KINDS.into_iter().find(|(head, _)| line.starts_with(head))?;
    let object = line[head.len() - 1..].strip_suffix(b"}\n")?;
    object.ends_with(b"}").then(|| event(line.slice_ref(object)))
}

#[cfg(test)]
mod tests;
