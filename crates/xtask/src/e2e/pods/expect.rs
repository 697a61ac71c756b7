//! Does what is seen fit what is expected? Pure: an answer is `Ok`, or what differs in words.
//!
//! A map fits one that holds at least its keys, a list one in which each of its elements fits some element, a scalar what reads
//! the same; `null` asks for nothing to be there, and `…` in a text stands for anything.

use serde_json::{Value, json};

use super::case::{Glimpse, Text};

pub(super) type Verdict = Result<(), String>;

/// Does `…` in `pattern` leave a way to read the whole of `text`?
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('…') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(begin) else { return false };
    let parts: Vec<&str> = rest.split('…').collect();
    let (last, between) = parts.split_last().expect("a split gives at least one part");
    for part in between {
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    text.ends_with(last)
}

pub(super) fn text(expected: &Text, seen: &str) -> Verdict {
    let fine = match expected {
        Text::Whole(whole) => fits(whole.trim_end(), seen.trim_end()),
        Text::Lines(lines) => {
            let mut left = seen.lines();
            match lines.iter().find(|wanted| !left.any(|line| fits(&format!("…{wanted}…"), line))) {
                Some(missing) => return Err(format!("no line (in this order) holds {missing:?} in\n{seen}")),
                None => true,
            }
        }
    };
    if fine { Ok(()) } else { Err(format!("it is\n{seen}")) }
}

pub(super) fn value(at: &str, expected: &Value, seen: &Value) -> Verdict {
    match (expected, seen) {
        (Value::Null, Value::Null) => Ok(()),
        (Value::Null, seen) => Err(format!("{at} is {seen}, and should not be there")),
        (Value::Object(wanted), Value::Object(_)) => {
            wanted.iter().try_for_each(|(key, wanted)| value(&format!("{at}.{key}"), wanted, &seen[key.as_str()]))
        }
        (Value::Array(wanted), Value::Array(seen)) => wanted.iter().try_for_each(|wanted| {
            let verdicts: Vec<Verdict> = seen.iter().map(|it| value(at, wanted, it)).collect();
            if verdicts.iter().any(Result::is_ok) {
                return Ok(());
            }
            let reasons: Vec<String> = verdicts.into_iter().filter_map(Result::err).collect();
            Err(format!("{at} has nothing like {wanted}: {}", reasons.join("; ")))
        }),
        _ => {
            let (wanted, text) = (plain(expected), plain(seen));
            if fits(&wanted, &text) { Ok(()) } else { Err(format!("{at} is {seen}, not {wanted}")) }
        }
    }
}

/// `True`, `true` and `"True"` are one to YAML's readers.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") => {
            text.to_lowercase()
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// All that a glimpse says, of one version of the Pod and the events so far.
pub(super) fn glimpse(expected: &Glimpse, pod: &Value, events: &[Value]) -> Verdict {
    let status = &pod["status"];
    for (field, wanted) in [("phase", &expected.phase), ("reason", &expected.reason), ("message", &expected.message)] {
        if let Some(wanted) = wanted {
            value(field, &json!(wanted), &status[field])?;
        }
    }
    for (name, wanted) in expected.conditions.iter().flatten() {
        condition(name, wanted, status)?;
    }
    for (name, wanted) in expected.containers.iter().flatten() {
        container(name, wanted, status)?;
    }
    if let Some(wanted) = &expected.pod {
        value("pod", wanted, pod)?;
    }
    expected.events.iter().flatten().try_for_each(|it| event(it, events))
}

/// `True`, `False ContainersNotReady`, or any part of it.
fn condition(name: &str, wanted: &Value, status: &Value) -> Verdict {
    let mut all = status["conditions"].as_array().into_iter().flatten();
    let seen = all.find(|it| it["type"] == name).unwrap_or(&Value::Null);
    let at = format!("condition {name}");
    if wanted.is_object() || wanted.is_null() {
        return value(&at, wanted, seen);
    }
    let words = plain(wanted);
    let (state, reason) = words.split_once(' ').unwrap_or((&words, ""));
    value(&at, &json!(state), &seen["status"])?;
    if reason.is_empty() { Ok(()) } else { value(&format!("{at}.reason"), &json!(reason), &seen["reason"]) }
}

/// `running, ready, restarts 2`, or any part of its status.
fn container(name: &str, wanted: &Value, status: &Value) -> Verdict {
    let lists = ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"];
    let mut all = lists.iter().flat_map(|it| status[it].as_array()).flatten();
    let seen = all.find(|it| it["name"] == name).unwrap_or(&Value::Null);
    let at = format!("container {name}");
    let Value::String(phrases) = wanted else { return value(&at, wanted, seen) };
    phrases.split(", ").try_for_each(|it| phrase(&at, it, seen))
}

fn phrase(at: &str, phrase: &str, seen: &Value) -> Verdict {
    let words: Vec<&str> = phrase.split(' ').collect();
    let wanted = match words[..] {
        ["running"] => json!({"state": {"running": {}}}),
        ["waiting", reason] => json!({"state": {"waiting": {"reason": reason}}}),
        ["exited", code] => json!({"state": {"terminated": {"exitCode": code}}}),
        ["exited", code, reason] => json!({"state": {"terminated": {"exitCode": code, "reason": reason}}}),
        ["last", "exited", code] => json!({"lastState": {"terminated": {"exitCode": code}}}),
        ["last", "exited", code, reason] => {
            json!({"lastState": {"terminated": {"exitCode": code, "reason": reason}}})
        }
        ["ready"] => json!({"ready": true}),
        ["not", "ready"] => json!({"ready": false}),
        ["started"] => json!({"started": true}),
        ["not", "started"] => json!({"started": false}),
        ["restarts", number] => {
            let least = number.strip_suffix('+').and_then(|it| it.parse::<u64>().ok());
            let count = seen["restartCount"].as_u64();
            if least.is_some_and(|it| count >= Some(it)) {
                return Ok(());
            }
            json!({"restartCount": number})
        }
        _ => return Err(format!("{phrase:?} says nothing of a container")),
    };
    value(at, &wanted, seen)
}

/// `Warning BackOff Back-off restarting…`: type, reason, message.
fn event(wanted: &str, events: &[Value]) -> Verdict {
    let lines: Vec<String> = events.iter().map(event_line).collect();
    if lines.iter().any(|it| fits(wanted, it)) {
        return Ok(());
    }
    Err(format!("no event is {wanted:?} among\n{}", lines.join("\n")))
}

pub(super) fn event_line(event: &Value) -> String {
    let text = |field: &str| event[field].as_str().unwrap_or_default();
    format!("{} {} {}", text("type"), text("reason"), text("message"))
}

/// `Started a`, `Killing b`: reason and container of events, in this order.
pub(super) fn order(wanted: &[String], events: &[Value]) -> Verdict {
    let marks: Vec<String> = events.iter().map(mark).collect();
    let mut left = marks.iter();
    match wanted.iter().find(|wanted| !left.any(|it| it == *wanted)) {
        Some(missing) => Err(format!("{missing:?} did not come in this order in {marks:?}")),
        None => Ok(()),
    }
}

fn mark(event: &Value) -> String {
    let path = event["involvedObject"]["fieldPath"].as_str().unwrap_or_default();
    let container = path.split_once('{').and_then(|it| it.1.strip_suffix('}')).unwrap_or_default();
    format!("{} {container}", event["reason"].as_str().unwrap_or_default()).trim_end().to_owned()
}

#[cfg(test)]
mod tests;
