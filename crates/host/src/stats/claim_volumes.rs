//! What drivers say of the volumes of claims: in the summary, and as the kubelet's metrics `kubelet_volume_stats_*`.

use corten_volumes::VolumeFigures;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    exposition::{Sample, Text, number},
    summary::time,
};

/// An entry of a Pod's `volume`.
pub(crate) fn summary(it: &VolumeFigures) -> Value {
    let stats = &it.stats;
    let mut volume = json!({
        "time": time(Timestamp::try_from(it.at).unwrap_or_default()),
        "name": it.volume,
        "availableBytes": stats.available_bytes,
        "capacityBytes": stats.capacity_bytes,
        "usedBytes": stats.used_bytes,
        "inodesFree": stats.inodes_free,
        "inodes": stats.inodes,
        "inodesUsed": stats.inodes_used,
    });
    if let Some(claim) = &it.claim {
        volume["pvcRef"] = json!({ "name": claim.name, "namespace": claim.namespace });
    }
    if it.tells_health {
        volume["volumeHealthStats"] = json!({ "abnormal": stats.abnormal.is_some() });
    }
    volume
}

/// The metrics of `/metrics`. Two Pods that share a claim are told of once.
pub(crate) fn write(text: &mut Text, all: &[VolumeFigures]) {
    let mut claims: Vec<&VolumeFigures> = all.iter().filter(|it| it.claim.is_some()).collect();
    claims.sort_by(|a, b| a.claim.cmp(&b.claim));
    claims.dedup_by(|a, b| a.claim == b.claim);
    let mut gauge = |name: &str, help: &str, value: fn(&VolumeFigures) -> Option<u64>| {
        let samples = claims.iter().filter_map(|it| {
            let claim = it.claim.as_ref()?;
            let labels = [("namespace", &*claim.namespace), ("persistentvolumeclaim", &*claim.name)];
            Some(Sample::new(&labels, number(value(it)?)))
        });
        text.metric(name, "gauge", help, samples.collect::<Vec<_>>());
    };
    let capacity = "[ALPHA] Capacity in bytes of the volume";
    gauge("kubelet_volume_stats_capacity_bytes", capacity, |it| Some(it.stats.capacity_bytes));
    let available = "[ALPHA] Number of available bytes in the volume";
    gauge("kubelet_volume_stats_available_bytes", available, |it| Some(it.stats.available_bytes));
    let used = "[ALPHA] Number of used bytes in the volume";
    gauge("kubelet_volume_stats_used_bytes", used, |it| Some(it.stats.used_bytes));
    let inodes = "[ALPHA] Maximum number of inodes in the volume";
    gauge("kubelet_volume_stats_inodes", inodes, |it| Some(it.stats.inodes));
    let free = "[ALPHA] Number of free inodes in the volume";
    gauge("kubelet_volume_stats_inodes_free", free, |it| Some(it.stats.inodes_free));
    let used = "[ALPHA] Number of used inodes in the volume";
    gauge("kubelet_volume_stats_inodes_used", used, |it| Some(it.stats.inodes_used));
    let health = "[ALPHA] Abnormal volume health status. The count is either 1 or 0. 1 indicates the volume is unhealthy, 0 \
                  indicates volume is healthy";
    gauge("kubelet_volume_stats_health_status_abnormal", health, |it| {
        it.tells_health.then(|| u64::from(it.stats.abnormal.is_some()))
    });
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use corten_meta::Key;
    use corten_volumes::VolumeStats;

    use super::*;

    fn figures(pod: &str, abnormal: Option<&str>) -> VolumeFigures {
        let stats = VolumeStats { used_bytes: 7, abnormal: abnormal.map(str::to_owned), ..VolumeStats::default() };
        let (uid, pod, claim) = (pod.to_owned(), Key::new("ns", pod), Some(Key::new("ns", "data")));
        VolumeFigures { uid, pod, volume: "v".into(), claim, at: SystemTime::UNIX_EPOCH, stats, tells_health: true }
    }

    #[test]
    fn a_claim_is_told_of_once() {
        let mut text = Text::default();
        write(&mut text, &[figures("a", Some("bad blocks")), figures("b", Some("bad blocks"))]);
        let text = text.into_string();
        let labels = r#"{namespace="ns",persistentvolumeclaim="data"}"#;
        assert_eq!(text.matches(&format!("kubelet_volume_stats_used_bytes{labels} 7")).count(), 1, "{text}");
        assert!(text.contains(&format!("kubelet_volume_stats_health_status_abnormal{labels} 1")), "{text}");
    }

    #[test]
    fn a_volume_of_a_pod_names_its_claim() {
        let told = summary(&figures("a", None));
        assert_eq!(told["pvcRef"], json!({ "name": "data", "namespace": "ns" }));
        assert_eq!((&told["name"], &told["usedBytes"]), (&json!("v"), &json!(7)));
        assert_eq!(told["volumeHealthStats"]["abnormal"], false);
    }
}
