//! Who is let through where: every kind's paths, with every method, in many spellings, asked by who has no rights, rights in
//! one namespace and all rights, against `testdata/routes.txt`.

use std::{collections::BTreeMap, fmt::Write};

use bytes::Bytes;
use corten_access::Identity;
use corten_cacher::body::Response;
use corten_kinds::{KINDS, Kind, Subresource};
use http::Request;
use http_body_util::BodyExt;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use serde_json::json;

use super::server;
use crate::Server;

const TABLE: &str = include_str!("../../testdata/routes.txt");
/// HEAD has no line of its own: it is answered as GET is.
const METHODS: [(&str, &str); 6] =
    [("GET", ""), ("GET", "&watch=true"), ("POST", ""), ("PUT", ""), ("PATCH", ""), ("DELETE", "")];
const USERS: [&str; 3] = ["nobody", "local", "boss"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Forbidden,
    NoSuchPath,
    NoSuchMethod,
    /// A path with an encoded slash.
    Unreadable,
    /// The request reached its verb.
    Through,
}

/// One line of the table.
struct Row {
    scope: &'static str,
    path: &'static str,
    /// For each of [`USERS`].
    verdicts: [Verdict; 3],
}

fn rows() -> Vec<Row> {
    let lines = TABLE.lines().filter(|it| !it.starts_with('#') && !it.is_empty());
    let row = |line: &'static str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let verdict = |word: &str| match word {
            "403" => Verdict::Forbidden,
            "404" => Verdict::NoSuchPath,
            "yes" => Verdict::Through,
            other => panic!("{other} in {line}"),
        };
        Row { scope: words[0], path: words[1], verdicts: [2, 3, 4].map(|it| verdict(words[it])) }
    };
    lines.map(row).collect()
}

impl Row {
    fn is_about(&self, kind: &Kind) -> bool {
        let is_proxied = self.path.contains("/proxy");
        match self.scope {
            _ if is_proxied && !kind.has(Subresource::Proxy) => false,
            "namespaced" => kind.resource.namespaced,
            "namespace" => kind.resource.plural == "namespaces",
            _ => !kind.resource.namespaced,
        }
    }

    /// The paths of this row for one kind: one for each subresource where the row is about those.
    fn paths(&self, kind: &Kind) -> Vec<String> {
        let path = format!("{}{}", kind.resource.group_path(), self.path.replace("KINDS", &kind.resource.plural));
        if !path.contains("SUB") {
            return vec![path];
        }
        // Behind `/proxy`, more is welcome: that has a row of its own.
        let ends = |it: &&Subresource| **it != Subresource::Proxy || self.path.ends_with("SUB");
        kind.subresources.iter().filter(ends).map(|it| path.replace("SUB", it.as_str())).collect()
    }

    fn is_subresource(&self) -> bool {
        self.path.ends_with("SUB") || self.path.contains("/proxy")
    }

    /// Does the kind have this verb here, by its own row of the table of kinds?
    fn serves(&self, kind: &Kind, method: &str, verb: &str) -> bool {
        let is_read = method == "GET";
        if self.is_subresource() {
            return verb != "watch";
        }
        let fits = match verb {
            "watch" => is_read,
            "list" => self.is_collection(),
            // Over all namespaces one can only read.
            "create" | "deletecollection" => {
                self.is_collection() && (!kind.resource.namespaced || self.path.contains("/namespaces/"))
            }
            _ => !self.is_collection(),
        };
        fits && kind.verbs.iter().any(|it| it.as_str() == verb)
    }

    /// Does any method do anything here?
    fn exists(&self, kind: &Kind) -> bool {
        METHODS.iter().any(|(method, query)| self.serves(kind, method, verb(self, method, query)))
    }

    /// What becomes of a request with a plain path.
    fn expected(&self, kind: &Kind, method: &str, query: &str, verdict: Verdict) -> Verdict {
        match verdict {
            _ if !self.exists(kind) => Verdict::NoSuchPath,
            Verdict::Through if !self.serves(kind, method, verb(self, method, query)) => Verdict::NoSuchMethod,
            verdict => verdict,
        }
    }

    fn is_collection(&self) -> bool {
        self.path.ends_with("KINDS")
    }
}

/// As RBAC names it, reckoned apart from the code under test.
fn verb(row: &Row, method: &str, query: &str) -> &'static str {
    match method {
        _ if row.path.starts_with("/watch") => "watch",
        "GET" if row.is_collection() && query.contains("watch") => "watch",
        "GET" if row.is_collection() => "list",
        "GET" => "get",
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" if row.is_collection() => "deletecollection",
        _ => "delete",
    }
}

/// What a spelling of a path makes of a verdict.
type Spelling = (&'static str, fn(&str) -> String, fn(Verdict) -> Verdict);

fn percent(byte: u8) -> String {
    format!("%{byte:02X}")
}

fn each_segment(path: &str, spell: impl Fn(&str) -> String) -> String {
    path.split('/').map(|it| if it.is_empty() { String::new() } else { spell(it) }).collect::<Vec<_>>().join("/")
}

const SPELLINGS: &[Spelling] = &[
    ("plain", str::to_owned, |it| it),
    ("a slash at the end", |it| format!("{it}/"), |it| it),
    ("all encoded", |it| each_segment(it, |name| name.bytes().map(percent).collect()), |it| it),
    (
        "in small letters",
        |it| each_segment(it, |name| percent(name.as_bytes()[0]).to_lowercase() + &name[1..]),
        |it| it,
    ),
    (
        "the last letters",
        |it| {
            each_segment(it, |name| {
                let (head, last) = name.split_at(name.len() - 1);
                head.to_owned() + &percent(last.as_bytes()[0])
            })
        },
        |it| it,
    ),
    // No resource: allowed and looked up as a path, and there is none.
    (
        "an empty segment",
        |it| it.replacen("/namespaces/", "/namespaces//", 1).replacen("/v", "//v", 1),
        |_| Verdict::Forbidden,
    ),
    ("an empty beginning", |it| format!("/{it}"), |_| Verdict::Forbidden),
    ("an encoded slash", |it| it.replacen("/v", "%2fv", 1), |_| Verdict::Unreadable),
];

/// What verbs say that were reached, of a request without a body about an object that is not there.
const REACHED: [(u16, &str); 3] = [
    (404, "not found"),
    (400, "the object provided is unrecognized (must be of type"),
    (503, "this server was started without a way to reach kubelets"),
];

async fn answer(server: &Server, user: &str, method: &str, path: &str) -> Response {
    let request = Request::builder().method(method).uri(path).header("Content-Type", "application/json");
    server.call(Identity::new(user, &[]), request.body(Bytes::new()).expect("a request")).await
}

/// # Errors
/// An answer that says neither that the verb was reached nor why not.
async fn ask(server: &Server, user: &str, method: &str, path: &str) -> Result<Verdict, String> {
    let response = answer(server, user, method, path).await;
    let code = response.status().as_u16();
    if matches!(code, 200..300 | 409 | 415 | 422) {
        return Ok(Verdict::Through);
    }
    let body = response.into_body().collect().await.expect("a whole body").to_bytes();
    let text = String::from_utf8_lossy(&body);
    Ok(match code {
        403 if text.contains("forbidden: User") => Verdict::Forbidden,
        404 if text.contains("the server could not find the requested resource") => Verdict::NoSuchPath,
        405 => Verdict::NoSuchMethod,
        400 if text.contains("encoded slash") => Verdict::Unreadable,
        _ if REACHED.iter().any(|it| it.0 == code && text.contains(it.1)) => Verdict::Through,
        _ => return Err(format!("{code} {text}")),
    })
}

async fn create(server: &Server, path: &str, body: serde_json::Value) {
    let boss = Identity::new("kubernetes-admin", &["system:masters"]);
    let request = Request::builder().method("POST").uri(path).header("Content-Type", "application/json");
    let response = server.call(boss, request.body(Bytes::from(body.to_string())).expect("a request")).await;
    assert_eq!(response.status(), 201, "{path}");
}

async fn bind(server: &Server, path: &str, kind: &str, role: &str, user: &str) {
    let body = json!({
        "metadata": { "name": format!("{user}-may") },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
    });
    create(server, &format!("/apis/rbac.authorization.k8s.io/v1{path}"), body).await;
}

async fn namespace(server: &Server, name: &str) {
    let body = json!({ "metadata": { "name": name, "labels": { "sings": name } } });
    create(server, "/api/v1/namespaces", body).await;
}

async fn prepared() -> Server {
    let server = server::started().await;
    for name in ["a", "b"] {
        namespace(&server, name).await;
    }
    bind(&server, "/namespaces/a/rolebindings", "ClusterRole", "cluster-admin", "local").await;
    bind(&server, "/clusterrolebindings", "ClusterRole", "cluster-admin", "boss").await;
    server
}

#[tokio::test(start_paused = true)]
async fn rights_reach_what_the_table_says() {
    let server = prepared().await;
    let rows = rows();
    let mut game =
        Game { server, random: SmallRng::seed_from_u64(0x5eed), failures: String::new(), played: BTreeMap::new() };
    for kind in KINDS.iter() {
        for row in rows.iter().filter(|it| it.is_about(kind)) {
            for path in row.paths(kind) {
                game.play(kind, row, &path).await;
            }
        }
    }
    game.server.stop().await;
    assert!(game.failures.is_empty(), "\n{}", game.failures);
    let n_ways = METHODS.len() * USERS.len() * SPELLINGS.len();
    assert_eq!(game.played.len(), n_ways, "each spelling by each user with each method");
    assert!(game.played.values().all(|it| *it > 50), "{:?}", game.played);
}

struct Game {
    server: Server,
    random: SmallRng,
    failures: String,
    /// How often each user asked with each method and query in each spelling.
    played: BTreeMap<(&'static str, &'static str, &'static str, &'static str), usize>,
}

impl Game {
    /// Asks for one path with each method: plainly, and in one other spelling that is drawn.
    async fn play(&mut self, kind: &Kind, row: &Row, path: &str) {
        for (method, query) in METHODS {
            for (user, verdict) in USERS.into_iter().zip(row.verdicts) {
                let plain = row.expected(kind, method, query, verdict);
                let other = SPELLINGS[self.random.random_range(1..SPELLINGS.len())];
                for (how, spell, turn) in [SPELLINGS[0], other] {
                    *self.played.entry((user, method, query, how)).or_default() += 1;
                    let asked = format!("{}?dryRun=All{query}", spell(path));
                    let expected = match turn(plain) {
                        // Who may ask for every path is told that there is none.
                        Verdict::Forbidden if user == "boss" => Verdict::NoSuchPath,
                        expected => expected,
                    };
                    let found = ask(&self.server, user, method, &asked).await;
                    // Which methods a subresource has, tests of the routes themselves know.
                    let is_refused_later = row.is_subresource() && found == Ok(Verdict::NoSuchMethod);
                    if found != Ok(expected) && !(is_refused_later && expected == Verdict::Through) {
                        self.fails(&format!("{user}: {method} {asked} ({how}): {found:?}, not {expected:?}"));
                    }
                    if method == "GET" {
                        self.play_head(user, &asked).await;
                    }
                }
            }
        }
    }

    async fn play_head(&mut self, user: &str, path: &str) {
        let [get, head] =
            [answer(&self.server, user, "GET", path).await, answer(&self.server, user, "HEAD", path).await];
        if get.status() != head.status() {
            self.fails(&format!("{user}: HEAD {path}: {}, not {}", head.status(), get.status()));
        }
    }

    fn fails(&mut self, how: &str) {
        writeln!(self.failures, "{how}").expect("memory is there");
    }
}

/// Random paths out of words that mean something, by who has rights in one namespace: nothing of elsewhere is ever shown.
#[tokio::test(start_paused = true)]
async fn no_path_leads_out_of_the_namespace() {
    const WORDS: [&str; 24] = [
        "api",
        "apis",
        "v1",
        "apps",
        "rbac.authorization.k8s.io",
        "corten.dev",
        "watch",
        "namespaces",
        "a",
        "b",
        "secrets",
        "configmaps",
        "nodes",
        "pods",
        "namespaces",
        "canary",
        "mine",
        "status",
        "finalize",
        "proxy",
        "journals",
        "secrets.canary",
        "",
        "..",
    ];
    const QUERIES: [&str; 6] = [
        "",
        "watch=1&timeoutSeconds=1",
        "fieldSelector=metadata.name=canary",
        "fieldSelector=metadata.namespace=b",
        "limit=1",
        "watch=0",
    ];
    let server = prepared().await;
    namespace(&server, "canary").await;
    for (namespace, name) in [("a", "mine"), ("a", "other"), ("b", "canary"), ("canary", "canary")] {
        for plural in ["secrets", "configmaps"] {
            create(
                &server,
                &format!("/api/v1/namespaces/{namespace}/{plural}"),
                json!({ "metadata": { "name": name, "labels": { "sings": name } } }),
            )
            .await;
        }
    }
    // Who may read one Secret alone, however it is asked for.
    let role = json!({ "metadata": { "name": "one" }, "rules": [{
        "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"], "verbs": ["get", "list", "watch"] }] });
    create(&server, "/apis/rbac.authorization.k8s.io/v1/namespaces/a/roles", role).await;
    bind(&server, "/namespaces/a/rolebindings", "Role", "one", "reader").await;
    let users: [(&str, &[&str]); 2] = [("local", &["canary"]), ("reader", &["canary", "other"])];
    let mut random = SmallRng::seed_from_u64(0x5eed);
    let mut n_through = 0_usize;
    for _ in 0..20_000 {
        let path = hostile_path(&mut random, &WORDS);
        let query = QUERIES[random.random_range(0..QUERIES.len())];
        let Ok(request) = Request::builder().uri(format!("{path}?{query}")).body(Bytes::new()) else { continue };
        let (user, foreign) = users[random.random_range(0..users.len())];
        let response = server.call(Identity::new(user, &[]), request).await;
        if response.status() != 200 {
            continue;
        }
        n_through += 1;
        let body = response.into_body().collect().await.expect("a whole body").to_bytes();
        let text = String::from_utf8_lossy(&body);
        let shown = foreign.iter().find(|it| text.contains(&format!("\"sings\":\"{it}\"")));
        assert_eq!(shown, None, "{user} {path}?{query}");
    }
    server.stop().await;
    assert!(n_through > 100, "{n_through}");
}

/// Mostly what begins as a path of the API does, and then words in any order; some letters encoded.
fn hostile_path(random: &mut impl Rng, words: &[&str]) -> String {
    let mut path = String::new();
    let beginnings: [&[&str]; 4] = [&["api", "v1"], &["api", "v1", "namespaces", "a"], &["api", "v1", "watch"], &[]];
    let beginning = beginnings[random.random_range(0..beginnings.len())];
    let n_more = random.random_range(0..5);
    let more = (0..n_more).map(|_| words[random.random_range(0..words.len())]);
    for word in beginning.iter().copied().chain(more).collect::<Vec<_>>() {
        path.push('/');
        for byte in word.bytes() {
            if random.random_ratio(1, 12) {
                path.push_str(&percent(byte));
            } else {
                path.push(char::from(byte));
            }
        }
    }
    if path.is_empty() { "/".to_owned() } else { path }
}
