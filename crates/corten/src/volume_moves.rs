//! Volumes that go from one node to another: what each node's driver is asked, over its kubelet's API.

use corten_client::{BoxFuture, Client};
use corten_provisioner::{FailureKind, moves::VolumeTransfer};
use corten_runner::{Leaving, MoveHands, Refusal};
use corten_volumes::{
    Code, Fault,
    channel::{Answered, Asked, Moving, Piece, VolumeMove},
};

use crate::{
    remote_volumes::RemoteVolumes,
    volume_hands::{refusal, unexpected},
};

/// Asks the drivers of all nodes.
pub(crate) struct NodeMoves(pub(crate) Client);

impl NodeMoves {
    async fn ask(
        &self,
        node: &str,
        transfer: &VolumeTransfer,
        step: Moving,
        data: &[u8],
    ) -> Result<(Answered, bytes::Bytes), Fault> {
        let of = VolumeMove { handle: transfer.handle.clone(), id: transfer.id.clone() };
        RemoteVolumes::new(self.0.clone(), node).ask(&Asked::Move { of, step }, data).await
    }

    async fn done(&self, node: &str, transfer: &VolumeTransfer, step: Moving, data: &[u8]) -> Result<(), Fault> {
        match self.ask(node, transfer, step, data).await?.0 {
            Answered::Done => Ok(()),
            _ => Err(unexpected()),
        }
    }

    async fn copy_range(&self, transfer: &VolumeTransfer, range: Piece) -> Result<(), Fault> {
        let mut next = range.at;
        while next < range.end {
            let piece = Piece { at: next, ..range };
            let (answered, data) = self.ask(&transfer.from, transfer, Moving::Read(piece), &[]).await?;
            let Answered::Data { at } = answered else { return Err(unexpected()) };
            if data.is_empty() {
                break;
            }
            let end = at.checked_add(data.len() as u64).filter(|it| at >= next && *it <= range.end);
            next = end.ok_or_else(unexpected)?;
            self.done(&transfer.to, transfer, Moving::Write { at }, &data).await?;
        }
        let Answered::Hash(hash) = self.ask(&transfer.from, transfer, Moving::Hash(range), &[]).await?.0 else {
            return Err(unexpected());
        };
        self.done(&transfer.to, transfer, Moving::Check { piece: range, hash }, &[]).await
    }
}

/// What is wrong with a move for ever is what the node says of the volume itself.
fn refused(fault: Fault) -> Refusal {
    let kind = if fault.code == Code::InvalidArgument { FailureKind::Infeasible } else { FailureKind::Open };
    let is_exhausted = fault.code == Code::ResourceExhausted;
    Refusal { message: fault.message, is_exhausted, kind }
}

impl MoveHands for NodeMoves {
    fn leave(&self, transfer: VolumeTransfer) -> BoxFuture<'_, Result<Leaving, Refusal>> {
        Box::pin(async move {
            let step = Moving::Leave { to: transfer.to.clone() };
            match self.ask(&transfer.from, &transfer, step, &[]).await.map_err(refused)?.0 {
                Answered::Leaving { bytes, record } => Ok(Leaving { bytes, record }),
                _ => Err(refusal(unexpected())),
            }
        })
    }

    fn stay(&self, transfer: VolumeTransfer) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move { self.done(&transfer.from, &transfer, Moving::Stay, &[]).await.map_err(refusal) })
    }

    fn arrive(&self, transfer: VolumeTransfer, record: String) -> BoxFuture<'_, Result<(u64, bool), Refusal>> {
        Box::pin(async move {
            match self.ask(&transfer.to, &transfer, Moving::Arrive { record }, &[]).await.map_err(refused)?.0 {
                Answered::Arriving { here, is_settled } => Ok((here, is_settled)),
                _ => Err(refusal(unexpected())),
            }
        })
    }

    fn copy(&self, transfer: VolumeTransfer, (at, end): (u64, u64)) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move {
            self.copy_range(&transfer, Piece { at, end }).await.map_err(|it| Refusal {
                message: it.message,
                is_exhausted: it.code == Code::ResourceExhausted,
                kind: FailureKind::Open,
            })
        })
    }

    fn settle(&self, transfer: VolumeTransfer) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move { self.done(&transfer.to, &transfer, Moving::Settle, &[]).await.map_err(refusal) })
    }

    fn give_up(&self, transfer: VolumeTransfer) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move { self.done(&transfer.to, &transfer, Moving::GiveUp, &[]).await.map_err(refusal) })
    }

    fn remove_left(&self, transfer: VolumeTransfer) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move { self.done(&transfer.from, &transfer, Moving::RemoveLeft, &[]).await.map_err(refusal) })
    }
}
