//! `SPDY/3.1+portforward.k8s.io`: a SPDY connection whose bytes go as binary messages.

use std::io;

use bytes::BytesMut;

use super::{Down, Flow, Up};
use crate::websocket;

/// Either half. Messages have no meaning of their own: their borders are lost.
pub(crate) struct PortForward;

impl Up for PortForward {
    fn message(&mut self, _: bool, _: bool, bytes: &[u8], server: &mut BytesMut) -> io::Result<()> {
        server.extend_from_slice(bytes);
        Ok(())
    }
}

impl Down for PortForward {
    fn bytes(&mut self, input: &mut BytesMut, client: &mut BytesMut, _: &mut BytesMut) -> io::Result<Flow> {
        websocket::put_message(input, client);
        input.clear();
        Ok(Flow::More)
    }

    fn end(&mut self, _: &mut BytesMut) {}
}
