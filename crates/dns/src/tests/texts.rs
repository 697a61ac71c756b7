//! Clusters as text, and what they answer.
//!
//! ```text
//! namespace shop
//! service shop/web 10.96.0.7 http:80/TCP
//! service shop/out -> example.com
//! slice shop/db-1 of db http:80/TCP | 10.244.0.2=db-0 10.244.0.3 !10.244.0.4
//! ? A web.shop.svc.cluster.local
//!   NOERROR qr aa rd ra
//!   web.shop.svc.cluster.local. 30 A 10.96.0.7
//! ```
//! A slice's endpoint has a hostname behind `=`; before one that is not ready stands `!`. A question may be followed by
//! `udp` (a client without EDNS), `edns=SIZE` or `class=N`. `UPDATE=1 cargo test` rewrites the indented lines.

use std::{fmt::Write as _, fs};

use serde_json::{Value, json};

use super::{number_of, query, shown, with_edns};
use crate::{Change, Keeper, Name, Outcome, TCP_BYTES_MAX, answer, parse};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/answers");

#[test]
fn clusters_answer_as_written() {
    let mut n_files = 0;
    for entry in fs::read_dir(FOLDER).expect("the folder is there") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("a text");
        let actual = play(&text);
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, &actual).expect("the text is written");
        } else {
            for (idx, (found, expected)) in actual.lines().zip(text.lines()).enumerate() {
                assert_eq!(found, expected, "{}:{}", path.display(), idx + 1);
            }
            assert_eq!(actual.lines().count(), text.lines().count(), "{}", path.display());
        }
        n_files += 1;
    }
    assert!(n_files > 2, "the folder holds the texts");
}

fn play(text: &str) -> String {
    let mut keeper = Keeper::new(super::name("cluster.local"));
    let (mut actual, mut turn) = (String::new(), 0);
    for line in text.lines().filter(|it| !it.starts_with(' ')) {
        let _ = writeln!(actual, "{line}");
        if let Some(question) = line.strip_prefix("? ") {
            for line in ask(&keeper, question, turn) {
                let _ = writeln!(actual, "  {line}");
            }
            turn += 1;
        } else if !line.is_empty() && !line.starts_with('#') {
            keeper.apply(change(line));
        }
    }
    actual
}

fn ask(keeper: &Keeper, text: &str, turn: usize) -> Vec<String> {
    let mut words = text.split(' ');
    let (Some(qtype), Some(name)) = (words.next(), words.next()) else { panic!("{text}: a type and a name") };
    let mut packet = query(7, name, number_of(qtype));
    let mut limit = Some(TCP_BYTES_MAX);
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("udp", _) => limit = None,
            ("edns", size) => {
                packet = with_edns(packet, size.parse().expect("a size"), false);
                limit = None;
            }
            ("class", number) => {
                let at = packet.len() - 1;
                packet[at] = number.parse().expect("a number");
            }
            other => panic!("{other:?}"),
        }
    }
    let query = parse(&packet).expect("a query");
    let mut out = Vec::new();
    let limit = limit.unwrap_or_else(|| query.udp_limit());
    match answer(&query, &keeper.zone(), turn, limit, &mut out) {
        Outcome::Answered => {
            assert!(out.len() <= limit);
            let asked_length = 12 + name.trim_end_matches('.').len() + 2 + 4;
            assert_eq!(out[12..asked_length], packet[12..asked_length], "the question comes back as it was written");
            let lines = shown(&out);
            // Of many only the number is of interest.
            if lines.len() > 12 { vec![lines[0].clone(), format!("{} records", lines.len() - 1)] } else { lines }
        }
        Outcome::Elsewhere => vec!["elsewhere".into()],
        Outcome::Alias(names) => {
            vec![format!("alias {}", names.iter().map(Name::to_string).collect::<Vec<_>>().join(" "))]
        }
    }
}

fn change(line: &str) -> Change {
    let words: Vec<&str> = line.split(' ').collect();
    let metadata = |path: &str| {
        let (namespace, name) = path.split_once('/').expect("namespace/name");
        json!({ "namespace": namespace, "name": name })
    };
    match words[..] {
        ["namespace", name] => Change::Namespace(name.into()),
        ["-", "namespace", name] => Change::NamespaceGone(name.into()),
        ["service", path, "->", target] => {
            let service =
                json!({ "metadata": metadata(path), "spec": { "type": "ExternalName", "externalName": target } });
            Change::Service(serde_json::from_value(service).expect("a service"))
        }
        ["service", path, address, ref named @ ..] => {
            let all: Vec<&str> = address.split(',').collect();
            let spec = json!({ "type": "ClusterIP", "clusterIP": all[0], "clusterIPs": all, "ports": ports(named) });
            let service = json!({ "metadata": metadata(path), "spec": spec });
            Change::Service(serde_json::from_value(service).expect("a service"))
        }
        ["-", "service", path] => Change::ServiceGone(corten_meta::Key::parse(path)),
        ["slice", path, "of", service, ref rest @ ..] => {
            let bar = rest.iter().position(|it| *it == "|").expect("a bar");
            let mut metadata = metadata(path);
            metadata["labels"] = json!({ "kubernetes.io/service-name": service });
            let endpoints: Vec<Value> = rest[bar + 1..].iter().map(|it| endpoint(it)).collect();
            let kind = if line.contains("::") { "IPv6" } else { "IPv4" };
            let slice = json!({ "metadata": metadata, "addressType": kind, "endpoints": endpoints, "ports": ports(&rest[..bar]) });
            Change::Slice(serde_json::from_value(slice).expect("a slice"))
        }
        ["-", "slice", path] => Change::SliceGone(corten_meta::Key::parse(path)),
        ["complete"] => Change::Complete,
        _ => panic!("{line}"),
    }
}

fn ports(words: &[&str]) -> Vec<Value> {
    let port = |word: &&str| {
        let (name, rest) = word.split_once(':').expect("name:port/protocol");
        let (number, protocol) = rest.split_once('/').expect("port/protocol");
        json!({ "name": name, "port": number.parse::<u16>().expect("a port"), "protocol": protocol })
    };
    words.iter().map(port).collect()
}

fn endpoint(word: &str) -> Value {
    let ready = !word.starts_with('!');
    let (address, hostname) =
        word.trim_start_matches('!').split_once('=').unwrap_or((word.trim_start_matches('!'), ""));
    json!({ "addresses": [address], "hostname": hostname, "conditions": { "ready": ready } })
}
