//! Reads. A range without a limit is read in pages at one revision, so that no answer is longer than is read at once.

use corten_etcd_api::{RangeRequest, RangeResponse, method::RANGE};
use corten_store::{Error, Page, Range, Revision};

use crate::{
    client::Client,
    failure::Failure,
    forgotten::Forgotten,
    keys::{Keys, after},
};

/// Of a page whose objects' sizes are not known yet.
const FIRST_PAGE: i64 = 500;
const PAGE_MAX: i64 = 10_000;
/// What a page is meant to take.
const PAGE_BYTES: usize = 8 << 20;
/// How often all is read again where etcd forgets the revision meanwhile.
const ATTEMPTS: usize = 3;

pub(crate) struct Reads<'a> {
    pub(crate) client: &'a Client,
    pub(crate) keys: &'a Keys,
    pub(crate) forgotten: &'a Forgotten,
}

impl Reads<'_> {
    pub(crate) async fn range(&self, range: &Range, revision: Option<Revision>, limit: usize) -> Result<Page, Error> {
        for _ in 1..ATTEMPTS {
            match self.pages(range, revision, limit).await {
                // Somebody forgot the revision of the first page.
                Err(Error::Compacted { .. }) if revision.is_none() => {}
                page => return page,
            }
        }
        self.pages(range, revision, limit).await
    }

    async fn pages(&self, range: &Range, revision: Option<Revision>, limit: usize) -> Result<Page, Error> {
        let mut page = Page { entries: Vec::new(), revision: revision.unwrap_or_default(), more: false };
        let (mut asked, mut size) = (self.request(range, revision), FIRST_PAGE);
        loop {
            let left = limit.checked_sub(page.entries.len()).filter(|_| limit > 0);
            let of_left = left.map_or(i64::MAX, |it| i64::try_from(it).unwrap_or(i64::MAX));
            asked.limit = size.min(of_left);
            let answer: RangeResponse = match self.client.read(RANGE, &asked).await {
                Ok(answer) => answer,
                Err(failure) if failure.is_too_long() && asked.limit > 1 => {
                    size = asked.limit / 2;
                    continue;
                }
                Err(failure) => return Err(self.error(&failure, revision.unwrap_or(page.revision))),
            };
            if asked.revision == 0 {
                page.revision = answer.header.as_ref().map_or(0, |it| it.revision.unsigned_abs());
                asked.revision = page.revision.cast_signed();
            }
            size = next_size(&answer);
            page.more = answer.more;
            let last = answer.kvs.last().map(|it| after(&it.key));
            page.entries.extend(answer.kvs.into_iter().map(|it| self.keys.entry(it)));
            let is_full = limit > 0 && page.entries.len() >= limit;
            match last {
                Some(last) if page.more && !is_full => asked.key = last,
                _ => return Ok(page),
            }
        }
    }

    fn request(&self, range: &Range, revision: Option<Revision>) -> RangeRequest {
        let within = self.keys.range(range);
        let revision = revision.unwrap_or_default().cast_signed();
        // A range without keys is still a read of that revision.
        let count_only = range.is_empty();
        RangeRequest { key: within.key, range_end: within.end, revision, count_only, ..Default::default() }
    }

    pub(crate) fn error(&self, failure: &Failure, asked: Revision) -> Error {
        if failure.is_compacted() {
            return self.forgotten.error(asked);
        }
        if failure.is_future() {
            return Error::Future { asked, newest: self.client.newest() };
        }
        failure.unavailable()
    }
}

/// As many objects as fill the next page, if they are as large as these.
fn next_size(answer: &RangeResponse) -> i64 {
    let bytes: usize = answer.kvs.iter().map(|it| it.key.len() + it.value.len()).sum();
    let each = (bytes / answer.kvs.len().max(1)).max(1);
    i64::try_from(PAGE_BYTES / each).unwrap_or(PAGE_MAX).clamp(1, PAGE_MAX)
}
