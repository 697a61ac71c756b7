use std::time::Duration;

use corten_meta::Time;
use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};

use super::{
    PATIENCE, access,
    hook::{Hook, WebhookAnswer, status},
    until, write,
};
use crate::{
    Access, Attributes, AuthorizationOptions, AuthorizationSettings, Decision, Denial, Identity, ResourceOrPath,
};

const HEAD: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n";
const REST: &str = "- {type: Node, name: node}\n- {type: RBAC, name: rbac}\n";

fn webhook(hook: &Hook, policy: &str, timeout: &str, conditions: &[&str]) -> String {
    let file = hook.kubeconfig.display();
    let conditions: Vec<Value> = conditions.iter().map(|it| json!({ "expression": it })).collect();
    let conditions = Value::from(conditions);
    format!(
        "- type: Webhook\n  name: hook\n  webhook:\n    timeout: {timeout}\n    subjectAccessReviewVersion: v1\n    matchConditionSubjectAccessReviewVersion: v1\n    failurePolicy: {policy}\n    connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {file}}}\n    matchConditions: {conditions}\n"
    )
}

fn settings(authorizers: &str) -> AuthorizationSettings {
    AuthorizationSettings::parse(format!("{HEAD}{authorizers}")).expect("a good configuration")
}

fn jane() -> Identity {
    Identity { uid: "u1".into(), ..Identity::new("jane", &["dev"]) }
}

async fn asks(access: &Access, who: &Identity, name: &str) -> Decision {
    let target = ResourceOrPath::Resource { group: "", resource: "pods", subresource: "", namespace: "default", name };
    access.decide(&Attributes { verb: "get", target, version: "v1", ..Attributes::of(who) }).await
}

fn denied(decision: &Decision) -> &Denial {
    match decision {
        Decision::Denied(denial) => denial,
        Decision::Allowed(_) => panic!("it is allowed"),
    }
}

fn by_name(review: &Value) -> WebhookAnswer {
    let name = review["spec"]["resourceAttributes"]["name"].as_str().unwrap_or_default();
    status(&match name {
        "mine" => json!({ "allowed": true, "reason": "it is hers" }),
        "never" => json!({ "allowed": false, "denied": true, "reason": "nobody may" }),
        "both" => json!({ "allowed": true, "denied": true }),
        _ => json!({ "allowed": false, "reason": "no idea" }),
    })
}

#[tokio::test]
async fn a_webhook_allows_denies_or_leaves_it_to_others() {
    let hook = Hook::start(by_name).await;
    let access = access(settings(&format!("{}{REST}", webhook(&hook, "NoOpinion", "3s", &[]))), None).await;
    let jane = jane();
    assert_eq!(asks(&access, &jane, "mine").await, Decision::Allowed(Some("it is hers".into())));
    assert_eq!(
        hook.last(),
        json!({
            "kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "spec": {
                "resourceAttributes": { "namespace": "default", "verb": "get", "version": "v1", "resource": "pods", "name": "mine" },
                "user": "jane", "groups": ["dev"], "uid": "u1",
            },
            "status": { "allowed": false },
        })
    );
    let never = asks(&access, &jane, "never").await;
    assert_eq!((denied(&never).is_explicit, &*denied(&never).reason), (true, "nobody may"));
    assert!(denied(&asks(&access, &jane, "both").await).error.contains("both allow and deny"));
    let other = asks(&access, &jane, "other").await;
    assert_eq!((denied(&other).is_explicit, &*denied(&other).reason), (false, "no idea"));
    assert_eq!(hook.n_asked(), 4);
    for name in ["mine", "never", "other"] {
        asks(&access, &jane, name).await;
    }
    assert_eq!(hook.n_asked(), 4, "answers are kept");
    let other_uid = Identity { uid: "u2".into(), ..jane.clone() };
    asks(&access, &other_uid, "mine").await;
    assert_eq!(hook.n_asked(), 5, "and for whom they were given alone");
    let master = Identity::new("root", &[crate::MASTERS]);
    assert_eq!(asks(&access, &master, "never").await, Decision::Allowed(None));
    assert_eq!(hook.n_asked(), 5, "masters are asked about nowhere");
}

#[tokio::test]
async fn answers_end_with_their_time() {
    let hook = Hook::start(by_name).await;
    let options = AuthorizationOptions {
        modes: vec!["Node".into(), "RBAC".into(), "Webhook".into()],
        webhook_config_file: Some(hook.kubeconfig.clone()),
        webhook_version: "v1beta1".into(),
        webhook_authorized_ttl: Duration::from_secs(300),
        webhook_unauthorized_ttl: Duration::from_secs(30),
    };
    let access = access(AuthorizationSettings::of_options(&options).expect("good options"), None).await;
    let jane = jane();
    for (seconds, n_asked) in [(0, 2), (31, 3), (300, 5)] {
        // Connections are opened with the clock going on.
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(seconds)).await;
        tokio::time::resume();
        assert!(asks(&access, &jane, "mine").await.is_allowed());
        assert!(!asks(&access, &jane, "other").await.is_allowed());
        assert_eq!(hook.n_asked(), n_asked, "after {seconds} more");
    }
    assert_eq!(hook.last()["spec"]["group"], json!(["dev"]), "groups have another name in this version");
    let long = "x".repeat(10_000);
    asks(&access, &jane, &long).await;
    asks(&access, &jane, &long).await;
    assert_eq!(hook.n_asked(), 7, "what is long is not kept");
}

#[tokio::test]
async fn whoever_hangs_lies_or_floods_costs_no_more_than_its_time() {
    for (what, policy) in [("hangs", "NoOpinion"), ("hangs", "Deny"), ("lies", "Deny"), ("floods", "NoOpinion")] {
        let hook = Hook::start(move |_| match what {
            "hangs" => None,
            "lies" => Some(("200 OK", r#"{"kind":"Pod","apiVersion":"v1","status":{"allowed":true}}"#.into())),
            _ => Some(("200 OK", " ".repeat(2 << 20))),
        })
        .await;
        let access = access(settings(&webhook(&hook, policy, "200ms", &[])), None).await;
        let begun = Instant::now();
        let decision = tokio::time::timeout(PATIENCE, asks(&access, &jane(), "mine")).await.expect("in time");
        let denial = denied(&decision);
        assert_eq!((denial.is_explicit, denial.error.is_empty()), (policy == "Deny", false), "{what}: {denial:?}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{what}");
        asks(&access, &jane(), "mine").await;
        assert_eq!(hook.n_asked(), 2, "{what}: failures are not kept");
    }
}

#[tokio::test]
async fn a_failure_that_passes_is_asked_again() {
    let hook = Hook::start(|_| Some(("500 Internal Server Error", String::new()))).await;
    let access = access(settings(&webhook(&hook, "NoOpinion", "3s", &[])), None).await;
    let mut n = 0;
    hook.says(move |review| {
        n += 1;
        if n < 2 { Some(("500 Internal Server Error", "no".into())) } else { by_name(review) }
    });
    assert!(asks(&access, &jane(), "mine").await.is_allowed());
    assert_eq!(hook.n_asked(), 2);
    hook.says(|_| Some(("403 Forbidden", "no".into())));
    assert!(!asks(&access, &jane(), "other").await.is_allowed());
    assert_eq!(hook.n_asked(), 3);
}

#[tokio::test]
async fn conditions_say_what_is_asked() {
    let hook = Hook::start(by_name).await;
    let mine = "request.resourceAttributes.name == 'mine'";
    let fails = "request.resourceAttributes.fieldSelector.rawSelector == 'x'";
    for (conditions, policy, name, n_asked, is_explicit, has_error) in [
        (&[mine][..], "Deny", "other", 0, false, false),
        (&["request.user == 'jane'", "'dev' in request.groups"], "Deny", "other", 1, false, false),
        (&["has(request.nonResourceAttributes)"], "Deny", "other", 0, false, false),
        (&[fails], "Deny", "other", 0, true, true),
        (&[fails], "NoOpinion", "other", 0, false, true),
        (&[fails, mine], "Deny", "other", 0, false, false),
    ] {
        let before = hook.n_asked();
        let access = access(settings(&webhook(&hook, policy, "3s", conditions)), None).await;
        let decision = asks(&access, &jane(), name).await;
        let denial = denied(&decision);
        assert_eq!(hook.n_asked() - before, n_asked, "{conditions:?}");
        assert_eq!((denial.is_explicit, !denial.error.is_empty()), (is_explicit, has_error), "{conditions:?}");
    }
}

#[tokio::test]
async fn a_condition_that_is_a_bomb_ends_soon() {
    let hook = Hook::start(by_name).await;
    let bomb = "request.groups.all(a, request.groups.all(b, request.groups.all(c, a + b != c)))";
    let access = access(settings(&webhook(&hook, "Deny", "3s", &[bomb])), None).await;
    let groups: Vec<String> = (0..2000).map(|it| format!("group-{it}")).collect();
    let who = Identity { groups, ..jane() };
    let begun = Instant::now();
    let decision = asks(&access, &who, "mine").await;
    assert!(denied(&decision).error.contains("cost"), "{decision:?}");
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(hook.n_asked(), 0);
}

/// Many conditions, each of which takes long and costs little: they share one budget of work.
#[tokio::test(flavor = "multi_thread")]
async fn conditions_share_a_budget_of_work() {
    let hook = Hook::start(by_name).await;
    let slow = |it: usize| format!(r"{it} > 0 && !request.resourceAttributes.name.matches('\\pL{{25}}a{{5}}')");
    let all: Vec<String> = (1..=63).map(slow).chain(["request.user == 'nobody'".to_owned()]).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let access = access(settings(&webhook(&hook, "Deny", "3s", &all)), None).await;
    assert_eq!(denied(&asks(&access, &jane(), "-").await).error, "", "a short name: the last condition is false");
    let refused = asks(&access, &jane(), &"b".repeat(1_000)).await;
    assert!(denied(&refused).error.contains("request.user == 'nobody'"), "nothing is left for the last: {refused:?}");
    assert_eq!(hook.n_asked(), 0);
}

#[tokio::test]
async fn who_cannot_wait_asks_again() {
    let hook = Hook::start(by_name).await;
    let access = access(settings(&webhook(&hook, "NoOpinion", "3s", &[])), None).await;
    let jane = jane();
    let may = access.answered(|answers| {
        let one = |name| {
            let target =
                ResourceOrPath::Resource { group: "", resource: "pods", subresource: "", namespace: "default", name };
            answers.decide(&Attributes { verb: "get", target, ..Attributes::of(&jane) }).is_allowed()
        };
        (one("mine") && one("other"), one("never"))
    });
    assert_eq!(may.await, (false, false));
    assert_eq!(hook.n_asked(), 3);
}

#[tokio::test]
async fn a_configuration_is_read_again_and_a_bad_one_changes_nothing() {
    let hook = Hook::start(by_name).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("authorization.yaml");
    write(&file, &format!("{HEAD}{}", webhook(&hook, "NoOpinion", "3s", &[])));
    let access = access(AuthorizationSettings::load(&file).expect("a good configuration"), None).await;
    let ended = watch::Sender::new(false);
    let keeping = tokio::spawn(access.clone().keep(ended.subscribe()));
    let in_use = || {
        let families = access.measured("a", Time::from_unix_seconds(0));
        let text = corten_metrics::encoded(&families);
        let name = "apiserver_authorization_config_controller_last_config_info{";
        text.lines().find(|it| it.starts_with(name)).map(str::to_owned)
    };
    let before = in_use();
    assert!(before.as_ref().is_some_and(|it| it.contains("hash=\"sha256:") && it.ends_with(" 1")), "{before:?}");
    let changes = access.rights_changed().count();
    assert!(asks(&access, &jane(), "mine").await.is_allowed());
    write(&file, "kind: nonsense");
    until(|| access.authorization_reloads().failures() == 1).await;
    assert!(asks(&access, &jane(), "mine").await.is_allowed(), "the old one stays");
    let refused = access.refused_files();
    assert_eq!((refused.len(), refused[0].what, &refused[0].path), (1, "the authorization configuration", &file));
    hook.says(|_| status(&json!({ "allowed": false })));
    write(&file, &format!("{HEAD}{}", webhook(&hook, "Deny", "3s", &[])));
    until(|| access.authorization_reloads().successes() == 1).await;
    assert!(!asks(&access, &jane(), "mine").await.is_allowed(), "no answer of before is kept");
    assert!(access.refused_files().is_empty());
    assert_ne!(in_use(), before, "another one is used");
    assert_eq!(access.rights_changed().count(), changes + 1, "what goes on asks again");
    ended.send_replace(true);
    keeping.await.expect("it ends");
}

#[test]
fn what_is_wrong_is_said_with_its_path() {
    let parse = |text: &str| AuthorizationSettings::parse(text.to_owned()).err().map(|it| it.0).unwrap_or_default();
    for (text, said) in [
        (HEAD.to_owned(), "authorizers: Required value: at least one authorization mode must be defined"),
        (format!("{HEAD}- {{name: a}}"), "authorizers[0].type: Required value"),
        (
            format!("{HEAD}- {{type: X, name: a}}"),
            r#"authorizers[0].type: Unsupported value: "X": supported values: "ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook""#,
        ),
        (format!("{HEAD}- {{type: ABAC, name: a}}"), "this server has no ABAC"),
        (
            format!("{HEAD}- {{type: RBAC, name: a}}\n- {{type: RBAC, name: b}}"),
            r#"authorizers[1].type: Duplicate value: "RBAC""#,
        ),
        (
            format!("{HEAD}- {{type: RBAC, name: a}}\n- {{type: Node, name: a}}"),
            r#"authorizers[1].name: Duplicate value: "a""#,
        ),
        (format!("{HEAD}- {{type: RBAC}}"), "authorizers[0].name: Required value"),
        (
            format!("{HEAD}- {{type: RBAC, name: A_}}"),
            "authorizers[0].name: Invalid value: \"A_\": authorizer name is invalid: ",
        ),
        (
            format!("{HEAD}- {{type: Webhook, name: a}}"),
            "authorizers[0].webhook: Required value: required when type=Webhook",
        ),
        (
            format!("{HEAD}- {{type: RBAC, name: a, webhook: {{}}}}"),
            r#"authorizers[0].webhook: Invalid value: "non-null": may only be specified when type=Webhook"#,
        ),
        (
            format!("{HEAD}- {{type: Webhook, name: a, webhook: {{timeout: 31s}}}}"),
            r#"[authorizers[0].timeout: Invalid value: "31s": must be > 0s and <= 30s, authorizers[0].subjectAccessReviewVersion: Required value, authorizers[0].failurePolicy: Required value, authorizers[0].connectionInfo.type: Required value]"#,
        ),
        (
            format!(
                "{HEAD}- {{type: Webhook, name: a, webhook: {{authorizedTTL: -1s, unauthorizedTTL: 0s, matchConditions: [{{expression: 'request.x'}}, {{expression: request.user}}]}}}}"
            ),
            r#"authorizers[0].authorizedTTL: Invalid value: "-1s": must be > 0s, authorizers[0].unauthorizedTTL: Required value, "#,
        ),
        (
            format!("{HEAD}- {{type: Webhook, name: a, webhook: {{matchConditions: [{{expression: request.user}}]}}}}"),
            r#"authorizers[0].matchConditions[0].expression: Invalid value: "request.user": must evaluate to bool"#,
        ),
        (
            format!(
                "{HEAD}- {{type: Webhook, name: a, webhook: {{connectionInfo: {{type: KubeConfigFile, kubeConfigFile: x}}}}}}"
            ),
            r#"authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "x": must be an absolute path"#,
        ),
        (format!("{HEAD}- {{type: RBAC, name: a, extra: 1}}"), "strict decoding error"),
        ("apiVersion: v1\nkind: Pod".to_owned(), "no kind \"Pod\" is registered for version \"v1\""),
    ] {
        assert!(parse(&text).contains(said), "{text}\n{}", parse(&text));
    }
    for (modes, file, said) in [
        (&[][..], false, "at least one authorization-mode must be passed"),
        (&["X"], false, "authorization-mode \"X\" is not a valid mode"),
        (&["ABAC"], false, "authorization-mode ABAC: this server has none"),
        (&["RBAC", "RBAC"], false, "has mode specified more than once"),
        (&["Webhook"], false, "authorization-mode Webhook's authorization config file not passed"),
        (&["RBAC"], true, "cannot specify --authorization-webhook-config-file without mode Webhook"),
    ] {
        let options = AuthorizationOptions {
            modes: modes.iter().map(|it| (*it).to_owned()).collect(),
            webhook_config_file: file.then(|| "/nowhere".into()),
            webhook_version: "v1".into(),
            webhook_authorized_ttl: Duration::ZERO,
            webhook_unauthorized_ttl: Duration::ZERO,
        };
        let wrong = AuthorizationSettings::of_options(&options).err().map(|it| it.0).unwrap_or_default();
        assert!(wrong.contains(said), "{modes:?}: {wrong}");
    }
}

#[tokio::test]
async fn a_webhook_that_does_not_answer_is_named_until_it_does() {
    let hook = Hook::start(|_| Some(("403 Forbidden", "go\naway".into()))).await;
    let access = access(settings(&webhook(&hook, "Deny", "3s", &[])), None).await;
    asks(&access, &jane(), "mine").await;
    let unanswering = access.unanswering();
    assert_eq!(unanswering[0].who, "the authorization webhook \"hook\"");
    assert!(unanswering[0].reason.contains("go away"), "{unanswering:?}");
    hook.says(by_name);
    asks(&access, &jane(), "mine").await;
    assert_eq!(access.unanswering(), []);
}
