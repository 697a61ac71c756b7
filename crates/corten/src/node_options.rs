//! Reads what the kubelet is told: `corten_options::node_options` has the names.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::ArgMatches;
use corten_cli::Failure;
use corten_kubelet::{
    Config, EvictionConfig, ImageGcConfig, ManagersConfig, ShutdownConfig, SwapBehavior, hard_thresholds,
    set_min_reclaims, soft_thresholds,
};
use corten_meta::{Quantity, duration::duration};
use corten_network::{
    cni::{CniFolders, PodLink},
    peers::wireguard_lack,
};
use corten_proxy::PodNetworkMode;

use crate::manager_options::managers;

/// What was told, checked.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeOptions {
    pub(crate) eviction: EvictionConfig,
    image_gc: ImageGcConfig,
    shutdown: ShutdownConfig,
    reserved: Reserved,
    allowed_unsafe_sysctls: Vec<String>,
    pub(crate) single_process_oom_kill: bool,
    swap_behavior: SwapBehavior,
    pub(crate) managers: ManagersConfig,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reserved {
    cpu_millis: i64,
    memory_bytes: i64,
    storage_bytes: i64,
}

impl NodeOptions {
    pub(super) fn of(matches: &ArgMatches) -> Result<Self> {
        let text = |name: &str| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
        let time = |name: &str| duration(text(name)).map_err(anyhow::Error::msg).with_context(|| wrong(name));
        let percent = |name: &str| -> Result<i64> {
            let number = text(name).parse().with_context(|| wrong(name))?;
            anyhow::ensure!((0..=100).contains(&number), "{}: must be between 0 and 100", wrong(name));
            Ok(number)
        };
        let image_gc = ImageGcConfig {
            high_threshold_percent: percent("image-gc-high-threshold")?,
            low_threshold_percent: percent("image-gc-low-threshold")?,
            minimum_age: time("minimum-image-ttl-duration")?,
            maximum_age: time("maximum-image-gc-age")?,
        };
        anyhow::ensure!(
            image_gc.low_threshold_percent <= image_gc.high_threshold_percent,
            "--image-gc-low-threshold must not be above --image-gc-high-threshold"
        );
        let shutdown = ShutdownConfig {
            grace: time("shutdown-grace-period")?,
            grace_critical: time("shutdown-grace-period-critical-pods")?,
            fails_pods: match text("pods-on-shutdown") {
                "keep" => false,
                "fail" => true,
                _ => anyhow::bail!("{}: must be keep or fail", wrong("pods-on-shutdown")),
            },
        };
        anyhow::ensure!(
            shutdown.grace_critical <= shutdown.grace,
            "--shutdown-grace-period-critical-pods must not be longer than --shutdown-grace-period"
        );
        let reserved = ["kube-reserved", "system-reserved"]
            .iter()
            .try_fold(Reserved::default(), |sum, name| sum.plus(text(name)).with_context(|| wrong(name)))?;
        let names = text("allowed-unsafe-sysctls").split(',').map(str::trim).filter(|it| !it.is_empty());
        let allowed_unsafe_sysctls = names.map(str::to_owned).collect();
        let single_process_oom_kill =
            text("single-process-oom-kill").parse().with_context(|| wrong("single-process-oom-kill"))?;
        let swap_behavior = match text("memory-swap-behavior") {
            "NoSwap" => SwapBehavior::NoSwap,
            "LimitedSwap" => SwapBehavior::LimitedSwap,
            _ => anyhow::bail!("{}: must be NoSwap or LimitedSwap", wrong("memory-swap-behavior")),
        };
        let eviction = eviction(&text)?;
        let managers = managers(&text)?;
        Ok(Self {
            eviction,
            image_gc,
            shutdown,
            reserved,
            allowed_unsafe_sysctls,
            single_process_oom_kill,
            swap_behavior,
            managers,
        })
    }

    pub(crate) fn apply(&self, config: &mut Config) {
        config.eviction = self.eviction.clone();
        config.image_gc = self.image_gc;
        config.shutdown = self.shutdown;
        config.swap_behavior = self.swap_behavior;
        config.managers.clone_from(&self.managers);
        config.allowed_unsafe_sysctls.clone_from(&self.allowed_unsafe_sysctls);
        // `--reserved-cpus`: CPUs that are named go before a number of them.
        config.reserved_cpu_millis = match i64::try_from(self.managers.cpu.reserved.len()).unwrap_or(i64::MAX) {
            0 => self.reserved.cpu_millis,
            named => named.saturating_mul(1000),
        };
        config.reserved_memory_bytes = self.reserved.memory_bytes;
        config.reserved_storage_bytes = self.reserved.storage_bytes;
    }
}

/// How packets get to the Pods of other nodes.
pub(crate) fn pod_network(matches: &ArgMatches) -> Result<PodNetworkMode> {
    let text = matches.get_one::<String>("pod-network").map_or("vxlan", String::as_str);
    PodNetworkMode::parse(text)
        .with_context(|| format!("{}: must be vxlan, wireguard, routes or cni", wrong("pod-network")))
}

/// Who plugs Pods in.
///
/// # Errors
/// A folder is named for a plug-in that is not asked for, or by a path that depends on where the command was run.
pub(crate) fn pod_link(matches: &ArgMatches) -> Result<PodLink> {
    let folder = |name: &str| matches.get_one::<String>(name);
    if pod_network(matches)? != PodNetworkMode::Plugin {
        for name in ["cni-config", "cni-plugins"] {
            anyhow::ensure!(
                folder(name).is_none(),
                "--{name} says where a CNI plug-in is, for --pod-network=cni alone"
            );
        }
        return Ok(PodLink::Bridge);
    }
    // The node is a process of its own, in another folder than whoever starts it.
    let absolute = |name: &str, usual: &str| {
        let path = PathBuf::from(folder(name).map_or(usual, String::as_str));
        anyhow::ensure!(path.is_absolute(), "--{name}: {} must begin with /", path.display());
        Ok(path)
    };
    Ok(PodLink::Plugin(CniFolders {
        config: absolute("cni-config", "/etc/cni/net.d")?,
        programs: absolute("cni-plugins", "/opt/cni/bin")?,
    }))
}

/// What Pods cannot reach: with a plug-in of another's this machine has no address that is for its Pods alone.
///
/// # Errors
/// The API is to be served at the machine's own loopback address.
pub(crate) fn refuse_unreachable_api(matches: &ArgMatches, link: &PodLink) -> Result<()> {
    // Of one command it is a text, of the other an address: both were given as words. `join` has none.
    let address = matches.try_get_raw("bind").ok().flatten().and_then(|mut it| it.next());
    let address = address.and_then(|it| it.to_str()?.parse::<std::net::IpAddr>().ok());
    let is_closed = address.is_some_and(|it| it.is_loopback());
    if !link.is_plugin() || !is_closed {
        return Ok(());
    }
    let mut failure = Failure::new("--pod-network=cni: Pods would not reach the API, which is served at --bind alone");
    failure.details.push("with a CNI plug-in of another's they reach it at the machine's own address".to_owned());
    Err(failure.next("corten up --bind 0.0.0.0 --pod-network=cni").into())
}

/// Has this machine what its Pods' packets are to go by? Asked before anything is started or spent.
///
/// # Errors
/// The kernel has no WireGuard.
pub(crate) fn refuse_pod_network(mode: PodNetworkMode) -> Result<()> {
    // Nobody but root would have the kernel load it.
    if mode != PodNetworkMode::WireGuard || !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    match wireguard_lack().context("looking for WireGuard in the kernel")? {
        None => Ok(()),
        Some(lack) => Err(Failure::new(format!("--pod-network wireguard: {lack}")).into()),
    }
}

fn wrong(name: &str) -> String {
    format!("reading --{name}")
}

fn eviction<'t>(text: &dyn Fn(&str) -> &'t str) -> Result<EvictionConfig> {
    let of = |name: &str, result: Result<_, String>| result.map_err(anyhow::Error::msg).with_context(|| wrong(name));
    let mut thresholds = of("eviction-hard", hard_thresholds(text("eviction-hard")))?;
    let soft = soft_thresholds(text("eviction-soft"), text("eviction-soft-grace-period"));
    thresholds.extend(of("eviction-soft", soft)?);
    let minimum = set_min_reclaims(&mut thresholds, text("eviction-minimum-reclaim"));
    minimum.map_err(anyhow::Error::msg).with_context(|| wrong("eviction-minimum-reclaim"))?;
    let period = "eviction-pressure-transition-period";
    let grace = "eviction-max-pod-grace-period";
    Ok(EvictionConfig {
        thresholds,
        pressure_transition_period: duration(text(period))
            .map_err(anyhow::Error::msg)
            .with_context(|| wrong(period))?,
        max_pod_grace_seconds: text(grace).parse().with_context(|| wrong(grace))?,
    })
}

impl Reserved {
    /// Adds `cpu=100m,memory=200Mi`.
    fn plus(mut self, text: &str) -> Result<Self> {
        for pair in text.split(',').map(str::trim).filter(|it| !it.is_empty()) {
            let (name, value) =
                pair.split_once('=').with_context(|| format!("{pair:?} is not of the form resource=quantity"))?;
            let quantity: Quantity = value.trim().parse().with_context(|| format!("{value:?}"))?;
            anyhow::ensure!(!quantity.is_negative(), "{pair}: must not be negative");
            match name.trim() {
                "cpu" => self.cpu_millis = self.cpu_millis.saturating_add(quantity.milli_value()),
                "memory" => self.memory_bytes = self.memory_bytes.saturating_add(quantity.value()),
                "ephemeral-storage" => self.storage_bytes = self.storage_bytes.saturating_add(quantity.value()),
                other => anyhow::bail!("{other:?} cannot be reserved: only cpu, memory and ephemeral-storage"),
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<NodeOptions> {
        let command = corten_options::node_options::args(clap::Command::new("node"));
        NodeOptions::of(&command.try_get_matches_from([&["node"], args].concat()).expect("options"))
    }

    #[test]
    fn the_defaults_are_the_kubelets() {
        let mut config = Config::new("n1", "192.168.0.1");
        read(&[]).expect("defaults").apply(&mut config);
        assert_eq!(config, Config::new("n1", "192.168.0.1"));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (args, expected) in [
            (&["--eviction-hard=disk<1"][..], "reading --eviction-hard: unsupported eviction signal disk"),
            (
                &["--eviction-soft=memory.available<1Gi"],
                "reading --eviction-soft: grace period must be specified for the soft eviction threshold memory.available",
            ),
            (&["--image-gc-high-threshold=101"], "reading --image-gc-high-threshold: must be between 0 and 100"),
            (&["--image-gc-high-threshold=70"], "--image-gc-low-threshold must not be above --image-gc-high-threshold"),
            (
                &["--shutdown-grace-period=5s"],
                "--shutdown-grace-period-critical-pods must not be longer than --shutdown-grace-period",
            ),
            (
                &["--kube-reserved=gpu=1"],
                "reading --kube-reserved: \"gpu\" cannot be reserved: only cpu, memory and ephemeral-storage",
            ),
            (&["--maximum-image-gc-age=5"], "reading --maximum-image-gc-age: time: missing unit in duration \"5\""),
        ] {
            let error = read(args).expect_err("refused");
            assert_eq!(format!("{error:#}"), expected, "{args:?}");
        }
        let reserved =
            read(&["--kube-reserved=cpu=100m,memory=1Mi", "--system-reserved=cpu=1"]).expect("fine").reserved;
        assert_eq!(reserved, Reserved { cpu_millis: 1100, memory_bytes: 1 << 20, storage_bytes: 0 });
    }
}
