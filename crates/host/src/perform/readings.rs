//! Reads what Pods' processes do, for `corten why`: counters of CPU limits, sockets that listen, name servers that answer.

use std::{collections::BTreeSet, net::IpAddr};

use corten_kubelet::PodReading;
use corten_meta::address::is_reachable;

use crate::{dns, perform::NodeHands, stats::RuntimeList};

/// How many different name servers are asked at each reading.
const NAME_SERVERS_MAX: usize = 16;

impl NodeHands {
    /// All Pods that run. Name servers of `own` are the cluster's: they are not asked. `None` where the runtime does not say
    /// what runs.
    pub async fn pod_readings(&self, own: &[IpAddr]) -> Option<Vec<PodReading>> {
        let listed = RuntimeList::read(self.cri()).await.ok()?;
        let (cgroups, layout) = (self.cgroups().clone(), self.layout().clone());
        let read = tokio::task::spawn_blocking(move || listed.readings(&cgroups, &layout)).await.ok()?;
        let servers: BTreeSet<IpAddr> = read.iter().flat_map(|it| it.name_servers.iter().copied()).collect();
        let may_be_asked = |it: &IpAddr| is_reachable(*it) && !own.contains(it);
        let silent = silent(servers.into_iter().filter(may_be_asked).take(NAME_SERVERS_MAX)).await;
        let told = read.into_iter().map(|it| {
            let of_pod = it.name_servers.iter().filter(|it| silent.contains(it));
            PodReading { silent_name_servers: of_pod.map(ToString::to_string).collect(), ..it.reading }
        });
        Some(told.collect())
    }
}

async fn silent(servers: impl Iterator<Item = IpAddr>) -> BTreeSet<IpAddr> {
    let mut asked = tokio::task::JoinSet::new();
    for server in servers {
        asked.spawn(async move { (!dns::answers(server).await).then_some(server) });
    }
    asked.join_all().await.into_iter().flatten().collect()
}
