//! Volumes that go from one node to another: what each node's driver is asked, over its kubelet's API.

use corten_client::{BoxFuture, Client};
use corten_provisioner::{Finality, moves::Way};
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
    async fn ask(&self, node: &str, way: &Way, step: Moving, data: &[u8]) -> Result<(Answered, bytes::Bytes), Fault> {
        let of = VolumeMove { handle: way.handle.clone(), id: way.id.clone() };
        RemoteVolumes::new(self.0.clone(), node).ask(&Asked::Move { of, step }, data).await
    }

    async fn done(&self, node: &str, way: &Way, step: Moving, data: &[u8]) -> Result<(), Fault> {
        match self.ask(node, way, step, data).await?.0 {
            Answered::Done => Ok(()),
            _ => Err(unexpected()),
        }
    }

    async fn copy_range(&self, way: &Way, range: Piece) -> Result<(), Fault> {
        let mut next = range.at;
        while next < range.end {
            let piece = Piece { at: next, ..range };
            let (answered, data) = self.ask(&way.from, way, Moving::Read(piece), &[]).await?;
            let Answered::Data { at } = answered else { return Err(unexpected()) };
            if data.is_empty() {
                break;
            }
            let end = at.checked_add(data.len() as u64).filter(|it| at >= next && *it <= range.end);
            next = end.ok_or_else(unexpected)?;
            self.done(&way.to, way, Moving::Write { at }, &data).await?;
        }
        let Answered::Hash(hash) = self.ask(&way.from, way, Moving::Hash(range), &[]).await?.0 else {
            return Err(unexpected());
        };
        self.done(&way.to, way, Moving::Check { piece: range, hash }, &[]).await
    }
}

/// What is wrong with a move for ever is what the node says of the volume itself.
fn refused(fault: Fault) -> Refusal {
    let finality = if fault.code == Code::InvalidArgument { Finality::Infeasible } else { Finality::Open };
    let is_exhausted = fault.code == Code::ResourceExhausted;
    Refusal { message: fault.message, is_exhausted, finality }
}

impl MoveHands for NodeMoves {
    fn leave(&self, way: Way) -> BoxFuture<'_, Result<Leaving, Refusal>> {
        Box::pin(async move {
            let step = Moving::Leave { to: way.to.clone() };
            match self.ask(&way.from, &way, step, &[]).await.map_err(refused)?.0 {
                Answered::Leaving { bytes, record } => Ok(Leaving { bytes, record }),
                _ => Err(refusal(unexpected())),
            }
        })
    }

    fn stay(&self, way: Way) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move { self.done(&way.from, &way, Moving::Stay, &[]).await.map_err(refusal) })
    }

    fn arrive(&self, way: Way, record: String) -> BoxFuture<'_, Result<(u64, bool), Refusal>> {
        Box::pin(async move {
            match self.ask(&way.to, &way, Moving::Arrive { record }, &[]).await.map_err(refused)?.0 {
                Answered::Arriving { here, is_settled } => Ok((here, is_settled)),
                _ => Err(refusal(unexpected())),
            }
        })
    }

    fn copy(&self, way: Way, (at, end): (u64, u64)) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move {
            self.copy_range(&way, Piece { at, end }).await.map_err(|it| Refusal {
                message: it.message,
                is_exhausted: it.code == Code::ResourceExhausted,
                finality: Finality::Open,
            })
        })
    }

    fn settle(&self, way: Way) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move { self.done(&way.to, &way, Moving::Settle, &[]).await.map_err(refusal) })
    }

    fn give_up(&self, way: Way) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move { self.done(&way.to, &way, Moving::GiveUp, &[]).await.map_err(refusal) })
    }

    fn remove_left(&self, way: Way) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move { self.done(&way.from, &way, Moving::RemoveLeft, &[]).await.map_err(refusal) })
    }
}
