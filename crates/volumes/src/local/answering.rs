//! What the control plane asks of this driver over the node's API.

use std::collections::BTreeMap;

use super::{LocalDriver, beside, store::Store, volume::Volume};
use crate::{
    Code, Driver, Fault, NodeExpand, StageVolume,
    channel::{self, Answered, Asked, Moving, VolumeMove},
};

/// Answers one message; what is refused is an answer, too.
pub(super) async fn answer(driver: &LocalDriver, message: &[u8]) -> Result<Vec<u8>, Fault> {
    let (asked, data) = channel::read::<Asked>(message)?;
    let (answered, data) = match asked {
        Asked::Move { of, step: Moving::Read(piece) } => {
            let read = with_store(driver, move |store| store.piece(&of, piece)).await;
            read.map_or_else(|it| (Err(it), Vec::new()), |(at, data)| (Ok(Answered::Data { at }), data))
        }
        Asked::Move { of, step } => (moved(driver, of, step, data).await, Vec::new()),
        other => (carried_out(driver, other).await, Vec::new()),
    };
    channel::written(&answered, &data)
}

async fn with_store<T: Send + 'static>(
    driver: &LocalDriver,
    work: impl FnOnce(&Store) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let store = driver.store.clone();
    beside(move || work(&store)).await
}

async fn moved(driver: &LocalDriver, of: VolumeMove, step: Moving, data: &[u8]) -> Result<Answered, Fault> {
    let done = |(): ()| Answered::Done;
    match step {
        // What is mounted is seen where mounts are.
        Moving::Leave { to } => driver.there(move |store| leaving(&store.leave(&of, &to)?)).await,
        Moving::RemoveLeft => driver.there(move |store| store.remove_left(&of)).await.map(done),
        Moving::GiveUp => driver.there(move |store| store.give_up(&of)).await.map(done),
        Moving::Arrive { record } => {
            let arriving = driver.there(move |store| {
                let invalid = |it| Fault::new(Code::InvalidArgument, format!("read the volume's record: {it}"));
                let record = serde_json::from_str(&record).map_err(invalid)?;
                store.arrive(&of, &record)
            });
            arriving.await.map(|(here, is_settled)| Answered::Arriving { here, is_settled })
        }
        Moving::Settle => driver.there(move |store| store.settle(&of)).await.map(done),
        Moving::Stay => with_store(driver, move |store| store.stay(&of)).await.map(done),
        Moving::Read(_) => Err(Fault::internal("it is answered with bytes")),
        Moving::Hash(piece) => {
            with_store(driver, move |store| store.hash_leaving(&of, piece)).await.map(Answered::Hash)
        }
        Moving::Write { at } => {
            let data = data.to_vec();
            with_store(driver, move |store| store.take_piece(&of, at, &data)).await.map(done)
        }
        Moving::Check { piece, hash } => {
            with_store(driver, move |store| store.check_range(&of, piece, &hash)).await.map(done)
        }
    }
}

fn leaving(volume: &Volume) -> Result<Answered, Fault> {
    let record = serde_json::to_string(&volume.written()).map_err(Fault::internal)?;
    Ok(Answered::Leaving { bytes: volume.bytes, record })
}

async fn carried_out(driver: &LocalDriver, asked: Asked) -> Result<Answered, Fault> {
    let done = |(): ()| Answered::Done;
    match asked {
        Asked::Create(volume) => driver.create(volume).await.map(Answered::Created),
        Asked::Delete { handle } => driver.delete(handle, BTreeMap::new()).await.map(done),
        Asked::Expand { handle, bytes } => driver.expand(StageVolume::of(handle), bytes).await.map(Answered::Expanded),
        Asked::ExpandOnNode { handle, bytes } => {
            let grown =
                driver.node_expand(NodeExpand { volume: StageVolume::of(handle), bytes, ..NodeExpand::default() });
            grown.await.map(|_| Answered::Done)
        }
        Asked::CreateSnapshot(snapshot) => {
            driver.create_snapshot(snapshot).await.map(|it| Answered::Snapshot(Some(it)))
        }
        Asked::DeleteSnapshot { handle } => driver.delete_snapshot(handle, BTreeMap::new()).await.map(done),
        Asked::FindSnapshot { handle } => driver.find_snapshot(handle, BTreeMap::new()).await.map(Answered::Snapshot),
        Asked::Capacity => driver.capacity(BTreeMap::new()).await.map(Answered::Capacity),
        Asked::Move { .. } => Err(Fault::internal("it is a step of a move")),
    }
}
