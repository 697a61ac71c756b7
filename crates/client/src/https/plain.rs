//! The transport without TLS, for servers beside the API server that an operator runs so: a connection for each request.

use bytes::Bytes;
use http::{Request, Response, Uri, uri::PathAndQuery};
use tokio::net::TcpStream;

use super::{TargetError, connection::Single};
use crate::{Body, BoxFuture, Transport, TransportError};

/// Speaks HTTP/1.1 to one server.
pub struct PlainTransport {
    address: (String, u16),
    /// `http://host:port/prefix`, what every request's path is put behind.
    server: Uri,
}

impl PlainTransport {
    /// Prepares, without connecting yet.
    ///
    /// # Errors
    /// It is no `http://` address.
    pub fn new(server: &str) -> Result<Self, TargetError> {
        let failed = |reason: String| TargetError { server: server.to_owned(), reason };
        let uri: Uri = server.parse().map_err(|error| failed(format!("{error}")))?;
        let host = uri.host().filter(|_| uri.scheme_str() == Some("http"));
        let host = host.ok_or_else(|| failed("its address must begin with http:// and a host".into()))?;
        let address = (host.trim_matches(['[', ']']).to_owned(), uri.port_u16().unwrap_or(80));
        Ok(Self { address, server: uri })
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Body>, TransportError> {
        let (host, port) = &self.address;
        let failed =
            |error: &dyn std::error::Error| TransportError(format!("cannot connect to {host}:{port}: {error}"));
        let (mut head, body) = request.into_parts();
        let prefix = self.server.path().trim_end_matches('/');
        let path = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let mut parts = self.server.clone().into_parts();
        parts.path_and_query = Some(format!("{prefix}{path}").parse().map_err(|it| failed(&it))?);
        head.uri = Uri::from_parts(parts).map_err(|it| failed(&it))?;
        let stream = TcpStream::connect((&**host, *port)).await.map_err(|it| failed(&it))?;
        stream.set_nodelay(true).map_err(|it| failed(&it))?;
        let single = Single::over(stream).await.map_err(|it| failed(&it))?;
        single.send(Request::from_parts(head, body)).await
    }
}

impl Transport for PlainTransport {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        Box::pin(self.exchange(request))
    }
}
