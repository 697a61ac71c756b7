//! `corten why [KIND[/NAME]]`: what an object waits for, since when, and who must act.

use std::{cell::Cell, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context as _, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use corten_client::Error;
use corten_kinds::Kind;
use corten_meta::Key;
use corten_reconcile::Actor;

use crate::{
    Verb,
    cluster_place::ClusterPlace,
    connection::{self, Connection},
    why::{self, ClusterRecord, Explanation, Group, Outage, PageStyle, Reader, State, Survey},
};
use corten_console::{
    failure::Failure,
    output::{self, Format},
};

pub(crate) const VERB: Verb = Verb {
    name: "why",
    about: "Say why an object is not running: what it waits for, since when, who must act",
    long_about: "Reads the object, its warnings and the journals of the loops that look after it, and follows what they \
                 wait for: from a Deployment to its ReplicaSet to the Pod that holds it up, and there to the step that is \
                 stuck. The answer fits one screen and ends with the command to run next.\n\nWithout a name: everything of \
                 the namespace, or with -A of the cluster, that is not fine, put together by its cause, worst first.\n\n\
                 Where the cluster of this machine does not run, it says how that ended, with what last words, and whether it is \
                 started again; root may ask that. On a machine that has joined a cluster whose control plane does not answer, the node \
                 itself is asked: its Pods, and what its loops wait for.\n\n\
                 Exit codes: 0 nothing is waited for, 3 it goes on by itself, 4 somebody must act, 5 the cluster does not run, \
                 6 nothing was found, but not all could be looked at, 1 it could not be told.",
    examples: "  corten why\n  corten why -A\n  corten why pod/web-1\n  corten why deployment/user-service -n shop\n  corten why deploy user-service -o json\n  corten why job/import --wait=60",
    args,
    run,
};

fn args(command: Command) -> Command {
    let target = Arg::new("target").value_names(["KIND/NAME"]).num_args(0..=2);
    let target =
        target.help("The object: pod/web-1, or pod web-1; short names work: po, deploy, rs; a kind alone: all of it");
    let everywhere = Arg::new("all-namespaces").short('A').long("all-namespaces").action(ArgAction::SetTrue);
    let wait =
        Arg::new("wait").long("wait").value_name("SECONDS").value_parser(value_parser!(u64)).require_equals(true);
    let command = command.arg(target).arg(everywhere.help("Look at every namespace").conflicts_with("namespace")).arg(
        wait.num_args(0..=1)
            .default_missing_value("300")
            .help("Ask again until it no longer goes on by itself, for at most so long [default without a value: 300]"),
    );
    connection::args(output::args(command))
}

/// What was asked for, in the words of the command line.
enum Query {
    Object(String, String),
    Kind(String),
    Everything,
}

enum Subject {
    Object(&'static Kind, String),
    Kind(&'static Kind),
    Everything,
}

enum Answer {
    Object(Box<Explanation>),
    Survey(Survey),
    Outage(Outage),
    /// Nothing is read or written: etcd has lost its quorum.
    NoQuorum(Box<Survey>),
    /// No server answers, in whose words, and what this machine's node says.
    OfNode(String, Box<Answer>),
}

/// Between two looks while it waits.
const PAUSE: Duration = Duration::from_secs(1);
/// A process that is killed has ended within this time.
const LAST_LOOK: Duration = Duration::from_millis(200);
/// A server that a node cannot reach says nothing at all.
const SERVER_DEADLINE: Duration = Duration::from_secs(5);

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let asked = asked(matches)?;
    let folders = connection::data_folders(matches);
    let connection = match connection::open(matches) {
        Ok(connection) => connection,
        Err(error) => {
            if let Some(outage) = ClusterRecord::find(&folders).and_then(|it| it.outage()) {
                return answered(&Answer::Outage(outage), matches);
            }
            // Nobody said how to ask the API; whether it answers is known to the node.
            let silence = silence_of_server(matches).ok_or(error)?;
            return answered(&ask_node(matches, &asked, silence)?, matches);
        }
    };
    let everywhere = matches.get_flag("all-namespaces");
    let mut seconds_left = matches.get_one::<u64>("wait").copied().unwrap_or(0);
    let is_unreached = Cell::new(false);
    let place = ClusterPlace::of(matches, &connection);
    let behind = async |error| {
        let outage = outage_behind(error, &folders, &connection).await;
        is_unreached.set(outage.is_err());
        anyhow::Ok(Answer::Outage(outage?))
    };
    let answer = connection.block_on(async {
        let target = match unless_quorum_is_lost(&folders, target(&connection, &asked)).await {
            Err(lost) => return Ok(Answer::NoQuorum(lost)),
            Ok(Err(error)) if is_unreachable(&error) => return behind(error).await,
            Ok(target) => target?,
        };
        loop {
            let life = ClusterRecord::find(&folders);
            let outage = life.as_ref().and_then(ClusterRecord::outage);
            let answer = match outage {
                Some(outage) => Answer::Outage(outage),
                None => match unless_quorum_is_lost(&folders, ask(&connection, &target, everywhere, &place)).await {
                    Err(lost) => Answer::NoQuorum(lost),
                    Ok(Ok(answer)) => {
                        let members = folders.iter().flat_map(|it| why::etcd_concerns(it, output::now())).collect();
                        noticed(answer, &target, life.as_ref(), &connection, members)
                    }
                    Ok(Err(error)) if is_unreachable(&error) => behind(error).await?,
                    Ok(Err(error)) => return Err(refused(error, &connection, life.as_ref())),
                },
            };
            if seconds_left == 0 || !goes_on(&answer) {
                return anyhow::Ok(answer);
            }
            seconds_left = seconds_left.saturating_sub(PAUSE.as_secs());
            tokio::time::sleep(PAUSE).await;
        }
    });
    let answer = match answer {
        Err(error) if is_unreached.get() && connection::joined_node(matches).is_some() => {
            ask_node(matches, &asked, format!("{error:#}"))?
        }
        answer => answer?,
    };
    answered(&answer, matches)
}

/// What comes of asking; or that etcd has lost its quorum, before or meanwhile: nobody answers then, and each question would wait for that.
async fn unless_quorum_is_lost<T>(folders: &[PathBuf], asking: impl Future<Output = T>) -> Result<T, Box<Survey>> {
    let lost = async {
        loop {
            let is_out = ClusterRecord::find(folders).is_some_and(|it| it.outage().is_some());
            let lost = folders.iter().find_map(|it| why::etcd_quorum_lost(it, output::now()));
            if let Some(lost) = lost.filter(|_| !is_out) {
                return lost;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::select! {
        biased;
        lost = lost => Err(Box::new(lost)),
        answer = asking => Ok(answer),
    }
}

/// Asks this machine's node, where it has joined a cluster. Nothing of what it does not know is there for it.
fn ask_node(matches: &ArgMatches, asked: &Query, silence: String) -> Result<Answer> {
    let folder = connection::joined_node(matches).context("finding this machine's node")?;
    let connection = connection::open_file(&folder.join(connection::NODE_KUBECONFIG), matches)
        .with_context(|| format!("{silence}; asking this machine's node"))?;
    let answer = connection.block_on(async {
        let target = target(&connection, asked).await?;
        ask(&connection, &target, matches.get_flag("all-namespaces"), &ClusterPlace::default()).await
    });
    let answer = answer.with_context(|| format!("{silence}; asking this machine's node"))?;
    Ok(Answer::OfNode(silence, Box::new(answer)))
}

/// Why no server answers this machine's node, where that is so.
fn silence_of_server(matches: &ArgMatches) -> Option<String> {
    let folder = connection::joined_node(matches)?;
    let connection = connection::open_file(&folder.join("kubeconfig"), matches).ok()?;
    let answer = connection.block_on(connection.client.clone().with_deadline(SERVER_DEADLINE).get_path("/readyz"));
    answer.err().filter(|it| matches!(it, Error::Transport(_))).map(|it| it.to_string())
}

fn is_unreachable(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::Transport(_)))
}

/// One that was just being killed looked as if it ran.
async fn outage_behind(error: anyhow::Error, folders: &[PathBuf], connection: &Connection) -> Result<Outage> {
    tokio::time::sleep(LAST_LOOK).await;
    let life = ClusterRecord::find(folders);
    if let Some(outage) = life.as_ref().and_then(|it| it.outage().or_else(|| it.outage_of_start())) {
        return Ok(outage);
    }
    let said = format!("{error:#}");
    let failure = match folders.first() {
        None => why::unreached(&said, &connection.server, &connection.kubeconfig),
        Some(_) if !rustix::process::geteuid().is_root() => {
            let hint = "where it is the cluster of this machine, `sudo corten why` says more";
            Failure::new(format!("{said}; {hint}")).next("sudo corten why")
        }
        Some(data) => why::unanswered(data, life.as_ref(), &said),
    };
    Err(failure.into())
}

/// Who shows a certificate that has ended is told so: the server says no more than that it knows nobody.
fn refused(error: anyhow::Error, connection: &Connection, life: Option<&ClusterRecord>) -> anyhow::Error {
    if !matches!(error.downcast_ref(), Some(Error::Status(it)) if it.code == 401) {
        return error;
    }
    let Some(concern) = of_certificate(connection, life) else {
        return why::unknown_asker(&format!("{error:#}"), &connection.kubeconfig, life).into();
    };
    Failure::new(format!("{error:#}: {}: {}", concern.subjects[0].subject, concern.summary)).next(concern.next).into()
}

fn of_certificate(connection: &Connection, life: Option<&ClusterRecord>) -> Option<Group> {
    let certificate = connection.certificate.as_deref()?;
    let fresh = life.map(ClusterRecord::admin_kubeconfig).filter(|it| *it != connection.kubeconfig);
    why::certificate_of_user(certificate, &connection.kubeconfig, fresh.as_deref(), output::now())
}

fn answered(answer: &Answer, matches: &ArgMatches) -> Result<ExitCode> {
    print(answer, output::format(matches))?;
    Ok(ExitCode::from(code(answer)))
}

/// With what was noted of the cluster's own life, where that bears on what was asked.
fn noticed(
    mut answer: Answer,
    target: &Subject,
    life: Option<&ClusterRecord>,
    connection: &Connection,
    of_etcd: Vec<Group>,
) -> Answer {
    let now = output::now();
    let notices = || life.map(|it| it.notices(now)).unwrap_or_default();
    match (&mut answer, target) {
        (Answer::Survey(it), Subject::Everything) => {
            for group in it.groups.iter_mut().filter(|it| it.is_of_cluster()) {
                if let Some(remedy) = life.and_then(|life| life.remedy(&group.summary)) {
                    group.next = remedy.next;
                }
            }
            let concerns = life.map(|it| it.concerns(now)).unwrap_or_default();
            let of_etcd_is_full = of_etcd.iter().any(|it| it.summary.starts_with("EtcdNoSpace"));
            let concerns = of_etcd.into_iter().chain(concerns).chain(of_certificate(connection, life));
            // A member of etcd that is full says so itself: what the server says of it is no second cause.
            if of_etcd_is_full {
                it.groups.retain(|it| !it.is_of_cluster() || !is_about_etcds_room(&it.summary));
            }
            let at = it.groups.iter().take_while(|it| it.is_of_cluster()).count();
            it.groups.splice(at..at, concerns);
            it.notices.extend(notices());
        }
        (Answer::Survey(it), Subject::Kind(kind)) if kind.singular == "node" => it.notices.extend(notices()),
        (Answer::Object(it), asked) if is_own_node(asked, life.and_then(ClusterRecord::node_name).as_deref()) => {
            it.notices.extend(notices());
        }
        _ => {}
    }
    answer
}

/// What is about another machine's node has nothing to do with this machine's life.
fn is_own_node(asked: &Subject, own: Option<&str>) -> bool {
    matches!(asked, Subject::Object(kind, name) if kind.singular == "node" && Some(&**name) == own)
}

fn is_about_etcds_room(summary: &str) -> bool {
    summary.contains("etcd's quota") || summary.contains("its alarm NOSPACE is raised")
}

async fn ask(connection: &Connection, target: &Subject, everywhere: bool, place: &ClusterPlace) -> Result<Answer> {
    let source = why::source(&connection.client).await;
    let reader = Reader::new(&*source, output::now()).at(place.clone());
    let namespace = if everywhere { "" } else { &*connection.namespace };
    if !matches!(target, Subject::Object(..))
        && let Some(failure) = why::missing_namespace(&reader, namespace).await
    {
        return Err(failure.into());
    }
    let survey = async |kind: Option<&'static Kind>| match why::survey(&reader, namespace, kind).await {
        Err(error) if error.status().is_some_and(|it| it.code == 403) => {
            Err(why::may_not_look(&error, namespace).into())
        }
        Err(error) => Err(match kind {
            Some(kind) => unlisted(&reader, error, kind).await,
            None => error.into(),
        }),
        Ok(surveyed) => Ok(Answer::Survey(surveyed)),
    };
    match target {
        Subject::Everything => survey(None).await,
        Subject::Kind(kind) => survey(Some(kind)).await,
        Subject::Object(kind, name) => {
            let namespace = if kind.resource.namespaced { &*connection.namespace } else { "" };
            let key = Key::new(namespace, &**name);
            match why::explain(&reader, kind, &key).await {
                Ok(explanation) => Ok(Answer::Object(Box::new(explanation))),
                Err(error) => Err(told(&reader, error, kind, &key).await),
            }
        }
    }
}

const FINE: u8 = 0;
const PROGRESSING: u8 = 3;
const BLOCKED: u8 = 4;
const NOT_RUNNING: u8 = 5;
/// Nothing was found, in what could be asked.
const NOT_ALL_SEEN: u8 = 6;

/// Would it be another answer by and by?
fn goes_on(answer: &Answer) -> bool {
    match answer {
        Answer::Outage(it) => it.actor == Actor::Cluster,
        other => code(other) == PROGRESSING,
    }
}

fn code(answer: &Answer) -> u8 {
    let one = |state: State, needs_somebody: bool| match state {
        _ if needs_somebody => BLOCKED,
        State::Fine | State::Finished => FINE,
        _ => PROGRESSING,
    };
    match answer {
        Answer::Object(it) => one(it.account.state, it.account.needs_somebody()),
        Answer::Outage(_) | Answer::NoQuorum(_) | Answer::OfNode(..) => NOT_RUNNING,
        Answer::Survey(it) if it.groups.is_empty() && !it.unknown.is_empty() => NOT_ALL_SEEN,
        Answer::Survey(it) => it.groups.iter().map(|it| one(it.state, it.needs_somebody)).max().unwrap_or(FINE),
    }
}

fn asked(matches: &ArgMatches) -> Result<Query> {
    let words: Vec<&str> = matches.get_many::<String>("target").into_iter().flatten().map(String::as_str).collect();
    let (kind, name) = match &words[..] {
        [] => return Ok(Query::Everything),
        [one] => match one.split_once('/') {
            Some((kind, name)) => (kind, name),
            None => return Ok(Query::Kind((*one).to_owned())),
        },
        [kind, name] => (*kind, *name),
        _ => bail!("say KIND/NAME, as in pod/web-1"),
    };
    if name.is_empty() || name.contains('/') {
        bail!("{name:?} is no object's name: say KIND/NAME, as in pod/web-1");
    }
    Ok(Query::Object(kind.to_owned(), name.to_owned()))
}

async fn target(connection: &Connection, asked: &Query) -> Result<Subject> {
    Ok(match asked {
        Query::Everything => Subject::Everything,
        Query::Kind(word) => Subject::Kind(find_kind(connection, word).await?),
        Query::Object(word, name) => Subject::Object(find_kind(connection, word).await?, name.clone()),
    })
}

/// A built-in kind, or one that a definition in the cluster describes.
async fn find_kind(connection: &Connection, word: &str) -> Result<&'static Kind> {
    if let Some(kind) = kind_of(word) {
        return Ok(kind);
    }
    let reader = Reader::new(&connection.client, output::now());
    let word = word.to_lowercase();
    match why::custom_kind(&reader, &word).await? {
        Some(kind) => Ok(kind),
        None => Err(why::unknown_kind(&reader, &word).await.into()),
    }
}

/// Any spelling kubectl takes: `po`, `pods`, `Pod`, `deployments.apps`, `deployment.apps`, `deployments.v1.apps`.
fn kind_of(word: &str) -> Option<&'static Kind> {
    let word = word.to_lowercase();
    let of_group = || {
        let (name, rest) = word.split_once('.')?;
        let group = rest.strip_prefix("v1.").unwrap_or(rest);
        let kind = corten_kinds::by_name(name)?;
        let plural = format!("{}.{group}", kind.resource.plural);
        corten_kinds::by_name(&plural)
    };
    corten_kinds::by_name(&word).or_else(of_group)
}

async fn unlisted(reader: &Reader<'_>, error: Error, kind: &Kind) -> anyhow::Error {
    match why::unreadable(reader, &error, kind, &kind.resource.qualified()).await {
        Some(failure) => failure.into(),
        None => error.into(),
    }
}

async fn told(reader: &Reader<'_>, error: Error, kind: &Kind, key: &Key) -> anyhow::Error {
    if error.is_not_found() {
        return why::missing(reader, kind, key).await.into();
    }
    match why::unreadable(reader, &error, kind, &format!("{}/{}", kind.singular, key.name)).await {
        Some(failure) => failure.into(),
        None => anyhow::Error::new(error).context(format!("reading {} {key}", kind.singular)),
    }
}

fn print(answer: &Answer, format: Format) -> Result<()> {
    if let (Answer::OfNode(silence, answer), Format::Text) = (answer, format) {
        return output::text(&format!(
            "no control plane answers: {silence}\nwhat this machine's node knows by itself:\n\n{}",
            page(answer)
        ));
    }
    match (answer, format) {
        (Answer::Object(it), Format::Json) => output::json(it),
        (Answer::Survey(it), Format::Json) => output::json(it),
        (Answer::NoQuorum(it), Format::Json) => output::json(it),
        (Answer::Outage(it), Format::Json) => output::json(it),
        (Answer::OfNode(_, it), Format::Json) => print(it, format),
        (it, Format::Text) => output::text(&page(it)),
    }
}

fn page(answer: &Answer) -> String {
    let screen = PageStyle { width: output::width(), height: output::height(), colour: output::colour() };
    let of_survey = if output::is_terminal() { screen } else { PageStyle::WHOLE };
    // Who says how wide a screen is wants one, wherever it is printed.
    let look = if std::env::var_os("COLUMNS").is_some() { screen } else { of_survey };
    match answer {
        Answer::Object(it) => why::render(it, output::now(), look),
        Answer::Survey(it) => why::render_survey(it, output::now(), of_survey),
        Answer::NoQuorum(it) => why::render_survey(it, output::now(), of_survey),
        Answer::Outage(it) => why::render_outage(it, output::now(), look),
        Answer::OfNode(_, it) => page(it),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_node_has_to_do_with_this_machines_life() {
        for (kind, name, own, expected) in [
            ("node", "m1", Some("m1"), true),
            ("node", "m2", Some("m1"), false),
            ("node", "m1", None, false),
            ("pod", "m1", Some("m1"), false),
        ] {
            let asked = Subject::Object(kind_of(kind).expect("a kind"), name.to_owned());
            assert_eq!(is_own_node(&asked, own), expected, "{kind}/{name} on {own:?}");
        }
        assert!(!is_own_node(&Subject::Everything, Some("m1")));
    }

    #[test]
    fn a_kind_may_be_spelled_in_every_way() {
        for word in
            ["po", "pod", "Pods", "deploy", "Deployment", "deployments.apps", "deployment.apps", "deployments.v1.apps"]
        {
            assert!(kind_of(word).is_some(), "{word}");
        }
        assert_eq!(kind_of("replicaset.apps").expect("a kind").singular, "replicaset");
        assert!(kind_of("unicorn").is_none() && kind_of("pod.apps").is_none());
    }
}
