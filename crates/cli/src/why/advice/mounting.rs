//! Pods whose persistent volume is not mounted: what the driver or the kernel said, and whose it is.

use corten_api::resources::{CSI_NODES, PERSISTENT_VOLUME_CLAIMS};
use corten_meta::Key;
use serde_json::Value;

use super::case::{Advice, Case};
use crate::why::{
    command::kubectl,
    fields::{items, one_line, text},
};

const SET_UP: &str = "MountVolume.SetUp failed for volume ";
const TYPE_CHECK: &str = "hostPath type check failed: ";
const NO_DRIVER: &str = "not found in the list of registered CSI drivers";

/// The volume of the Pod that the wait is about, where that outlives Pods.
fn volume<'c>(case: &'c Case<'_>) -> Option<&'c Value> {
    let name = case.wait.message.split_once(SET_UP)?.1.split('"').nth(1)?;
    let volume = items(case.object, "/spec/volumes").iter().find(|it| it["name"] == name)?;
    let is_path = volume["hostPath"].is_object() && case.wait.message.contains(TYPE_CHECK);
    let outlives = ["persistentVolumeClaim", "ephemeral", "csi", "nfs"].iter().any(|it| volume[it].is_object());
    (outlives || is_path).then_some(volume)
}

pub(super) fn is_about(case: &Case<'_>) -> bool {
    volume(case).is_some()
}

pub(super) async fn of(case: &Case<'_>) -> Advice {
    let (subject, node) = (&case.at.subject, text(case.object, "/spec/nodeName"));
    let volume = volume(case).unwrap_or(&Value::Null);
    let own = format!("{}-{}", text(case.object, "/metadata/name"), text(volume, "/name"));
    let claim = match text(volume, "/persistentVolumeClaim/claimName") {
        "" if volume["ephemeral"].is_object() => &*own,
        it => it,
    };
    let what = if claim.is_empty() {
        format!("volume {}", text(volume, "/name"))
    } else {
        format!("the volume of persistentvolumeclaim/{claim}")
    };
    let message = one_line(case.wait.message.split_once("\" : ").map_or("", |it| it.1));
    let said = message.split_once(" desc = ").map_or(&*message, |it| it.1);
    let headline = |why: String| format!("{subject} waits for {what}: {why}");
    let advice = Advice::run(match claim {
        "" => case.describe(),
        _ => kubectl(case.namespace, &["describe", &format!("persistentvolumeclaim/{claim}")]),
    });
    if let Some((rest, _)) = message.split_once(NO_DRIVER) {
        let driver = rest.trim_end().rsplit(' ').next().unwrap_or_default();
        return no_driver(case, advice, driver, node, headline).await;
    }
    if volume["csi"].is_object()
        && let Some(why) = not_inline(text(volume, "/csi/driver"), said)
    {
        return Advice { next: kubectl("", &["get", "csidrivers"]), ..advice }.headline(headline(why)).who(format!(
            "whoever wrote {}: name another driver, or use a claim; or whoever installs the driver",
            case.author
        ));
    }
    if let Some((_, path)) = said.split_once(TYPE_CHECK) {
        let (path, kind) = path.split_once(" is not a ").unwrap_or((path, "directory"));
        let writer = if claim.is_empty() { case.author.clone() } else { "its persistentvolume".to_owned() };
        return advice
            .headline(headline(format!("there is no {kind} {path} on node {node}")))
            .who(format!("whoever wrote {writer}, or whoever runs {node}: make the {kind}"));
    }
    if said.contains("is gone from this node's disk")
        || (said.contains("the file of volume ") && said.contains(" of its "))
    {
        let claims = case.reader.get(&PERSISTENT_VOLUME_CLAIMS, &Key::new(case.namespace, claim)).await;
        let volume = claims.map(|it| text(&it, "/spec/volumeName").to_owned()).unwrap_or_default();
        return advice
            .headline(headline(format!("what it held is gone from the disk of node {node}")))
            .who(format!("whoever runs {node}: put the files of {volume} back from a copy"))
            .hint("else make a claim anew, of a snapshot where there is one: this one cannot be mended from here");
    }
    not_mounted(said, node, &headline, advice)
}

/// What the driver, or the kernel, said of the volume itself.
fn not_mounted(said: &str, node: &str, headline: &dyn Fn(String) -> String, advice: Advice) -> Advice {
    if said.contains("'fsck' found errors") {
        return advice
            .headline(headline("its file system is damaged".into()))
            .who(format!("whoever runs {node}: mend it by hand with nothing mounted, or go back to a snapshot"))
            .hint(said);
    }
    if let Some((_, kernel)) = said.split_once("mount failed: ") {
        let advice = advice.headline(headline(format!("the kernel does not mount it: {kernel}")));
        if kernel.contains("bad option") {
            return advice
                .who("whoever wrote the class or the volume: its mountOptions; else whoever runs the node")
                .hint("mountOptions of a class are taken over into each volume when it is made");
        }
        return advice.who(format!("whoever runs {node}"));
    }
    if let Some((rest, _)) = said.split_once("\" does not exist") {
        let path = rest.rsplit('"').next().unwrap_or_default();
        return advice
            .headline(headline(format!("there is no {path} on node {node}")))
            .who(format!("whoever wrote the volume, or whoever runs {node}: make the folder"));
    }
    if said.contains("is under way") {
        return advice
            .headline(headline("something else is done with it now".into()))
            .who("nobody: a copy or a snapshot of it ends by itself")
            .hint(said);
    }
    advice
        .headline(headline(said.to_owned()))
        .who(format!("whoever runs the driver on {node}: it is asked again, after pauses"))
}

/// Why a driver makes no volume for one Pod alone, in plain words.
fn not_inline(driver: &str, said: &str) -> Option<String> {
    if said.contains("volume mode \"Ephemeral\" not supported") {
        return Some(format!("its driver {driver} makes volumes of claims alone, and none in a pod's spec"));
    }
    let is_missing = said.starts_with("CSIDriver ") && said.ends_with(" not found");
    is_missing
        .then(|| format!("there is no csidriver {driver:?}, which would say that it makes volumes in a pod's spec"))
}

/// The Pod has ended, and its node cannot give back what it had.
pub(super) async fn cleanup(case: &Case<'_>) -> Advice {
    let (subject, node) = (&case.at.subject, text(case.object, "/spec/nodeName"));
    let message = one_line(&case.wait.message);
    let said = message.split_once(" is tried again: ").map_or(&*message, |it| it.1);
    let headline = |why: String| format!("{subject} has ended, and its volume cannot be unpublished: {why}");
    if let Some((rest, _)) = said.split_once(NO_DRIVER) {
        let driver = rest.trim_end().rsplit(' ').next().unwrap_or_default();
        return no_driver(case, Advice::default(), driver, node, headline).await;
    }
    let said = said.split_once(" desc = ").map_or(said, |it| it.1);
    Advice::run(case.describe())
        .headline(headline(said.to_owned()))
        .who(format!("whoever runs the driver on {node}: it is asked again, after pauses"))
}

async fn no_driver(
    case: &Case<'_>,
    advice: Advice,
    driver: &str,
    node: &str,
    headline: impl Fn(String) -> String,
) -> Advice {
    let nodes = case.reader.list(&CSI_NODES, "").await;
    let has = |it: &&Value| items(it, "/spec/drivers").iter().any(|it| it["name"] == driver);
    let with: Vec<&str> = nodes.iter().filter(has).map(|it| text(it, "/metadata/name")).take(5).collect();
    let elsewhere =
        if with.is_empty() { "it is on no node".to_owned() } else { format!("it is on {}", with.join(", ")) };
    Advice { next: kubectl("", &["get", "csinodes"]), ..advice }
        .headline(headline(format!("its driver {driver} is not registered on node {node}")))
        .who(format!("whoever runs {driver}: its pod on {node} does not run, or does not register"))
        .hint(elsewhere)
}
