//! A commit is one Txn: it compares the revisions of keys, and reads them where one is another.
//!
//! If the connection breaks, the outcome is unknown. The Txn is retried only if it compares a key it writes: reading that key then shows
//! the outcome.
//!
//! ```text
//! sent      if a is of 7 put a=x          the answer is lost
//! again     if a is of 7 put a=x     ->   done at 9:   the first was not done, and never will be: a is no longer of 7
//!                                    ->   a=x of 8:    the first was done, at 8
//!                                    ->   a=y of 8:    nobody can tell, unless 8 was known when it was sent: it was not done
//! ```

use std::collections::BTreeMap;

use bytes::Bytes;
use corten_etcd_api::{
    self as messages, CompareWith, DeleteRangeRequest, PutRequest, RangeRequest, RequestKind, RequestOp, ResponseKind,
    TxnRequest, TxnResponse, method::TXN,
};
use corten_store::{Compare, Entry, Error, Operation, Outcome, Revision, Txn};

use crate::{
    client::Client,
    failure::{Certainty, Failure},
    keys::Keys,
};

/// No etcd takes a request of this size.
const REQUEST_BYTES_MAX: usize = 32 << 20;
/// What etcd takes where nothing else is set.
const DEFAULT_BYTES_MAX: usize = 1_572_864;

pub(crate) struct Commit<'a> {
    keys: &'a Keys,
    compares: Vec<Compare>,
    /// Of several operations on one key the last counts: etcd refuses a second one.
    operations: BTreeMap<Bytes, Option<Bytes>>,
    request: TxnRequest,
    bytes: usize,
}

impl<'a> Commit<'a> {
    /// # Errors
    /// It is too large for any etcd.
    pub(crate) fn new(keys: &'a Keys, txn: Txn) -> Result<Self, Error> {
        let of = |it: Operation| match it {
            Operation::Put { key, value } => (key, Some(value)),
            Operation::Delete { key } => (key, None),
        };
        let operations: BTreeMap<Bytes, Option<Bytes>> = txn.operations.into_iter().map(of).collect();
        let bytes = operations.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, Bytes::len)).sum();
        if bytes > REQUEST_BYTES_MAX {
            return Err(Error::TooLarge { bytes, max: DEFAULT_BYTES_MAX });
        }
        let request = request(keys, &txn.compares, &operations);
        Ok(Self { keys, compares: txn.compares, operations, request, bytes })
    }

    pub(crate) async fn run(&self, client: &Client) -> Result<Outcome, Error> {
        let (mut tries, mut unanswered, known) = (client.tries(), None, client.newest());
        loop {
            let failure = match client.ask::<_, TxnResponse>(TXN, &self.request).await {
                Ok(answer) => return self.outcome(answer, unanswered.as_ref().map(|it| (it, known))),
                Err(failure) => failure,
            };
            let goes_on = match failure.certainty {
                Certainty::Unknown => self.may_be_sent_again(),
                Certainty::NotSent | Certainty::Refused => failure.may_pass(),
            };
            if !goes_on || !tries.again().await {
                return Err(self.error(failure, unanswered));
            }
            if failure.certainty == Certainty::Unknown {
                unanswered = Some(failure);
            }
        }
    }

    /// Once it is done, a key that it compares is of another revision.
    fn may_be_sent_again(&self) -> bool {
        self.compares.iter().any(|it| self.operations.contains_key(&it.key))
    }

    /// `before`: what came of an attempt before, and which revision was known when that was sent.
    fn outcome(&self, answer: TxnResponse, before: Option<(&Failure, Revision)>) -> Result<Outcome, Error> {
        if answer.succeeded {
            let revision = answer.header.map_or(0, |it| it.revision.unsigned_abs());
            return Ok(Outcome::Committed(revision));
        }
        // The entries of what is compared, in its order.
        let entry = |it: messages::ResponseOp| match it.response? {
            ResponseKind::Range(range) => range.kvs.into_iter().next().map(|it| self.keys.entry(it)),
            _ => None,
        };
        let entries: Vec<Option<Entry>> = answer.responses.into_iter().map(entry).collect();
        let revision = |it: &Option<Entry>| it.as_ref().map_or(0, |it| it.mod_revision);
        let pairs = || self.compares.iter().zip(&entries);
        if let Some((failure, known)) = before {
            let is_untouched = |(compare, entry): (&Compare, &Option<Entry>)| {
                self.operations.contains_key(&compare.key) && compare.mod_revision == revision(entry)
            };
            // It stood there before anything was sent, and a key comes to no revision twice.
            let was_refused = |(compare, entry): (&Compare, &Option<Entry>)| {
                compare.mod_revision != 0
                    && (1..=known).contains(&revision(entry))
                    && compare.mod_revision != revision(entry)
            };
            if !pairs().any(is_untouched) && !pairs().any(was_refused) {
                return self.done_before(&entries).map(Outcome::Committed).ok_or_else(|| unknown(failure));
            }
        }
        let stands = pairs().find(|(compare, entry)| compare.mod_revision != revision(entry));
        Ok(Outcome::Conflict(stands.and_then(|(_, entry)| entry.clone())))
    }

    /// The revision at which all that was put and compared came to stand there, if it does.
    fn done_before(&self, entries: &[Option<Entry>]) -> Option<u64> {
        let mut revisions = Vec::new();
        for (compare, entry) in self.compares.iter().zip(entries) {
            match (self.operations.get(&compare.key), entry) {
                (None, _) | (Some(None), None) => {}
                (Some(Some(value)), Some(entry)) if *value == entry.value => revisions.push(entry.mod_revision),
                _ => return None,
            }
        }
        let first = *revisions.first()?;
        revisions.iter().all(|it| *it == first).then_some(first)
    }

    /// What is told after the last attempt. One that was not answered may be done, this one or one before it.
    fn error(&self, last: Failure, unanswered: Option<Failure>) -> Error {
        match unanswered {
            _ if last.certainty == Certainty::Unknown => unknown(&last),
            Some(before) => unknown(&before),
            None if last.is_too_large() => Error::TooLarge { bytes: self.bytes, max: DEFAULT_BYTES_MAX },
            None => last.unavailable(),
        }
    }
}

fn unknown(failure: &Failure) -> Error {
    Error::Io(format!("{failure}; it is not known whether it was written"))
}

fn request(keys: &Keys, compares: &[Compare], operations: &BTreeMap<Bytes, Option<Bytes>>) -> TxnRequest {
    let compare = |it: &Compare| {
        let revision = CompareWith::ModRevision(it.mod_revision.cast_signed());
        messages::Compare::equal(keys.outside(&it.key), revision)
    };
    let operation = |(key, value): (&Bytes, &Option<Bytes>)| {
        let key = keys.outside(key);
        match value {
            Some(value) => RequestKind::Put(PutRequest { key, value: value.clone(), ..Default::default() }),
            None => RequestKind::DeleteRange(DeleteRangeRequest { key, ..Default::default() }),
        }
    };
    let read = |it: &Compare| RequestKind::Range(RangeRequest { key: keys.outside(&it.key), ..Default::default() });
    let op = |it: RequestKind| RequestOp { request: Some(it) };
    TxnRequest {
        compare: compares.iter().map(compare).collect(),
        success: operations.iter().map(operation).map(op).collect(),
        failure: compares.iter().map(read).map(op).collect(),
    }
}

#[cfg(test)]
mod tests {
    use corten_etcd_api::{KeyValue, RangeResponse, ResponseOp};

    use super::*;

    /// What a second attempt to put `a=x` finds, which compares the revision of `a`, and what is made of that.
    #[test]
    fn what_stands_there_tells_what_became_of_it() {
        let keys = Keys::new("/registry");
        let lost = Failure::late("m");
        for (compared, found, known, expected) in [
            (7, Some((8, "x")), 7, "done at 8"),
            (7, Some((8, "y")), 7, "not known"),
            (7, Some((8, "y")), 8, "refused"),
            (7, Some((8, "x")), 8, "refused"),
            (7, None, 8, "not known"),
            (0, Some((8, "x")), 7, "done at 8"),
            // It may go, and what was sent may come after all.
            (0, Some((8, "y")), 8, "not known"),
        ] {
            let compares = vec![Compare { key: "/registry/a".into(), mod_revision: compared }];
            let operations = vec![Operation::Put { key: "/registry/a".into(), value: "x".into() }];
            let commit = Commit::new(&keys, Txn { compares, operations }).expect("it is small");
            let stands = found.map(|(revision, value)| KeyValue {
                key: "/registry/a".into(),
                mod_revision: revision,
                value: value.into(),
                ..KeyValue::default()
            });
            let range = RangeResponse { kvs: stands.into_iter().collect(), ..RangeResponse::default() };
            let responses = vec![ResponseOp { response: Some(ResponseKind::Range(range)) }];
            let answer = TxnResponse { responses, ..TxnResponse::default() };
            let said = match commit.outcome(answer, Some((&lost, known))) {
                Ok(Outcome::Committed(revision)) => format!("done at {revision}"),
                Ok(Outcome::Conflict(_)) => "refused".to_owned(),
                Err(_) => "not known".to_owned(),
            };
            assert_eq!(said, expected, "{compared} {found:?} {known}");
        }
    }
}
