//! Packet rules into the kernel: one transaction, done at once or not at all, over netlink and without a program between.
//!
//! `nft` reads all there is before each change; with ten thousand Services that alone takes longer than the change may.

mod expression;
mod flows;
mod message;
mod objects;
mod policy_rules;
mod socket;
mod source_guard;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use corten_machine::{Layout, MachineError};
use corten_proxy::{
    Existing, Frontend, Stale,
    rules::{Backend, Change},
};
use flows::BackendsByFrontend;
pub use message::table_of;
use message::{Batch, INET};
pub use policy_rules::PolicyRules;
use socket::{KeptSocket, Socket};
pub use source_guard::{Port, SourceGuard};

use crate::netlink::blocking;

/// The node's table for Services. Another's are never touched.
#[derive(Clone, Debug)]
pub struct ServiceRules {
    table: String,
    socket: KeptSocket,
}

impl ServiceRules {
    pub fn new(layout: &Layout) -> Self {
        Self { table: layout.service_table(), socket: KeptSocket::default() }
    }

    /// What the table holds; nothing where there is none.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub async fn existing(&self) -> Result<Existing, MachineError> {
        let table = self.table.clone();
        blocking("read the packet rules", move || {
            let mut socket = Socket::open()?;
            let chains = socket.names(objects::GET_CHAIN, &table)?;
            Ok(Existing { chains, sets: socket.names(objects::GET_SET, &table)? })
        })
        .await
    }

    /// Is the table there? Somebody may have emptied the whole ruleset.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub async fn is_there(&self) -> Result<bool, MachineError> {
        is_there(&self.table).await
    }

    /// Does all of it at once, or nothing.
    ///
    /// # Errors
    /// The kernel refuses; the error names the first change that it did not take.
    pub async fn apply(&self, changes: Vec<Change>) -> Result<(), MachineError> {
        if changes.is_empty() {
            return Ok(());
        }
        let Self { table, socket } = self.clone();
        blocking("change the packet rules", move || {
            let batch = Batch::of(&table, &changes);
            socket.commit(&batch).map_err(|refusal| {
                let what = refusal.at.and_then(|it| changes.get(it)).map(|it| format!(" at \"{it}\""));
                io::Error::new(refusal.error.kind(), format!("{}{}", refusal.error, what.unwrap_or_default()))
            })
        })
        .await
    }

    /// Takes the table away. Harmless where it is gone.
    ///
    /// # Errors
    /// The kernel refuses.
    pub async fn remove(&self) -> Result<(), MachineError> {
        self.apply(vec![Change::Table, Change::DropTable]).await
    }

    /// Makes the kernel forget flows; gives how many.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub async fn forget(&self, stale: BTreeSet<Stale>) -> Result<usize, MachineError> {
        if stale.is_empty() {
            return Ok(0);
        }
        blocking("forget flows", move || flows::forget(&flows::StaleFlows::new(stale))).await
    }

    /// As [`ServiceRules::forget`], of every flow that goes elsewhere than where `bound` leads.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub async fn forget_unbound(&self, bound: BTreeMap<Frontend, BTreeSet<Backend>>) -> Result<usize, MachineError> {
        if bound.is_empty() {
            return Ok(0);
        }
        blocking("forget flows", move || flows::forget(&BackendsByFrontend(bound))).await
    }
}

/// Is there a table of this name in the family `inet`?
pub async fn is_there(table: &str) -> Result<bool, MachineError> {
    let table = table.to_owned();
    blocking("look for the packet rules", move || Socket::open()?.has_table(INET, &table)).await
}

#[cfg(test)]
pub(crate) mod tests;
