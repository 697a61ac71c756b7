//! Containers that end, do not start, or do not answer.

use corten_reconcile::Actor;
use serde_json::json;

use super::{
    case::{Advice, Case, last_part, logs},
    images,
};
use crate::why::{
    command::kubectl,
    fields::{items, text},
};

pub(super) fn crash(case: &Case<'_>) -> Advice {
    let container = ended(case);
    let message = &case.wait.message;
    let what = message.split("; back-off").next().unwrap_or(message);
    if message.contains("it cannot be started") {
        return start(case);
    }
    if case.wait.reason == "OOMKilled" || message.contains("more memory than it may") {
        return out_of_memory(case, &container);
    }
    let is_over = matches!(&*case.wait.reason, "PodFailed");
    let options: &[&str] = if is_over { &["--tail=20"] } else { &["--previous"] };
    let headline = match &*container {
        "" => what.to_owned(),
        name => match restarts(case, name) {
            0 | 1 => format!("container {name} crashes: {what}"),
            n => format!("container {name} has crashed {n} times: {what}"),
        },
    };
    let headline = if is_over { what.to_owned() } else { headline };
    let code =
        what.split("exit code ").nth(1).map(|it| it.chars().take_while(char::is_ascii_digit).collect::<String>());
    // A Pod that is over has no step that waits.
    let named = format!("container {container}");
    let step = case.root.step.or_else(|| case.at.steps.iter().find(|it| it.name == named));
    let unstartable = step.and_then(|it| it.log.iter().rev().find_map(|it| not_executable(it)));
    if let Some((program, why, hint)) = unstartable {
        return Advice::run(logs(case, &container, options))
            .headline(format!("container {container} cannot run {program}: {why}"))
            .hint(hint)
            .hints(images::undo_hint(case));
    }
    let meaning = code.and_then(|it| meaning(&it)).filter(|_| !what.contains("probe fails"));
    Advice::run(logs(case, &container, options))
        .headline(headline)
        .hints(meaning.map(str::to_owned))
        .hints(images::undo_hint(case))
}

/// What a runtime's last act says in the container's own log, where the kernel does not take the program: which, why, and what that means.
fn not_executable(line: &str) -> Option<(&str, &str, &'static str)> {
    let (program, why) = of_crun(line).or_else(|| of_runc(line))?;
    let is = |says: &str| why.get(..says.len()).is_some_and(|it| it.eq_ignore_ascii_case(says));
    if is("exec format error") {
        let hint = "it is made for another processor than the node's, or is a script whose first line names no program (`#!/bin/sh`)";
        return Some((program, "exec format error", hint));
    }
    if is("no such file or directory") {
        let hint = "it is there, and what runs it is not: the program its first line names (line ends of Windows count as part of the name), or its loader";
        return Some((program, "no such file or directory", hint));
    }
    None
}

/// `exec /app: exec format error`, and in releases before 1.1 with the name of a source file before it.
fn of_runc(line: &str) -> Option<(&str, &str)> {
    line.trim().trim_start_matches("standard_init_linux.go:").trim().strip_prefix("exec ")?.rsplit_once(": ")
}

/// ``exec container process `/app`: Exec format error``, alone or as a field of a line of JSON; what it guesses stands before the program.
fn of_crun(line: &str) -> Option<(&str, &str)> {
    let rest = line.split_once("exec container process ")?.1;
    let rest = rest.strip_prefix("(missing dynamic library?) ").unwrap_or(rest);
    let quote = rest.chars().next().filter(|it| matches!(it, '\'' | '`'))?;
    let (program, why) = rest[1..].split_once(&format!("{quote}: "))?;
    Some((program, why))
}

/// A hook that does not come back.
pub(super) fn hook(case: &Case<'_>) -> Advice {
    let message = &case.wait.message;
    let name = message.strip_prefix("container ").and_then(|it| it.split(':').next()).unwrap_or_default().to_owned();
    let which = if case.wait.reason == "PreStopHookRunning" { "preStop" } else { "postStart" };
    let all = ["/spec/containers", "/spec/initContainers"];
    let spec = all.iter().flat_map(|it| items(case.object, it)).find(|it| it["name"] == *name);
    let hook = spec.and_then(|it| it.pointer(&format!("/lifecycle/{which}")));
    let what = hook.map(|it| match it["sleep"]["seconds"].as_i64() {
        Some(seconds) => format!("it sleeps {seconds} s"),
        None => format!("it is {}", shape(it)),
    });
    Advice::run(logs(case, &name, &["--tail=20"]))
        .headline(message.clone())
        .who("nobody, if it ends by itself; else whoever wrote it: that cannot be known from outside")
        .hints(what)
}

/// It took more of the node's disk than its own limits let it.
pub(super) fn evicted(case: &Case<'_>) -> Advice {
    Advice::run(case.edit())
        .headline(case.wait.message.trim().to_owned())
        .hint("raise the limit (`sizeLimit` of the volume, `limits.ephemeral-storage` of the container), or write less")
}

/// How often the API says it was started again.
fn restarts(case: &Case<'_>, name: &str) -> i64 {
    let lists = ["/status/initContainerStatuses", "/status/containerStatuses"];
    let mut statuses = lists.iter().flat_map(|it| items(case.object, it));
    let status = statuses.find(|it| it["name"] == name);
    status.and_then(|it| it["restartCount"].as_i64()).unwrap_or(0)
}

/// The container a failed Pod ended with, or that of the step.
fn ended(case: &Case<'_>) -> String {
    if case.root.step.is_some() {
        return case.container_name().to_owned();
    }
    let lists = ["/status/initContainerStatuses", "/status/containerStatuses"];
    let mut statuses = lists.iter().flat_map(|it| items(case.object, it));
    let failed = statuses.find(|it| it.pointer("/state/terminated/exitCode").is_some_and(|it| *it != 0));
    failed.map(|it| text(it, "/name").to_owned()).unwrap_or_default()
}

fn meaning(code: &str) -> Option<&'static str> {
    Some(match code {
        "126" => "126: the shell found the command and could not run it",
        "127" => "127: the shell did not find the command",
        "134" => "134: it aborted itself (SIGABRT)",
        "137" => "137: it was killed (SIGKILL): by a probe, by its grace period's end, or for memory",
        "139" => "139: it touched memory that is not its own (SIGSEGV)",
        "143" => "143: it was asked to stop (SIGTERM)",
        _ => return None,
    })
}

fn out_of_memory(case: &Case<'_>, name: &str) -> Advice {
    let containers = items(case.object, "/spec/containers").iter().chain(items(case.object, "/spec/initContainers"));
    let limit = containers.filter(|it| it["name"] == name).map(|it| text(it, "/resources/limits/memory")).next();
    let limit = limit.filter(|it| !it.is_empty());
    let doubled = limit.and_then(|it| it.parse::<corten_meta::Quantity>().ok()).map(|it| it.plus(it).to_string());
    let author = case.author.clone();
    let next = match (doubled, case.is_bare_pod()) {
        (Some(doubled), false) => {
            let (container, limits) = (format!("-c={name}"), format!("--limits=memory={doubled}"));
            kubectl(case.namespace, &["set", "resources", &author, &container, &limits])
        }
        _ => case.edit(),
    };
    let headline = match limit {
        Some(limit) => format!("container {name} is killed for using more memory than its limit of {limit}"),
        None => format!("container {name} is killed because memory ran out"),
    };
    Advice::run(next).headline(headline).hints(case.edit_hints())
}

pub(super) fn start(case: &Case<'_>) -> Advice {
    let name = case.container_name();
    let message = &case.wait.message;
    // The kubelet found no fault of the author's: only its image's parts on the node are left.
    if case.wait.actor == Actor::Operator {
        return images::damaged(case);
    }
    if let Some(advice) = image_volume(case) {
        return advice;
    }
    let command = command_of(message);
    let why = last_part(message.split("; back-off").next().unwrap_or(message).trim_end_matches(": unknown"));
    let headline = match command {
        Some(command) => format!("container {name} cannot start: its command {command:?}: {why}"),
        None => format!("container {name} cannot start: {why}"),
    };
    let hint = command.map(|command| {
        let of_spec = |field: &str| case.container().map(|it| items(it, field)).unwrap_or_default();
        let whose = if !of_spec("/command").is_empty() {
            "the spec's `command`"
        } else if of_spec("/args").first().is_some_and(|it| it == command) {
            "the spec's `args`: the image has no entry point, and its first word is what is run"
        } else {
            "the image's own entry point, as the spec has none"
        };
        format!("it comes from {whose}")
    });
    Advice::run(if images::has_earlier(case) {
        kubectl(case.namespace, &["rollout", "undo", &case.author])
    } else {
        case.edit()
    })
    .headline(headline)
    .hints(hint)
    .hints(case.edit_hints())
}

/// A runtime that knows no volumes that are images takes them for folders without a name.
fn image_volume(case: &Case<'_>) -> Option<Advice> {
    let message = &case.wait.message;
    if !["mkdir \"\"", "mkdir : ", "stat \"\"", "stat : "].iter().any(|it| message.contains(it)) {
        return None;
    }
    let mounts = items(case.container()?, "/volumeMounts");
    let is_mounted = |it: &&serde_json::Value| mounts.iter().any(|mount| mount["name"] == it["name"]);
    let volumes = items(case.object, "/spec/volumes").iter().filter(is_mounted);
    let name = volumes.filter(|it| it["image"].is_object()).map(|it| text(it, "/name")).next()?;
    let node = text(case.object, "/spec/nodeName");
    let command = kubectl("", &["get", "node", node, "-o", "jsonpath={.status.nodeInfo.containerRuntimeVersion}"]);
    Some(
        Advice::run(command)
            .headline(format!(
                "container {} cannot start: volume {name} is an image, and the runtime of node {node} mounts none",
                case.container_name()
            ))
            .who(format!(
                "whoever runs {node}: containerd 2.1 is the first that mounts images; or take another volume"
            )),
    )
}

/// The program a runtime could not run, as runc and crun put it.
pub(super) fn command_of(message: &str) -> Option<&str> {
    let within = |before: &str, after: char| message.split_once(before)?.1.split_once(after).map(|it| it.0);
    within("exec: \"", '"').or_else(|| within("executable file `", '`')).or_else(|| within("open executable: `", '`'))
}

pub(super) fn probe(case: &Case<'_>) -> Advice {
    let name = case.wait.message.strip_prefix("container ").and_then(|it| it.split(':').next()).unwrap_or_default();
    let containers = items(case.object, "/spec/containers").iter().chain(items(case.object, "/spec/initContainers"));
    let spec = containers.into_iter().find(|it| it["name"] == name);
    let kind = ["readiness", "liveness", "startup"]
        .into_iter()
        .find(|it| case.wait.message.contains(&format!("its {it} probe")));
    let probe = kind.and_then(|kind| Some((kind, spec?.get(format!("{kind}Probe"))?)));
    let hint = probe.map(|(kind, it)| {
        let every = it["periodSeconds"].as_i64().unwrap_or(10);
        let times = it["failureThreshold"].as_i64().unwrap_or(3);
        format!("its {kind} probe is {}, every {every} s, {times} failures count", shape(it))
    });
    if case.wait.message.contains("couldn't find port ") {
        let ports = spec.map(|it| items(it, "/ports")).unwrap_or_default().iter();
        let named: Vec<&str> = ports.map(|it| text(it, "/name")).filter(|it| !it.is_empty()).collect();
        let there = if named.is_empty() { "it names none".to_owned() } else { format!("it has {}", named.join(", ")) };
        return Advice::run(case.edit())
            .headline(case.wait.message.replace("couldn't find port", "there is no port"))
            .hint(format!("of named ports {there}"))
            .hints(hint)
            .hints(case.edit_hints());
    }
    Advice::run(logs(case, name, &["--tail=20"]))
        .headline(case.wait.message.clone())
        .hints(hint)
        .hints(
            (kind == Some("readiness"))
                .then(|| "until it passes, no Service sends it anything; it is not restarted".into()),
        )
        .hints(
            (kind == Some("liveness"))
                .then(|| "when as many fail in a row, the container is stopped and begun anew".into()),
        )
}

fn shape(probe: &serde_json::Value) -> String {
    if let Some(http) = probe.get("httpGet") {
        let port = http["port"].as_str().map_or_else(|| http["port"].to_string(), str::to_owned);
        let path = Some(text(http, "/path")).filter(|it| !it.is_empty()).unwrap_or("/");
        return format!("GET {path} at port {port}");
    }
    if let Some(tcp) = probe.get("tcpSocket") {
        return format!(
            "a connection to port {}",
            tcp["port"].as_str().map_or_else(|| tcp["port"].to_string(), str::to_owned)
        );
    }
    if let Some(grpc) = probe.get("grpc") {
        return format!("a gRPC health check at port {}", grpc["port"]);
    }
    let command = items(probe, "/exec/command").iter().filter_map(|it| it.as_str());
    format!("the command `{}`", command.collect::<Vec<_>>().join(" "))
}

pub(super) fn init(case: &Case<'_>) -> Advice {
    let name = case.container_name();
    Advice::run(logs(case, name, &["-f"]))
        .headline(format!("init container {name} has not ended, and nothing else starts before it has"))
        .who("nobody, if it ends by itself; else whoever wrote it: that cannot be known from outside")
}

pub(super) fn throttled(case: &Case<'_>) -> Advice {
    Advice::run(case.edit())
        .hints(case.edit_hints())
        .hint("raise or remove its limits.cpu: requests.cpu alone holds nobody back")
}

pub(super) fn gate(case: &Case<'_>) -> Advice {
    let gates = items(case.object, "/spec/readinessGates").iter().map(|it| text(it, "/conditionType"));
    let unmet =
        gates.filter(|gate| crate::why::fields::condition(case.object, gate).is_none_or(|it| it["status"] != "True"));
    let gate = unmet.collect::<Vec<_>>().join(", ");
    let patch = json!({"status": {"conditions": [{"type": gate, "status": "True"}]}}).to_string();
    Advice::run(kubectl(case.namespace, &["get", &case.at.subject, "-o", "jsonpath={.status.conditions}"]))
        .headline(format!("its containers are ready, and nobody has set its readiness gate {gate}"))
        .who(format!("the program that sets the condition {gate}: it is not part of the cluster"))
        .hint(format!(
            "by hand: {}",
            kubectl(case.namespace, &["patch", &case.at.subject, "--subresource=status", "-p", &patch])
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_name_the_program_that_the_kernel_does_not_take() {
        let (format, file) = ("exec format error", "no such file or directory");
        for (line, said) in [
            ("exec /app/serve: exec format error", Some(("/app/serve", format))),
            ("standard_init_linux.go: exec /x: no such file or directory", Some(("/x", file))),
            ("exec container process '/scr/x': Exec format error", Some(("/scr/x", format))),
            ("exec container process `/scr/x`: Exec format error", Some(("/scr/x", format))),
            (
                "exec container process (missing dynamic library?) '/scr/z': No such file or directory",
                Some(("/scr/z", file)),
            ),
            (
                r#"{"msg":"exec container process `/a b`: Exec format error","level":"error","time":"2026-11-20T12:00:00Z"}"#,
                Some(("/a b", format)),
            ),
            ("exec container process '/scr/x': Permission denied", None),
            ("cannot open /x: no such file or directory", None),
            ("exec container process", None),
            ("exec container process 'half", None),
        ] {
            assert_eq!(not_executable(line).map(|it| (it.0, it.1)), said, "{line}");
        }
    }
}
