//! What the control plane can be told under upstream's names, whether it runs alone or with a node: `corten server` and
//! `corten node` read them, `corten up` passes them on.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Arg, ArgAction, ArgMatches, Command, builder::PossibleValuesParser, parser::ValueSource, value_parser};

/// What an option takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// `--option`, or `--option=false`.
    Switch,
    /// Words between commas, as often as it is given.
    List,
    /// The path of a file.
    File,
    /// Any word.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A length of time as Go writes it.
    Time,
}

/// One option: its name, what it takes, what stands for its value, the default, and what it does.
type Row = (&'static str, Takes, &'static str, &'static str, &'static str);

const ROWS: &[Row] = &[
    (
        "authentication-config",
        Takes::File,
        "FILE",
        "",
        "Who else issues tokens, whom they name, and who may come without any (an AuthenticationConfiguration of apiserver.config.k8s.io/v1), read again when it changes",
    ),
    (
        "authentication-token-webhook-cache-ttl",
        Takes::Time,
        "TIME",
        "2m",
        "How long an answer of the webhook for tokens holds",
    ),
    (
        "authentication-token-webhook-config-file",
        Takes::File,
        "FILE",
        "",
        "Whom to ask about tokens that nobody here knows (a kubeconfig whose server takes a TokenReview)",
    ),
    (
        "authentication-token-webhook-version",
        Takes::Word(&["v1", "v1beta1"]),
        "VERSION",
        "v1beta1",
        "The version of authentication.k8s.io that the webhook for tokens is asked in",
    ),
    (
        "authorization-config",
        Takes::File,
        "FILE",
        "",
        "Who decides what a user may do (an AuthorizationConfiguration of apiserver.config.k8s.io/v1), read again when it changes; instead of the other options of authorization",
    ),
    (
        "authorization-mode",
        Takes::List,
        "MODE,…",
        "Node,RBAC",
        "Who decides what a user may do, in order: Node, RBAC, Webhook, AlwaysAllow, AlwaysDeny",
    ),
    (
        "authorization-webhook-cache-authorized-ttl",
        Takes::Time,
        "TIME",
        "5m",
        "How long the authorization webhook's yes holds",
    ),
    (
        "authorization-webhook-cache-unauthorized-ttl",
        Takes::Time,
        "TIME",
        "30s",
        "How long the authorization webhook's no holds",
    ),
    (
        "authorization-webhook-config-file",
        Takes::File,
        "FILE",
        "",
        "Whom the mode Webhook asks (a kubeconfig whose server takes a SubjectAccessReview)",
    ),
    (
        "authorization-webhook-version",
        Takes::Word(&["v1", "v1beta1"]),
        "VERSION",
        "v1beta1",
        "The version of authorization.k8s.io that the authorization webhook is asked in",
    ),
    (
        "cluster-cidr",
        Takes::List,
        "CIDR,…",
        "",
        "The addresses of all Pods, a range of IPv4, of IPv6, or of both with the primary family first [default: 10.244.0.0/16,fd00:10:244::/56]; ula in the place of one draws a prefix of IPv6 (RFC 4193). The cluster keeps it from its first start",
    ),
    (
        "cluster-domain",
        Takes::Text,
        "DOMAIN",
        "",
        "The domain of the names of Services [default: cluster.local]. The cluster keeps it from its first start",
    ),
    (
        "controllers",
        Takes::List,
        "NAME,…",
        "*",
        "Which controllers run, by upstream's names: `*` all, NAME this one, -NAME all of `*` but this one. What is off leaves its work to another program; empty: none runs",
    ),
    (
        "dns-stub-domain",
        Takes::List,
        "DOMAIN=ADDRESS,…",
        "",
        "Ask these name servers for names of this domain; as often as there are domains",
    ),
    (
        "dns-upstreams",
        Takes::List,
        "ADDRESS,…",
        "",
        "The name servers that are asked for names outside the cluster [default: those of the machine]",
    ),
    (
        "encryption-provider-config",
        Takes::File,
        "FILE",
        "",
        "What is encrypted before it is stored, and by which keys (an EncryptionConfiguration of apiserver.config.k8s.io/v1)",
    ),
    (
        "encryption-provider-config-automatic-reload",
        Takes::Switch,
        "true|false",
        "false",
        "Read the file of --encryption-provider-config again when it changes",
    ),
    (
        "etcd-binary",
        Takes::File,
        "FILE",
        "",
        "The program of etcd that --ha starts [default: etcd, where programs are]",
    ),
    (
        "etcd-cafile",
        Takes::File,
        "FILE",
        "",
        "The authority that certificates of etcd are from; needed for servers whose address begins with https",
    ),
    ("etcd-certfile", Takes::File, "FILE", "", "The certificate that etcd is shown, with --etcd-keyfile"),
    (
        "etcd-compaction-interval",
        Takes::Time,
        "TIME",
        "5m",
        "How often what is older than that is forgotten in etcd, by one of all API servers; 0: by none of them",
    ),
    ("etcd-keyfile", Takes::File, "FILE", "", "The key of --etcd-certfile"),
    (
        "etcd-listen",
        Takes::Text,
        "ADDRESS",
        "",
        "Serve etcd's API over the store of the data folder here, to clients with a certificate of DIR/pki/etcd/ca.crt such as DIR/pki/apiserver-etcd-client.crt: objects are read and deleted there, and not put",
    ),
    ("etcd-prefix", Takes::Text, "PREFIX", "/registry", "Where the keys of this cluster begin in etcd"),
    (
        "etcd-servers",
        Takes::List,
        "URL,…",
        "",
        "Keep the cluster in this etcd, members of one cluster of version 3.5.13 or newer, and not in the data folder",
    ),
    (
        "ha",
        Takes::Switch,
        "true|false",
        "false",
        "Keep the cluster in an etcd that Corten runs, with a member on this machine and on each that joins by `corten token create --control-plane`",
    ),
    (
        "host-port-range",
        Takes::Text,
        "FIRST-LAST",
        "",
        "The ports of nodes that Pods with the annotation corten.dev/network: host are given [default: 20000-29999]",
    ),
    (
        "leader-elect-lease-duration",
        Takes::Time,
        "TIME",
        "15s",
        "How long after its last renewal others wait before they run the controllers, where several servers share an etcd",
    ),
    (
        "leader-elect-renew-deadline",
        Takes::Time,
        "TIME",
        "10s",
        "How long a server that cannot renew its lease goes on to run the controllers",
    ),
    ("leader-elect-retry-period", Takes::Time, "TIME", "2s", "How often the lease is tried for, or renewed"),
    (
        "load-balancer-pool",
        Takes::List,
        "RANGE,…",
        "",
        "Addresses of the nodes' link that nobody has: 10.0.0.200-10.0.0.220, 10.0.0.64/28, fd00::100/120. Each Service of type LoadBalancer gets one of them, for which one node answers, and not the nodes' own. The same at every server",
    ),
    ("no-scheduler", Takes::Switch, "true|false", "false", "Place no pods: another program is the scheduler"),
    (
        "node-cidr-mask-size-ipv4",
        Takes::Text,
        "BITS",
        "",
        "The size of a node's part of the IPv4 range of Pods [default: 24]. The cluster keeps it from its first start",
    ),
    (
        "node-cidr-mask-size-ipv6",
        Takes::Text,
        "BITS",
        "",
        "The size of a node's part of the IPv6 range of Pods [default: 64]. The cluster keeps it from its first start",
    ),
    (
        "scheduler-config",
        Takes::File,
        "FILE",
        "",
        "How pods are placed: profiles with their plugins, weights and arguments (a KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1)",
    ),
    (
        "service-cluster-ip-range",
        Takes::List,
        "CIDR,…",
        "",
        "The addresses of Services, as --cluster-cidr [default: 10.96.0.0/12,fd00:10:96::/112]; the tenth is the name server's. The cluster keeps it from its first start",
    ),
    (
        "service-node-port-range",
        Takes::Text,
        "FIRST-LAST",
        "",
        "The ports of nodes that Services are given [default: 30000-32767]",
    ),
    (
        "shutdown-delay-duration",
        Takes::Time,
        "TIME",
        "0s",
        "How long the server goes on to serve once it was told to end, while /readyz says so and the Service `kubernetes` leads to it no longer: for balancers that look at /readyz; 10s at most",
    ),
];

/// Adds the options.
pub fn args(command: Command) -> Command {
    ROWS.iter().fold(command, |command, (name, takes, value, default, help)| {
        let arg = Arg::new(*name).long(*name).value_name(*value).help(*help).help_heading("Control plane");
        let arg = match takes {
            Takes::Switch => {
                arg.value_parser(value_parser!(bool)).num_args(0..=1).require_equals(true).default_missing_value("true")
            }
            Takes::File => arg.value_parser(value_parser!(PathBuf)),
            Takes::Word(words) => arg.value_parser(PossibleValuesParser::new(words.iter().copied())),
            Takes::Text => arg,
            Takes::Time => arg.value_parser(corten_meta::duration::duration),
            Takes::List => arg.value_delimiter(',').action(ArgAction::Append).allow_hyphen_values(true),
        };
        command.arg(if default.is_empty() { arg } else { arg.default_value(*default) })
    })
}

/// The entries of a list; an empty word is none.
pub fn list<'a>(matches: &'a ArgMatches, name: &str) -> Vec<&'a str> {
    matches.get_many::<String>(name).into_iter().flatten().map(String::as_str).filter(|it| !it.is_empty()).collect()
}

pub fn is_on(matches: &ArgMatches, name: &str) -> bool {
    matches.get_one::<bool>(name).copied().unwrap_or_default()
}

/// The word that was given, or the default.
pub fn word<'a>(matches: &'a ArgMatches, name: &str) -> &'a str {
    matches.get_one::<String>(name).map_or("", String::as_str)
}

/// The length of time that was given, or the default.
pub fn time(matches: &ArgMatches, name: &str) -> Duration {
    matches.get_one::<Duration>(name).copied().unwrap_or_default()
}

/// Was any option given whose name begins so?
pub fn any_given(matches: &ArgMatches, prefix: &str) -> bool {
    ROWS.iter().any(|it| it.0.starts_with(prefix) && matches.value_source(it.0) == Some(ValueSource::CommandLine))
}

/// The address that was given, if any.
///
/// # Errors
/// It is no address with a port.
pub fn address(matches: &ArgMatches, name: &str) -> Result<Option<SocketAddr>, String> {
    let word = word(matches, name);
    if word.is_empty() {
        return Ok(None);
    }
    word.parse()
        .map(Some)
        .map_err(|_| format!("--{name} must be an address with a port, as 127.0.0.1:2379, and not {word}"))
}

/// A file that was named, wherever this program works.
pub fn file(matches: &ArgMatches, name: &str) -> Option<PathBuf> {
    let path = matches.get_one::<PathBuf>(name)?;
    // Only an empty path, or a working folder that is gone, cannot be made absolute: reading it tells.
    Some(std::path::absolute(path).unwrap_or_else(|_| path.clone()))
}

/// What was given on the command line, of an option that takes text or a list.
pub fn text_given(matches: &ArgMatches, name: &str) -> Option<String> {
    let is_given = matches.value_source(name) == Some(ValueSource::CommandLine);
    let words = matches.get_many::<String>(name).into_iter().flatten().map(String::as_str);
    is_given.then(|| words.collect::<Vec<_>>().join(","))
}

/// Is it one of these options?
pub fn is_one(name: &str) -> bool {
    ROWS.iter().any(|it| it.0 == name)
}

/// Those that were given, as arguments.
pub fn given(matches: &ArgMatches) -> Vec<String> {
    let is_given = |name: &str| matches.value_source(name) == Some(ValueSource::CommandLine);
    let argument = |(name, takes, ..): &Row| match takes {
        Takes::Switch => format!("--{name}={}", is_on(matches, name)),
        Takes::File => format!("--{name}={}", file(matches, name).unwrap_or_default().display()),
        Takes::List => format!("--{name}={}", list(matches, name).join(",")),
        Takes::Word(_) | Takes::Text => format!("--{name}={}", word(matches, name)),
        Takes::Time => format!("--{name}={}ns", time(matches, name).as_nanos()),
    };
    ROWS.iter().filter(|it| is_given(it.0)).map(argument).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_is_passed_on() {
        for (line, controllers, scheduler_is_off, passed_on) in [
            ("up", &["*"][..], false, &[][..]),
            (
                "up --controllers=*,-job --no-scheduler",
                &["*", "-job"],
                true,
                &["--controllers=*,-job", "--no-scheduler=true"],
            ),
            (
                "up --controllers job --controllers -cronjob",
                &["job", "-cronjob"],
                false,
                &["--controllers=job,-cronjob"],
            ),
            (
                "up --authorization-webhook-cache-authorized-ttl 1m30s --authorization-webhook-version=v1",
                &["*"],
                false,
                &["--authorization-webhook-cache-authorized-ttl=90000000000ns", "--authorization-webhook-version=v1"],
            ),
            ("up --controllers= --no-scheduler=false", &[], false, &["--controllers=", "--no-scheduler=false"]),
        ] {
            let matches = args(Command::new("up")).try_get_matches_from(line.split(' ')).expect(line);
            assert_eq!(list(&matches, "controllers"), controllers, "{line}");
            assert_eq!(is_on(&matches, "no-scheduler"), scheduler_is_off, "{line}");
            assert_eq!(given(&matches), passed_on, "{line}");
        }
    }
}
