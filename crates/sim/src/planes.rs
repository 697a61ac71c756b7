//! What befalls several control planes: links that are cut, clients that do not reach a server, processes that stand still or end.

use std::time::Duration;

use crate::{
    link::Trouble,
    terms::{CONTROLLERS, SCHEDULER},
    world::{NODES, World},
};

/// Does one thing of it. Others begin while it lasts.
pub(crate) async fn act(world: &mut World) -> String {
    let at = whom(world);
    let dice = world.dice.clone();
    match dice.below(100) {
        0..35 => trouble_link(world, at),
        35..42 => {
            world.interruptions.links += 1;
            world.planes[at].levers.break_streams();
            format!("break the streams from the store to {}", world.planes[at].name())
        }
        42..60 => part(world, at),
        60..78 => pause(world, at),
        78..90 => {
            world.interruptions.ends += 1;
            world.planes[at].kill().await;
            begin_later(world, at, "kill", dice.millis(0, 30_000)).await
        }
        _ => {
            world.interruptions.ends += 1;
            world.planes[at].leave().await;
            begin_later(world, at, "end", dice.millis(0, 10_000)).await
        }
    }
}

/// Most often one that leads.
fn whom(world: &World) -> usize {
    let lease = if world.dice.percent(50) { CONTROLLERS } else { SCHEDULER };
    let leader = world.truth.lock().terms.holder(lease).and_then(|it| {
        let at = it.strip_prefix("control-plane-")?.split('_').next()?;
        at.parse::<usize>().ok()
    });
    let any = usize::try_from(world.dice.below(world.planes.len() as u64)).expect("less than the number of them");
    leader.filter(|_| world.dice.percent(60)).unwrap_or(any)
}

fn trouble_link(world: &mut World, at: usize) -> String {
    let trouble = *world.dice.pick(&Trouble::ALL).expect("not empty");
    let (lasts, levers) = (a_while(world), world.planes[at].levers.clone());
    // Connections may outlive it, or not.
    let breaks = world.dice.percent(50);
    world.interruptions.links += 1;
    levers.set(trouble);
    world.healing.spawn(async move {
        tokio::time::sleep(lasts).await;
        if breaks {
            levers.break_streams();
        }
        levers.set(Trouble::None);
    });
    format!("the link from {} to the store is {trouble:?} for {lasts:?}", world.planes[at].name())
}

/// A node or the administrator does not reach a server.
fn part(world: &mut World, at: usize) -> String {
    let names = [NODES[0], NODES[1], NODES[2], NODES[3], "admin"];
    let name = *world.dice.pick(&names).expect("not empty");
    let lasts = a_while(world);
    let Some(partition) = world.partitions_of(name).get(at).cloned() else { return format!("{name} asks nobody") };
    world.interruptions.partitions += 1;
    partition.set(true);
    world.healing.spawn(async move {
        tokio::time::sleep(lasts).await;
        partition.set(false);
    });
    format!("{name} does not reach {} for {lasts:?}", world.planes[at].name())
}

fn pause(world: &mut World, at: usize) -> String {
    let (lasts, freezer) = (a_while(world), world.planes[at].levers.freezer.clone());
    world.interruptions.pauses += 1;
    freezer.freeze();
    world.healing.spawn(async move {
        tokio::time::sleep(lasts).await;
        freezer.thaw();
    });
    format!("{} stands still for {lasts:?}", world.planes[at].name())
}

async fn begin_later(world: &mut World, at: usize, what: &str, down: Duration) -> String {
    tokio::time::sleep(down).await;
    world.begin_plane(at);
    format!("{what} {}, down for {down:?}", world.planes[at].name())
}

/// Now and then longer than a lease lasts.
fn a_while(world: &World) -> Duration {
    if world.dice.percent(50) { world.dice.millis(15_000, 45_000) } else { world.dice.millis(200, 15_000) }
}
