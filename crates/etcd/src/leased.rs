//! Keys that go by themselves when whoever wrote them is no longer there: etcd's own leases.

use bytes::Bytes;
use corten_etcd_api::{
    LeaseGrantRequest, LeaseGrantResponse, PutRequest, RequestKind, RequestOp, TxnRequest, TxnResponse,
    method::{LEASE_GRANT, TXN},
};
use corten_store::{Error, Operation, Outcome, Store, Txn};

use crate::store::EtcdStore;

impl EtcdStore {
    /// Writes a key that expires after so many seconds unless it is written again. Each write has a lease of its own, as in upstream's
    /// `storageLeases.UpdateLease`.
    ///
    /// # Errors
    /// etcd does not answer, or refuses. The key may have been written.
    pub async fn put_for(&self, seconds: u32, key: Bytes, value: Bytes) -> Result<(), Error> {
        let grant = LeaseGrantRequest { ttl: i64::from(seconds), id: 0 };
        let granted: LeaseGrantResponse =
            self.client().ask(LEASE_GRANT, &grant).await.map_err(|it| it.unavailable())?;
        let put = PutRequest { key: self.outside(&key), value, lease: granted.id, ..PutRequest::default() };
        let request = TxnRequest {
            compare: Vec::new(),
            success: vec![RequestOp { request: Some(RequestKind::Put(put)) }],
            failure: Vec::new(),
        };
        let answer: Result<TxnResponse, _> = self.client().ask(TXN, &request).await;
        answer.map(drop).map_err(|it| it.unavailable())
    }

    /// Takes a key away before its time.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub async fn take_back(&self, key: Bytes) -> Result<Outcome, Error> {
        self.commit(Txn { compares: Vec::new(), operations: vec![Operation::Delete { key }] }).await
    }
}
