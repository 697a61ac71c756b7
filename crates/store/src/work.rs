//! What is done in a writer's turn.

use crate::{Change, Error, Outcome, Transaction, Txn, snapshot::Snapshot};

#[derive(Clone)]
pub(crate) enum Work {
    Txn(Txn),
    Transaction(Transaction),
}

impl Work {
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Txn(txn) => txn.size(),
            Self::Transaction(transaction) => transaction.bytes,
        }
    }

    pub(crate) fn apply(self, snapshot: &mut Snapshot, changes: &mut Vec<Change>) -> Result<Outcome, Error> {
        match self {
            Self::Txn(txn) => snapshot.apply(txn, changes),
            Self::Transaction(transaction) => Ok(transaction.apply(snapshot, changes)),
        }
    }
}
