//! Counts requests and how long they take, and names each request in its answer.

use std::{
    pin::Pin,
    task::{self, Poll, ready},
};

use bytes::Bytes;
use corten_cacher::{
    answer,
    body::{Body, BoxError, Response},
};
use corten_meta::Status;
use corten_metrics::{Histogram, RequestTime, scraped::number};
use http::HeaderValue;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;

use crate::{context::Context, filters::next::Rest};

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    let start = tokio::time::Instant::now();
    let mut response = {
        let metrics = ctx.state.clone();
        let _in_flight = metrics.metrics().requests.begin(ctx.info.verb);
        rest.run(ctx).await
    };
    let size = ctx.state.metrics().requests.record(
        &ctx.info,
        ctx.header(http::header::CONTENT_TYPE),
        response.status().as_u16(),
        RequestTime { whole: start.elapsed(), waited: ctx.seat_wait + ctx.notes.webhook_time() },
    );
    if let Some(size) = size {
        response = measured(response, size);
    }
    if let Ok(id) = HeaderValue::from_str(&ctx.id) {
        response.headers_mut().insert("audit-id", id);
    }
    response
}

/// Has the size of an answer counted: at once where it is all there, else when it has been sent, or nobody takes the rest of it.
fn measured(response: Response, size: Histogram) -> Response {
    match response.body().size_hint().exact() {
        Some(bytes) => {
            size.observe(number(bytes));
            response
        }
        None => response.map(|body| Measured { body, bytes: 0, size }.boxed_unsync()),
    }
}

/// An answer that is made while it is sent.
struct Measured {
    body: Body,
    bytes: u64,
    size: Histogram,
}

impl http_body::Body for Measured {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            self.bytes += frame.data_ref().map_or(0, Bytes::len) as u64;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        self.size.observe(number(self.bytes));
    }
}

/// The answer to a request that is not served for the server's sake, which is counted apart.
pub(super) fn terminated(ctx: &Context, status: &Status) -> Response {
    let response = answer::status(status);
    let content_type = ctx.header(http::header::CONTENT_TYPE);
    ctx.state.metrics().requests.terminate(&ctx.info, content_type, response.status().as_u16());
    response
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::StreamBody;

    use super::*;

    #[tokio::test]
    async fn an_answer_that_is_made_while_it_is_sent_counts_as_far_as_it_was_sent() {
        let size = Histogram::with_opts(corten_metrics::HistogramOpts::new("size", "Sizes.")).expect("a histogram");
        let pieces = || {
            let pieces = ["ab", "cde"].map(|it| Ok::<_, BoxError>(Frame::data(Bytes::from(it))));
            Response::new(StreamBody::new(stream::iter(pieces)).boxed_unsync())
        };
        let answer = measured(pieces(), size.clone());
        assert_eq!(size.get_sample_count(), 0);
        assert_eq!(answer.into_body().collect().await.expect("it is all there").to_bytes(), "abcde");
        assert_eq!((size.get_sample_count(), size.get_sample_sum()), (1, 5.0));
        let mut left = measured(pieces(), size.clone()).into_body();
        left.frame().await;
        drop(left);
        assert_eq!((size.get_sample_count(), size.get_sample_sum()), (2, 7.0));
        let whole = measured(Response::new(corten_cacher::body::whole("abc")), size.clone());
        assert_eq!((size.get_sample_count(), size.get_sample_sum()), (3, 10.0));
        drop(whole);
        assert_eq!(size.get_sample_count(), 3);
    }
}
