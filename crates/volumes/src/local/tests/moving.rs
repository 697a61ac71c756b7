//! Volumes that go from one node to another.

use super::*;
use crate::channel::{self, Answered, Asked, Moving, Piece, VolumeMove};

const RANGE: u64 = 1 << 20;

async fn ask(world: &World, asked: &Asked, data: &[u8]) -> Result<(Answered, Vec<u8>), Fault> {
    let message = channel::written(asked, data)?;
    let answer = world.driver.answer(message).await?;
    let (answered, data) = channel::read::<Result<Answered, Fault>>(&answer)?;
    Ok((answered?, data.to_vec()))
}

/// The move that most tests are about, and those before and after it.
const EARLIER: &str = "90-b";
const THIS: &str = "100-a";
const LATER: &str = "110-c";

fn by(id: &str, step: Moving) -> Asked {
    Asked::Move { of: VolumeMove { handle: "pvc-1".into(), id: id.into() }, step }
}

async fn step_of(world: &World, id: &str, step: Moving) -> Result<Answered, Fault> {
    ask(world, &by(id, step), &[]).await.map(|it| it.0)
}

async fn step(world: &World, step: Moving) -> Result<Answered, Fault> {
    step_of(world, THIS, step).await
}

fn piece(at: u64, end: u64) -> Piece {
    Piece { at, end }
}

/// Copies one range; `spoil` changes what is sent.
async fn copy_of(
    id: &str,
    (from, to): (&World, &World),
    (at, end): (u64, u64),
    spoil: impl Fn(&mut Vec<u8>),
) -> Result<(), Fault> {
    let mut next = at;
    loop {
        let (answered, mut data) = ask(from, &by(id, Moving::Read(piece(next, end))), &[]).await?;
        let Answered::Data { at } = answered else { panic!("{answered:?}") };
        if data.is_empty() {
            break;
        }
        next = at + data.len() as u64;
        spoil(&mut data);
        ask(to, &by(id, Moving::Write { at }), &data).await?;
    }
    let Answered::Hash(hash) = step_of(from, id, Moving::Hash(piece(at, end))).await? else { panic!("no hash") };
    step_of(to, id, Moving::Check { piece: piece(at, end), hash }).await.map(drop)
}

async fn copy(from: &World, to: &World, at: u64, end: u64, spoil: impl Fn(&mut Vec<u8>)) -> Result<(), Fault> {
    copy_of(THIS, (from, to), (at, end), spoil).await
}

async fn leave_by(from: &World, id: &str) -> Result<(u64, String), Fault> {
    match step_of(from, id, Moving::Leave { to: "n2".into() }).await? {
        Answered::Leaving { bytes, record } => Ok((bytes, record)),
        other => panic!("{other:?}"),
    }
}

async fn leave(from: &World) -> Result<(u64, String), Fault> {
    leave_by(from, THIS).await
}

async fn arrive_by(to: &World, id: &str, record: &str) -> Result<(u64, bool), Fault> {
    match step_of(to, id, Moving::Arrive { record: record.to_owned() }).await? {
        Answered::Arriving { here, is_settled } => Ok((here, is_settled)),
        other => panic!("{other:?}"),
    }
}

async fn arrive(to: &World, record: &str) -> Result<(u64, bool), Fault> {
    arrive_by(to, THIS, record).await
}

/// The whole of a move, until what `from` has of it is to be removed.
async fn carry(id: &str, from: &World, to: &World) {
    let (bytes, record) = leave_by(from, id).await.expect("nobody has it");
    assert_eq!(arrive_by(to, id, &record).await, Ok((0, false)), "nothing of another move is gone on with");
    copy_of(id, (from, to), (0, bytes), |_| ()).await.expect("copied");
    step_of(to, id, Moving::Settle).await.expect("all is there");
}

fn write(world: &World, at: u64, byte: u8, size: usize) {
    let disk = world.driver.store.disk("pvc-1").expect("a path");
    let file = fs::File::options().write(true).open(disk).expect("the volume's file");
    std::os::unix::fs::FileExt::write_all_at(&file, &vec![byte; size], at).expect("written");
}

fn content(world: &World) -> Vec<u8> {
    fs::read(world.driver.store.disk("pvc-1").expect("a path")).expect("the volume's file")
}

async fn block_volume(world: &World) {
    world.driver.create(CreateVolume { is_block: true, ..wanted("pvc-1", 8) }).await.expect("a volume");
}

#[tokio::test]
async fn what_a_volume_holds_is_on_the_other_node_and_a_copy_goes_on_where_it_ended() {
    let (Some(from), Some(to)) = (world(), world()) else { return };
    block_volume(&from).await;
    let disk = from.driver.store.disk("pvc-1").expect("a path");
    write(&from, 0, 1, 5000);
    write(&from, 3 << 20, 2, 3 << 20);
    write(&from, (8 << 20) - 1, 3, 1);
    let refused = step(&from, Moving::Read(piece(0, RANGE))).await;
    assert_eq!(refused.map_err(|it| it.message), Err("volume pvc-1 is not being moved by move 100-a".into()));
    let (bytes, record) = leave(&from).await.expect("nobody has it");
    assert_eq!(arrive(&to, &record).await, Ok((0, false)));
    for at in (0..4 * RANGE).step_by(1 << 20) {
        copy(&from, &to, at, at + RANGE, |_| ()).await.expect("copied");
    }
    // The node begins anew, and what is there stays.
    to.driver.recover().await.expect("nothing is in the way");
    assert_eq!(arrive(&to, &record).await, Ok((4 * RANGE, false)));
    let early = step(&to, Moving::Settle).await.expect_err("half of it is there");
    assert_eq!(early.message, "4194304 of 8388608 bytes of volume pvc-1 are here");
    // What is spoilt on its way is not taken, and nothing of it stays.
    let spoilt = copy(&from, &to, 4 * RANGE, 5 * RANGE, |it| it[17] ^= 1).await.expect_err("spoilt");
    assert_eq!(spoilt.code, Code::Aborted);
    assert_eq!(arrive(&to, &record).await, Ok((4 * RANGE, false)));
    for at in (4 * RANGE..bytes).step_by(1 << 20) {
        copy(&from, &to, at, at + RANGE, |_| ()).await.expect("copied");
    }
    step(&to, Moving::Settle).await.expect("all is there");
    assert_eq!(arrive(&to, &record).await, Ok((bytes, true)));
    let there = to.driver.store.disk("pvc-1").expect("a path");
    assert!(fs::read(&disk).expect("read") == fs::read(&there).expect("read"), "another content");
    let taken = |it: &Path| fs::metadata(it).expect("a file").blocks();
    assert!(taken(&there) <= taken(&disk), "holes are kept");
}

#[tokio::test]
async fn a_volume_that_leaves_is_not_mounted_and_one_that_is_mounted_does_not_leave() {
    let (Some(from), Some(to)) = (world(), world()) else { return };
    from.driver.create(wanted("pvc-1", 8)).await.expect("a volume");
    let staging = from.dir.path().join("staging");
    let stage = || from.driver.stage(staged("pvc-1", false), staging.clone());
    stage().await.expect("staged");
    let refused = leave(&from).await.expect_err("it is mounted");
    assert_eq!((refused.code, refused.message), (Code::FailedPrecondition, "volume pvc-1 is in use".into()));
    from.driver.unstage("pvc-1".into(), staging.clone()).await.expect("unstaged");
    from.is_detached("pvc-1");
    let (_, record) = leave(&from).await.expect("nobody has it");
    let refused = stage().await.expect_err("it leaves");
    assert_eq!(refused.message, "volume pvc-1 is being moved to node n2");
    let refused = from.driver.expand(StageVolume::of("pvc-1"), 16 << 20).await.expect_err("it leaves");
    assert_eq!(refused.message, "volume pvc-1 is being moved to node n2");
    let store = &from.driver.store;
    // Who was about to grow it when it left finds that it leaves once he has it in hand.
    let grown = store.expand("pvc-1", 16 << 20).expect_err("it leaves");
    assert_eq!(grown.message, "volume pvc-1 is being moved to node n2");
    let grow = NodeExpand { volume: StageVolume::of("pvc-1"), bytes: 16 << 20, ..NodeExpand::default() };
    assert_eq!(from.driver.node_expand(grow).await.expect_err("it leaves").code, Code::FailedPrecondition);
    let kept = CreateSnapshot { name: "s".into(), source: "pvc-1".into(), ..CreateSnapshot::default() };
    assert_eq!(from.driver.create_snapshot(kept).await.expect_err("it leaves").code, Code::FailedPrecondition);
    // What comes has its place promised, as any volume has.
    let room = || async { to.driver.capacity(BTreeMap::new()).await.expect("known").expect("told").available_bytes };
    assert_eq!(arrive(&to, &record).await, Ok((0, false)));
    let _ = room().await;
    assert_eq!(to.driver.store.promises.not_taken(|_| 0), 8 << 20);
    // Called off: one stays, the other never was.
    step(&to, Moving::GiveUp).await.expect("given up");
    let _ = room().await;
    assert_eq!(to.driver.store.promises.not_taken(|_| 0), 0);
    step(&from, Moving::Stay).await.expect("stays");
    stage().await.expect("staged again");
}

#[tokio::test]
async fn a_folder_is_not_moved() {
    let Some(from) = world() else { return };
    let parameters = BTreeMap::from([("limit".to_owned(), "none".to_owned())]);
    from.driver.create(CreateVolume { parameters, ..wanted("pvc-1", 8) }).await.expect("a folder");
    let refused = leave(&from).await.expect_err("it is a folder");
    assert!(refused.message.contains("only volumes that are files are moved"), "{refused}");
    assert_eq!(refused.code, Code::InvalidArgument);
}

#[tokio::test]
async fn what_a_node_kept_of_an_earlier_move_is_not_the_volume_when_that_comes_back() {
    let (Some(first), Some(second)) = (world(), world()) else { return };
    block_volume(&first).await;
    write(&first, 0, 1, 5000);
    carry(EARLIER, &first, &second).await;
    // The first node was away when it was to remove what it had. Meanwhile the volume is written to.
    write(&second, 0, 2, 5000);
    write(&second, 5 << 20, 3, 5000);
    carry(THIS, &second, &first).await;
    assert!(content(&first) == content(&second), "the earlier content");
    // What the second node removes late, of the earlier move, is not what it has now.
    step_of(&first, EARLIER, Moving::RemoveLeft).await.expect("nothing of that move is here");
    step_of(&first, EARLIER, Moving::GiveUp).await.expect("nothing of that move is here");
    assert!(content(&first) == content(&second), "removed by another move");
    step(&second, Moving::RemoveLeft).await.expect("it has left");
    assert!(!second.driver.store.disk("pvc-1").expect("a path").exists(), "it is still there");
    step(&second, Moving::RemoveLeft).await.expect("it was removed");
}

#[tokio::test]
async fn a_copy_that_was_called_off_is_not_gone_on_with() {
    let (Some(from), Some(to)) = (world(), world()) else { return };
    block_volume(&from).await;
    write(&from, 0, 1, 5000);
    let (bytes, record) = leave_by(&from, EARLIER).await.expect("nobody has it");
    assert_eq!(arrive_by(&to, EARLIER, &record).await, Ok((0, false)));
    copy_of(EARLIER, (&from, &to), (0, RANGE), |_| ()).await.expect("copied");
    // The other node is away when it is called off.
    step_of(&from, EARLIER, Moving::Stay).await.expect("it stays");
    write(&from, 0, 2, 5000);
    carry(THIS, &from, &to).await;
    assert!(content(&from) == content(&to), "bytes of the copy that was called off");
    // Late messages of the first move: nothing comes of them.
    let late = [
        Moving::Leave { to: "n2".into() },
        Moving::Stay,
        Moving::Arrive { record: record.clone() },
        Moving::Write { at: 0 },
        Moving::Check { piece: piece(0, bytes), hash: String::new() },
        Moving::Settle,
    ];
    for step in late {
        let (at_from, at_to) = (step_of(&from, EARLIER, step.clone()).await, step_of(&to, EARLIER, step.clone()).await);
        assert!(at_from.is_err() && at_to.is_err(), "{step:?}: {at_from:?}, {at_to:?}");
    }
    assert_eq!(arrive(&to, &record).await, Ok((bytes, true)));
    assert!(step(&from, Moving::Hash(piece(0, RANGE))).await.is_ok(), "it still leaves");
}

#[tokio::test]
async fn a_move_that_was_called_off_does_not_begin_again() {
    let (Some(from), Some(to)) = (world(), world()) else { return };
    block_volume(&from).await;
    carry(THIS, &from, &to).await;
    step(&from, Moving::Stay).await.expect("it stays");
    // Whole on the other node as it was: it is removed there.
    step(&to, Moving::GiveUp).await.expect("it does not come");
    assert!(!to.driver.store.disk("pvc-1").expect("a path").exists(), "it is still there");
    assert_eq!(leave(&from).await.expect_err("it was called off").message, "move 100-a was called off");
    step(&from, Moving::RemoveLeft).await.expect("it has not left");
    assert!(from.driver.store.get("pvc-1").is_ok(), "it was removed");
    leave_by(&from, LATER).await.expect("another move");
}

#[tokio::test]
async fn a_volume_that_never_left_is_neither_taken_nor_removed() {
    let (Some(from), Some(to)) = (world(), world()) else { return };
    block_volume(&from).await;
    block_volume(&to).await;
    write(&to, 0, 9, 5000);
    let (_, record) = leave(&from).await.expect("nobody has it");
    let refused = arrive(&to, &record).await.expect_err("there is one of this name");
    assert_eq!(refused.code, Code::AlreadyExists);
    step(&to, Moving::GiveUp).await.expect("nothing has come");
    assert_eq!(content(&to)[0], 9);
}
