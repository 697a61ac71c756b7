//! Objects whose values are encrypted, over HTTP: under the right key, another one, and when the right one comes.

use std::{path::Path, sync::Arc};

use corten_access::Identity;
use corten_encryption::{EncryptedStore, Encryption};
use corten_store::{Store, backend::memory::Memory};
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::server;
use crate::{Config, Server};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const SECRET: &str = "/api/v1/namespaces/default/secrets/s";
const CREDENTIALS: [&str; 2] =
    ["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAI="];

struct File(TempDir);

impl File {
    /// Providers of `resources`: keys of AES-GCM by name and place among the credentials.
    fn of(resources: &str, keys: &[(&str, usize)]) -> Self {
        let file = Self(TempDir::new().expect("there is room"));
        file.says(resources, keys);
        file
    }

    fn says(&self, resources: &str, keys: &[(&str, usize)]) {
        let provider = |(name, at): &(&str, usize)| {
            format!("{{aesgcm: {{keys: [{{name: {name}, secret: {}}}]}}}}", CREDENTIALS[*at])
        };
        let providers: Vec<_> = keys.iter().map(provider).collect();
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [{resources}]\n  providers: [{}, {{identity: {{}}}}]\n",
            providers.join(", ")
        );
        std::fs::write(self.path(), text).expect("there is room");
    }

    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("encryption.yaml")
    }
}

/// A server over the same store and authority as others.
async fn start(store: &Arc<Memory>, pki: &Arc<corten_pki::Authority>, file: &Path) -> Server {
    let encryption = Encryption::load(file, true).await.expect("it is a configuration");
    let encrypted = EncryptedStore::new(store.clone(), encryption);
    let config = Config { pki: pki.clone(), encryption: Some(encrypted.clone()), ..server::config() };
    Server::start(Config { store: Arc::new(encrypted), ..config }).await.expect("it starts")
}

async fn ask(server: &Server, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let body = body.map(Value::to_string).unwrap_or_default().into();
    let who = Identity::new("admin", &["system:masters", "system:authenticated"]);
    let response = server.call(who, request.body(body).expect("a request")).await;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.expect("the body ends").to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into_owned().into()))
}

async fn stored(store: &Memory, key: &str) -> bytes::Bytes {
    store.get(key.as_bytes()).await.expect("the store is open").expect("it is there").value
}

fn secret(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "stringData": { "word": "marker" } })
}

#[tokio::test]
async fn a_write_that_changes_nothing_rotates_the_key() {
    let (store, pki) = (Arc::new(Memory::new()), server::config().pki);
    let file = File::of("secrets", &[("one", 0)]);
    let first = start(&store, &pki, &file.path()).await;
    let (code, created) = ask(&first, "POST", SECRETS, Some(&secret("s"))).await;
    assert_eq!(code, 201, "{created}");
    assert!(stored(&store, "/registry/secrets/default/s").await.starts_with(b"k8s:enc:aesgcm:v1:one:"));
    assert_eq!(ask(&first, "PUT", SECRET, Some(&created)).await, (200, created.clone()), "nothing is written");
    first.stop().await;

    file.says("secrets", &[("two", 1), ("one", 0)]);
    let second = start(&store, &pki, &file.path()).await;
    assert_eq!(ask(&second, "GET", SECRET, None).await, (200, created.clone()));
    let dry = format!("{SECRET}?dryRun=All");
    assert_eq!(ask(&second, "PUT", &dry, Some(&created)).await, (200, created.clone()));
    let (code, replaced) = ask(&second, "PUT", SECRET, Some(&created)).await;
    assert_eq!(code, 200, "{replaced}");
    assert!(stored(&store, "/registry/secrets/default/s").await.starts_with(b"k8s:enc:aesgcm:v1:two:"));
    let version = |it: &Value| it["metadata"]["resourceVersion"].as_str().and_then(|it| it.parse::<u64>().ok());
    assert!(version(&replaced) > version(&created), "{replaced}");
    let mut same = replaced.clone();
    same["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    assert_eq!(same, created, "nothing else has changed");
    assert_eq!(ask(&second, "PUT", SECRET, Some(&created)).await.0, 409, "whoever has the older version is too late");
    assert_eq!(ask(&second, "PUT", SECRET, Some(&replaced)).await, (200, replaced), "it is stored as it is to be");
    second.stop().await;
}

#[tokio::test]
async fn what_no_key_opens_is_deleted_by_who_asks_for_that_and_may() {
    const OPTION: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";
    let (store, pki) = (Arc::new(Memory::new()), server::config().pki);
    let file = File::of("secrets", &[("one", 0)]);
    let first = start(&store, &pki, &file.path()).await;
    let mut held = secret("s");
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    assert_eq!(ask(&first, "POST", SECRETS, Some(&held)).await.0, 201);
    first.stop().await;

    file.says("secrets", &[("one", 1)]);
    let second = start(&store, &pki, &file.path()).await;
    let rule = json!({ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "delete"] });
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let role = json!({ "metadata": { "name": "deleter" }, "rules": [rule] });
    assert_eq!(ask(&second, "POST", &format!("{rbac}/roles"), Some(&role)).await.0, 201);
    let group = "rbac.authorization.k8s.io";
    let binding = json!({ "metadata": { "name": "deleter" },
        "roleRef": { "apiGroup": group, "kind": "Role", "name": "deleter" },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": "jane" }] });
    assert_eq!(ask(&second, "POST", &format!("{rbac}/rolebindings"), Some(&binding)).await.0, 201);
    let body = json!({ OPTION: true }).to_string();
    let request = Request::delete(SECRET).header("content-type", "application/json").body(body.into());
    let answer = second.call(Identity::new("jane", &["system:authenticated"]), request.expect("a request")).await;
    assert_eq!(answer.status(), 403);
    let refused = answer.into_body().collect().await.expect("the body ends").to_bytes();
    let said = "secrets \"s\" is forbidden: not permitted to do \"unsafe-delete-ignore-read-errors\", reason: ";
    assert!(String::from_utf8_lossy(&refused).contains(&said.replace('"', "\\\"")), "{refused:?}");

    let with_option = |path: &str| format!("{path}?{OPTION}=true");
    assert_eq!(ask(&second, "DELETE", &format!("{}&gracePeriodSeconds=0", with_option(SECRET)), None).await.0, 422);
    assert_eq!(ask(&second, "DELETE", &with_option(SECRETS), None).await.0, 422);
    assert_eq!(ask(&second, "DELETE", &format!("{}&dryRun=All", with_option(SECRET)), None).await.0, 422);
    let body = json!({ OPTION: true });
    assert_eq!(ask(&second, "DELETE", &format!("{SECRET}?dryRun=All"), Some(&body)).await.0, 422);
    assert_eq!(ask(&second, "POST", SECRETS, Some(&secret("readable"))).await.0, 201);
    for name in ["readable", "none"] {
        let (code, refused) = ask(&second, "DELETE", &with_option(&format!("{SECRETS}/{name}")), None).await;
        assert!(
            code == 422 && refused["message"].to_string().contains("is exclusively used to delete corrupt"),
            "{refused}"
        );
    }
    let (code, gone) = ask(&second, "DELETE", &with_option(SECRET), None).await;
    assert_eq!((code, &gone["status"], &gone["details"]["name"]), (200, &json!("Success"), &json!("s")), "{gone}");
    assert_eq!(ask(&second, "GET", SECRET, None).await.0, 404);
    assert_eq!(ask(&second, "GET", SECRETS, None).await.1["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(ask(&second, "POST", SECRETS, Some(&secret("s"))).await.0, 201, "its name is free");
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_no_key_opens_is_an_error_and_all_else_works() {
    let (store, pki) = (Arc::new(Memory::new()), server::config().pki);
    let file = File::of("secrets", &[("one", 0)]);
    let first = start(&store, &pki, &file.path()).await;
    assert_eq!(ask(&first, "POST", SECRETS, Some(&secret("s"))).await.0, 201);
    first.stop().await;
    let before = stored(&store, "/registry/secrets/default/s").await;

    file.says("secrets", &[("one", 1)]);
    let second = start(&store, &pki, &file.path()).await;
    let reason = "Internal error occurred: unable to transform key \"/registry/secrets/default/s\": key \"one\" of aesgcm does not open it: cipher: message authentication failed";
    let all = "/api/v1/secrets";
    let delete = json!({});
    for (method, path, body) in [
        ("GET", SECRET, None),
        ("PUT", SECRET, Some(&secret("s"))),
        ("DELETE", SECRET, Some(&delete)),
        ("GET", SECRETS, None),
        ("GET", all, None),
        ("DELETE", SECRETS, Some(&delete)),
        ("GET", "/api/v1/secrets?watch=1", None),
        ("GET", "/api/v1/secrets?watch=1&resourceVersion=1", None),
    ] {
        let (code, answer) = ask(&second, method, path, body).await;
        let is_too_old = path.ends_with("=1&resourceVersion=1");
        if !is_too_old {
            assert_eq!((code, answer["message"].as_str()), (500, Some(reason)), "{method} {path}: {answer}");
        }
    }
    assert_eq!(ask(&second, "POST", SECRETS, Some(&secret("s"))).await.0, 409, "it is there");
    assert_eq!(ask(&second, "POST", SECRETS, Some(&secret("other"))).await.0, 201);
    assert_eq!(ask(&second, "GET", "/api/v1/namespaces/default/secrets/other", None).await.0, 200);
    assert_eq!(ask(&second, "GET", "/api/v1/namespaces/kube-system/secrets", None).await.0, 200);
    assert_eq!(ask(&second, "GET", "/api/v1/configmaps", None).await.0, 200);
    assert_eq!(stored(&store, "/registry/secrets/default/s").await, before, "nothing has touched it");
    let (code, ready) = ask(&second, "GET", "/readyz", None).await;
    let ready = ready.as_str().expect("text");
    assert_eq!(code, 500);
    let failed = ready.split("[-]informer-sync failed: 1 of secrets cannot be read since ").nth(1);
    let (since, why) = failed.and_then(|it| it.split_once(": ")).unwrap_or_else(|| panic!("{ready}"));
    assert!(since.parse::<corten_meta::Time>().is_ok() && why.starts_with("unable to transform key"), "{ready}");

    // The right key comes; the loops need no restart.
    file.says("secrets", &[("two", 1), ("one", 0)]);
    let end = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
    let mut answer = ask(&second, "GET", SECRET, None).await;
    while answer.0 != 200 && tokio::time::Instant::now() < end {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        answer = ask(&second, "GET", SECRET, None).await;
    }
    assert_eq!(answer.0, 200, "{}", answer.1);
    assert_eq!(ask(&second, "GET", "/readyz", None).await.0, 200);
    assert_eq!(ask(&second, "GET", all, None).await.1["items"].as_array().map(Vec::len), Some(2));
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_refused_is_told_by_name_and_makes_nothing_unready() {
    let (store, pki) = (Arc::new(Memory::new()), server::config().pki);
    let file = File::of("secrets", &[("one", 0)]);
    let server = start(&store, &pki, &file.path()).await;
    let said = async |code: u16| {
        let end = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
        let mut answer = ask(&server, "GET", "/readyz/configuration-files", None).await;
        while answer.0 != code && tokio::time::Instant::now() < end {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            answer = ask(&server, "GET", "/readyz/configuration-files", None).await;
        }
        assert_eq!(answer.0, code, "{}", answer.1);
        answer.1.as_str().map(str::to_owned).expect("text")
    };
    assert_eq!(said(200).await, "ok");
    std::fs::write(file.path(), "kind:\n- nonsense").expect("there is room");
    let reason = said(500).await;
    let path = file.path();
    let begin = "internal server error: the encryption configuration stays as it was: ";
    let begin = format!("{begin}{} has been refused since 20", path.display());
    assert!(reason.starts_with(&begin) && reason.lines().count() == 1, "{reason}");
    assert_eq!(ask(&server, "GET", "/readyz", None).await.0, 200);
    file.says("secrets", &[("one", 0)]);
    assert_eq!(said(200).await, "ok", "it is what it was");
    server.stop().await;
}

/// It shows at once, and not at the next start, when nobody can read what is stored.
#[tokio::test(start_paused = true)]
async fn another_key_under_a_stored_name_is_refused() {
    let (store, pki) = (Arc::new(Memory::new()), server::config().pki);
    let file = File::of("secrets", &[("one", 0)]);
    let first = start(&store, &pki, &file.path()).await;
    assert_eq!(ask(&first, "POST", SECRETS, Some(&secret("s"))).await.0, 201);
    file.says("secrets", &[("one", 1)]);
    let end = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
    let mut answer = ask(&first, "GET", "/readyz/configuration-files", None).await;
    while answer.0 == 200 && tokio::time::Instant::now() < end {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        answer = ask(&first, "GET", "/readyz/configuration-files", None).await;
    }
    let said = answer.1.as_str().expect("text");
    for part in ["stays as it was", "key \"one\" of aesgcm opens none of the 1 of secrets under its name"] {
        assert!(answer.0 == 500 && said.contains(part), "{said}");
    }
    let (_, metrics) = ask(&first, "GET", "/metrics", None).await;
    let failure = "apiserver_encryption_config_controller_automatic_reloads_total{status=\"failure\"} 1";
    assert!(metrics.as_str().is_some_and(|it| it.contains(failure)), "{metrics}");
    // What is written meanwhile is under the key that is in use, and that is the one of the next start, too.
    assert_eq!(ask(&first, "POST", SECRETS, Some(&secret("other"))).await.0, 201);
    first.stop().await;
    file.says("secrets", &[("two", 1), ("one", 0)]);
    let second = start(&store, &pki, &file.path()).await;
    let (code, all) = ask(&second, "GET", SECRETS, None).await;
    assert_eq!((code, all["items"].as_array().map(Vec::len)), (200, Some(2)), "{all}");
    second.stop().await;
}

/// What is told of all together is told of each by itself, and of no other.
#[tokio::test(start_paused = true)]
async fn a_key_that_is_gone_is_told_of_what_is_stored_under_it() {
    let (store, pki) = (Arc::new(Memory::new()), server::config().pki);
    let file = File::of("secrets", &[("two", 1), ("one", 0)]);
    let first = start(&store, &pki, &file.path()).await;
    assert_eq!(ask(&first, "POST", SECRETS, Some(&secret("s"))).await.0, 201);
    first.stop().await;
    file.says("secrets", &[("one", 0), ("two", 1)]);
    let server = start(&store, &pki, &file.path()).await;
    assert_eq!(ask(&server, "POST", SECRETS, Some(&secret("other"))).await.0, 201);
    let said = async |name: &str| {
        let journal = format!("/apis/corten.dev/v1/namespaces/default/journals/secrets.{name}");
        let (code, journal) = ask(&server, "GET", &journal, None).await;
        assert_eq!(code, 200, "{journal}");
        let decisions = journal["decisions"].as_array().into_iter().flatten();
        let waits = decisions.filter(|it| it["by"] == "encryption").flat_map(|it| it["waits"].as_array().cloned());
        waits.flatten().map(|it| format!("{}: {}", it["reason"], it["message"])).collect::<Vec<_>>()
    };
    let nothing = Vec::<String>::new();
    assert_eq!((&said("s").await, &said("other").await), (&nothing, &nothing));

    file.says("secrets", &[("one", 0)]);
    let end = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
    while said("s").await.is_empty() && tokio::time::Instant::now() < end {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let told = said("s").await.join("\n");
    assert!(told.starts_with("\"KeyStillUsed\": \"it is stored under key \\\"two\\\" of aesgcm, which"), "{told}");
    assert_eq!(said("other").await, nothing);
    let (code, all) = ask(&server, "GET", "/apis/corten.dev/v1/journals", None).await;
    assert!(code == 200 && !all.to_string().contains("KeyStillUsed"), "{all}");
    let (_, stored) = ask(&server, "GET", SECRET, None).await;
    assert_eq!(ask(&server, "PUT", SECRET, Some(&stored)).await.0, 200);
    assert_eq!(said("s").await, nothing, "it is stored anew");
    server.stop().await;
}

#[tokio::test]
async fn a_start_with_a_wrong_key_for_everything_overwrites_nothing_and_admits_nothing() {
    let (store, pki) = (Arc::new(Memory::new()), server::config().pki);
    let file = File::of("'*.*'", &[("one", 0)]);
    start(&store, &pki, &file.path()).await.stop().await;
    let all = corten_store::Range::prefix("/registry/");
    let before = store.range(all.clone(), None, 0).await.expect("the store is open").entries;
    // What is given away is no object.
    let objects: Vec<_> = before.iter().filter(|it| !it.key.starts_with(b"/registry/ranges/")).collect();
    assert!(objects.len() > 30 && objects.iter().all(|it| it.value.starts_with(b"k8s:enc:aesgcm:v1:one:")));
    file.says("'*.*'", &[("one", 1)]);
    let second = start(&store, &pki, &file.path()).await;
    let (code, answer) = ask(&second, "POST", SECRETS, Some(&secret("s"))).await;
    let message = answer["message"].as_str().expect("text");
    assert_eq!(code, 500, "{message}");
    assert!(message.contains("unable to transform key \"/registry/namespaces/default\": key \"one\""), "{message}");
    second.stop().await;
    let after = store.range(all, None, 0).await.expect("the store is open").entries;
    assert_eq!(after, before);
}

#[tokio::test]
async fn rules_that_cannot_be_read_are_not_passed_over() {
    let (store, pki) = (Arc::new(Memory::new()), server::config().pki);
    let file = File::of("limitranges", &[("one", 0)]);
    let first = start(&store, &pki, &file.path()).await;
    let path = "/api/v1/namespaces/default/limitranges";
    let range = json!({ "metadata": { "name": "r" }, "spec": { "limits": [] } });
    assert_eq!(ask(&first, "POST", path, Some(&range)).await.0, 201);
    first.stop().await;
    file.says("limitranges", &[("one", 1)]);
    let second = start(&store, &pki, &file.path()).await;
    let (code, answer) = ask(&second, "POST", SECRETS, Some(&secret("s"))).await;
    assert_eq!(code, 403);
    let message = answer["message"].as_str().expect("text");
    assert!(message.starts_with("secrets \"s\" is forbidden: not yet ready to handle request: unable to transform key \"/registry/limitranges/default/r\""), "{message}");
    assert_eq!(ask(&second, "POST", "/api/v1/namespaces/kube-system/secrets", Some(&secret("s"))).await.0, 201);
    second.stop().await;
}
