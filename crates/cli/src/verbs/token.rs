//! `corten token`: bootstrap tokens, with which machines join the cluster. Secrets in kube-system, as kubeadm makes them.

pub(crate) mod control_plane;
mod network;
mod objects;
mod server;

use std::{collections::BTreeMap, fmt::Write as _, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context, Result, bail};
use base64::{Engine, engine::general_purpose::STANDARD};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use corten_api::resources::{CONFIG_MAPS, SECRETS};
use corten_client::{Client, DeleteParams, Error, ListParams, kubeconfig::Kubeconfig};
use corten_meta::{Key, ObjectMeta, Resource, Time, duration::duration};
use corten_pki::{BootstrapToken, public_key_hashes, sharing::CertificateKey};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::network::Maker;
use crate::{
    Verb,
    cluster_place::ClusterPlace,
    connection::{self, Connection},
};
use corten_console::{failure::Failure, output};
use corten_node_process::node_folders::DATA_DIR;

pub(crate) const VERB: Verb = Verb {
    name: "token",
    about: "Make, list and delete the tokens with which machines join the cluster",
    long_about: "`create` prints the one line that, run on another machine, makes it a node of this cluster: where the API server is, \
                 a bootstrap token (a Secret of type bootstrap.kubernetes.io/token, as kubeadm makes it) and the hash of the \
                 authority's public key, by which the machine knows the right server. The first `create` also lets bootstrap \
                 tokens ask for a node's certificate and publishes the authority in kube-public/cluster-info. The API must be \
                 served where other machines reach it: `corten up --bind ADDRESS`. \
                 Of a cluster whose API server is upstream's, the first `create` also writes down where its Pods and Services are, as \
                 kubeadm has kept it or options say. \
                 With `--control-plane` the line makes another control plane of a cluster that is kept in an etcd; where Corten runs \
                 that etcd (`corten up --ha`), another member of it, too. Its certificates and \
                 keys are then in the Secret kube-system/corten-certs for two hours, encrypted by the certificate key that only the \
                 line has.",
    examples: "  corten token create\n  corten token create --ttl 1h --description 'rack 4'\n  \
               corten token create --control-plane\n  corten token list\n  \
               corten token delete abcdef",
    args,
    run,
};

const NAMESPACE: &str = "kube-system";
const PREFIX: &str = "bootstrap-token-";
/// kubeadm's `DefaultTokenDuration`.
const TTL: &str = "24h";

fn args(command: Command) -> Command {
    let verb = |name: &'static str, about: &'static str| {
        output::args(connection::args(Command::new(name).about(about))).mut_arg("namespace", |it| it.hide(true))
    };
    let create = verb("create", "Make a token and print the line that joins a machine")
        .arg(
            Arg::new("ttl")
                .long("ttl")
                .value_name("TIME")
                .default_value(TTL)
                .help("How long the token lets machines join; 0: until it is deleted"),
        )
        .arg(Arg::new("description").long("description").value_name("TEXT").help("What the token is for"))
        .arg(Arg::new("server").long("server").value_name("URL").help(
            "Where other machines reach the API server [default: what the kubeconfig or the Service kubernetes says]",
        ))
        .arg(Arg::new("control-plane").long("control-plane").action(ArgAction::SetTrue).help(
            "Print the line of another control plane, and share the cluster's certificates and keys with it for two hours",
        ))
        .arg(
            Arg::new("data-dir")
                .long("data-dir")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .requires("control-plane")
                .help("Where this machine's control plane keeps everything [default: the folder of the kubeconfig, or /var/lib/corten]"),
        );
    let create = network::args(create);
    let token = Arg::new("token").value_name("ID").required(true).num_args(1..);
    command
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(create)
        .subcommand(verb("list", "Show the tokens, without their secrets"))
        .subcommand(
            verb("delete", "Delete tokens: no machine joins by them any more")
                .arg(token.help("The token, or the part before its dot")),
        )
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let (verb, matches) = matches.subcommand().expect("one is required");
    let connection = connection::open(matches)?;
    match verb {
        "create" => create(&connection, matches)?,
        "list" => list(&connection, output::format(matches))?,
        _ => delete(&connection, matches)?,
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Created {
    api_version: &'static str,
    kind: &'static str,
    token: String,
    server: String,
    ca_hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<Time>,
    command: String,
}

fn create(connection: &Connection, matches: &ArgMatches) -> Result<()> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let expires = expiration(text("ttl").unwrap_or(TTL), output::now())?;
    let token = BootstrapToken::generate().context("making a token")?;
    let (_, ca_hash) = authorities(connection)?;
    let shared =
        matches.get_flag("control-plane").then(|| control_plane::shared(&own_data(matches), &ca_hash)).transpose()?;
    let groups: &[&str] = if shared.is_some() { &[control_plane::CONTROL_PLANES] } else { &[] };
    let created = connection.block_on(async {
        let server = match text("server") {
            Some(server) => server::checked(server)?,
            None => server::of(&connection.client, &ClusterPlace::of(matches, connection)).await?,
        };
        let maker = network::publish(&connection.client, &network::given(matches)).await?;
        prepare(&connection.client, maker, &server, &connection.authorities).await?;
        let key = match &shared {
            Some(files) => Some(control_plane::publish(&connection.client, files, output::now()).await?),
            None => None,
        };
        let secret = objects::secret(&token, groups, expires, text("description"));
        connection.client.create(&SECRETS, NAMESPACE, &secret).await.context("writing the token")?;
        anyhow::Ok((server, key))
    });
    let (server, key) = created?;
    let is_ha = shared.is_some_and(|it| it.iter().any(|it| it.0 == control_plane::ETCD_AUTHORITY_KEY));
    let command = line(&server, &token, &ca_hash, key.as_ref(), is_ha);
    if output::format(matches) == output::Format::Json {
        return output::json(&Created {
            api_version: "corten.dev/v1",
            kind: "BootstrapToken",
            token: token.text(),
            server,
            ca_hash,
            certificate_key: key.map(|it| it.text()),
            expires,
            command,
        });
    }
    output::text(&(command + "\n"))
}

/// Where the control plane of this machine keeps everything.
fn own_data(matches: &ArgMatches) -> PathBuf {
    let given = matches.get_one::<PathBuf>("data-dir").cloned();
    given.or_else(|| connection::data_folders(matches).into_iter().next()).unwrap_or_else(|| PathBuf::from(DATA_DIR))
}

/// What is run on the other machine.
fn line(server: &str, token: &BootstrapToken, ca_hash: &str, key: Option<&CertificateKey>, is_ha: bool) -> String {
    let token = token.text();
    let verb = if is_ha { "up --ha" } else { "server" };
    match key {
        None => format!("corten join {server} --token {token} --ca-hash {ca_hash}"),
        Some(key) => {
            let key = key.text();
            format!("corten {verb} --join {server} --token {token} --ca-hash {ca_hash} --certificate-key {key}")
        }
    }
}

/// The authorities that the kubeconfig trusts, and the hash of the one that signs.
fn authorities(connection: &Connection) -> Result<(String, String)> {
    let pem = String::from_utf8_lossy(&connection.authorities).into_owned();
    let first = public_key_hashes(&pem).into_iter().next();
    let (hash, _) = first
        .context("the kubeconfig names no certificate authority by which another machine could know the server")?;
    Ok((pem, hash))
}

/// When a token of this life ends; never, for none.
fn expiration(ttl: &str, now: Time) -> Result<Option<Time>> {
    let ttl = duration(ttl).map_err(anyhow::Error::msg).context("reading --ttl")?;
    Ok((ttl > Duration::ZERO).then(|| now.after(ttl).whole_seconds()))
}

/// What every machine needs that joins: rights of bootstrap tokens and nodes, and the authority where strangers may read it. In a cluster that
/// kubeadm made it is for its administrator to say what of kubeadm's is there.
async fn prepare(client: &Client, maker: Maker, server: &str, authorities: &[u8]) -> Result<()> {
    let is_kubeadms = |object: &Value| object["metadata"]["name"].as_str().is_some_and(|it| it.starts_with("kubeadm:"));
    for (resource, namespace, object) in objects::rights() {
        if maker == Maker::Kubeadm && is_kubeadms(&object) {
            continue;
        }
        ensure(client, &resource, namespace, &object)
            .await
            .with_context(|| format!("writing {}", object["metadata"]["name"]))?;
    }
    if maker == Maker::Kubeadm {
        return Ok(());
    }
    let config = Kubeconfig::anonymous(server, authorities).to_yaml().context("writing cluster-info")?;
    let wanted = objects::cluster_info(&config);
    match client.create(&CONFIG_MAPS, objects::PUBLIC, &wanted).await {
        Err(error) if error.is_already_exists() => {
            let patch = serde_json::json!({ "data": wanted["data"] });
            let key = Key::new(objects::PUBLIC, objects::CLUSTER_INFO);
            client.patch(&CONFIG_MAPS, &key, "", &corten_client::PatchType::Merge, &patch).await.map(drop)
        }
        other => other.map(drop),
    }
    .context("publishing the authority in kube-public/cluster-info")
}

/// What is there stays as somebody may have changed it.
async fn ensure(client: &Client, resource: &Resource, namespace: &str, object: &Value) -> Result<(), Error> {
    match client.create(resource, namespace, object).await {
        Err(error) if error.is_already_exists() => Ok(()),
        other => other.map(drop),
    }
}

#[derive(Deserialize)]
struct TokenSecret {
    metadata: ObjectMeta,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedToken {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    usages: Vec<String>,
    groups: Vec<String>,
    description: String,
}

impl TokenSecret {
    fn entry(&self, name: &str) -> Option<String> {
        String::from_utf8(STANDARD.decode(self.data.get(name)?).ok()?).ok()
    }

    fn listed(&self) -> Option<ListedToken> {
        let id = self.metadata.name.strip_prefix(PREFIX)?;
        let usage = |it: &&str| self.entry(&format!("usage-bootstrap-{it}")).as_deref() == Some("true");
        let groups = self.entry("auth-extra-groups").unwrap_or_default();
        Some(ListedToken {
            id: id.to_owned(),
            expires: self.entry("expiration").filter(|it| !it.is_empty()),
            usages: ["authentication", "signing"].iter().filter(|it| usage(it)).map(|it| (*it).to_owned()).collect(),
            groups: groups.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect(),
            description: self.entry("description").unwrap_or_default(),
        })
    }
}

fn list(connection: &Connection, format: output::Format) -> Result<()> {
    let params = ListParams {
        namespace: NAMESPACE.into(),
        field_selector: format!("type={}", objects::TYPE),
        ..ListParams::default()
    };
    let secrets = connection
        .block_on(connection.client.list_as::<TokenSecret>(&SECRETS, &params))
        .context("listing the tokens")?;
    let tokens: Vec<ListedToken> = secrets.iter().filter_map(TokenSecret::listed).collect();
    if format == output::Format::Json {
        let list = serde_json::json!({ "apiVersion": "corten.dev/v1", "kind": "BootstrapTokenList", "items": tokens });
        return output::json(&list);
    }
    output::text(&table(&tokens))
}

fn table(tokens: &[ListedToken]) -> String {
    if tokens.is_empty() {
        return "there are no tokens\n".to_owned();
    }
    let mut text = format!("{:<8}{:<22}{:<24}{}\n", "ID", "EXPIRES", "USAGES", "DESCRIPTION");
    for it in tokens {
        let expires = it.expires.as_deref().unwrap_or("never");
        let line = format!("{:<8}{expires:<22}{:<24}{}", it.id, it.usages.join(","), it.description);
        writeln!(text, "{}", line.trim_end()).expect("writing to memory does not fail");
    }
    text
}

fn delete(connection: &Connection, matches: &ArgMatches) -> Result<()> {
    for token in matches.get_many::<String>("token").into_iter().flatten() {
        let id = BootstrapToken::parse(token).map_or_else(|| token.clone(), |it| it.id);
        if BootstrapToken::parse(&format!("{id}.0123456789abcdef")).is_none() {
            bail!("{id:?} is no token: its id has six characters of a-z and 0-9");
        }
        let key = Key::new(NAMESPACE, format!("{PREFIX}{id}"));
        match connection.block_on(connection.client.delete(&SECRETS, &key, &DeleteParams::default())) {
            Err(error) if error.is_not_found() => {
                return Err(Failure::new(format!("there is no token {id}")).next("corten token list").into());
            }
            other => drop(other.with_context(|| format!("deleting the token {id}"))?),
        }
        output::text(&format!("token {id} is deleted\n"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
