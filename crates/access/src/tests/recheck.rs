//! What goes on while those who could end it do not answer. The clock rests but for `pass`: connections are opened with it going on.

use std::{sync::Arc, time::Duration};

use corten_routes::RequestInfo;
use http::{HeaderMap, HeaderName, header};
use serde_json::{Value, json};

use super::{
    access,
    hook::{Hook, WebhookAnswer, status},
};
use crate::{
    Access, AuthorizationOptions, AuthorizationSettings, Impersonation, Recheck, Request,
    impersonation::ImpersonatedUser, tokens::TokenWebhookSettings,
};

/// How long a webhook's answer is kept here.
const TTL: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// What is asked again of somebody who began with this token, as this user.
async fn begun(access: &Arc<Access>, token: &str, user: Option<&str>) -> Recheck {
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, format!("Bearer {token}").parse().expect("a header"));
    if let Some(user) = user {
        headers.insert(HeaderName::from_static("impersonate-user"), user.parse().expect("a header"));
    }
    let info = RequestInfo { path: "/logs".into(), verb: "get", ..RequestInfo::default() };
    let proof = access.identify(None, &headers, &info.path).await.expect("a token that is known");
    let impersonated = match ImpersonatedUser::of(&headers).expect("good headers") {
        None => None,
        Some(wanted) => {
            let allowed = access.impersonated(&wanted, &info, &proof.identity).await.ok().expect("it is allowed");
            Some(Impersonation { wanted, identity: allowed.identity })
        }
    };
    let request = Request { peer: None, credential: proof.credential, asker: proof.identity, impersonated, info };
    Recheck::new(access.clone(), request)
}

async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// After how many minutes it ends, and how.
async fn end(recheck: &Recheck) -> (u64, u16) {
    for minute in 0..60 {
        if let Err(status) = recheck.ask().await {
            return (minute, status.code);
        }
        pass(MINUTE).await;
    }
    panic!("it goes on for ever");
}

fn is_down(_: &Value) -> WebhookAnswer {
    Some(("403 Forbidden", "out of order".into()))
}

async fn over_tokens(hook: &Hook) -> Arc<Access> {
    let tokens = TokenWebhookSettings::load(&hook.kubeconfig, "v1", TTL).expect("a kubeconfig");
    access(AuthorizationSettings::default(), Some(tokens)).await
}

async fn over_rights(hook: &Hook) -> Arc<Access> {
    let options = AuthorizationOptions {
        modes: vec!["RBAC".into(), "Webhook".into()],
        webhook_config_file: Some(hook.kubeconfig.clone()),
        webhook_version: "v1".into(),
        webhook_authorized_ttl: TTL,
        webhook_unauthorized_ttl: TTL,
    };
    access(AuthorizationSettings::of_options(&options).expect("good options"), None).await
}

fn is_ann(_: &Value) -> WebhookAnswer {
    status(&json!({ "authenticated": true, "user": { "username": "ann", "groups": ["system:masters"] } }))
}

#[tokio::test]
async fn a_token_that_nobody_can_verify_is_good_for_five_minutes() {
    let hook = Hook::start(is_ann).await;
    let access = over_tokens(&hook).await;
    for _ in 0..2 {
        hook.says(is_ann);
        let recheck = begun(&access, "t", None).await;
        for _ in 0..3 {
            recheck.ask().await.expect("all is well");
            hook.says(is_down);
            pass(4 * MINUTE).await;
            recheck.ask().await.expect("it is only down");
            hook.says(is_ann);
            pass(4 * MINUTE).await;
        }
        recheck.ask().await.expect("all is well");
        hook.says(is_down);
        pass(MINUTE).await;
        assert_eq!(end(&recheck).await, (5, 401));
    }
}

#[tokio::test]
async fn a_token_that_was_taken_back_is_good_no_longer() {
    let hook = Hook::start(is_ann).await;
    let access = over_tokens(&hook).await;
    let recheck = begun(&access, "t", None).await;
    pass(MINUTE).await;
    hook.says(|_| status(&json!({ "authenticated": false })));
    assert_eq!(end(&recheck).await, (0, 401));
}

/// What is refused is said by its verb; all else is allowed.
fn all_but(refused: &'static str) -> impl FnMut(&Value) -> WebhookAnswer + Send {
    move |review| {
        let spec = &review["spec"];
        let verb = ["resourceAttributes", "nonResourceAttributes"].iter().find_map(|it| spec[*it]["verb"].as_str());
        status(&json!({ "allowed": verb.is_none_or(|it| !it.starts_with(refused)) }))
    }
}

#[tokio::test]
async fn who_acts_as_another_ends_when_a_right_does_and_five_minutes_after_nobody_says_so() {
    let hook = Hook::start(all_but("nothing")).await;
    let access = over_rights(&hook).await;
    for user in [None, Some("bob"), Some("system:serviceaccount:a:b"), Some("system:node:n")] {
        hook.says(all_but("nothing"));
        let recheck = begun(&access, "s3cret", user).await;
        recheck.ask().await.expect("all is well");
        hook.says(is_down);
        pass(MINUTE).await;
        assert_eq!(end(&recheck).await, (5, 403), "{user:?}");

        hook.says(all_but("nothing"));
        pass(MINUTE).await;
        let recheck = begun(&access, "s3cret", user).await;
        hook.says(all_but("get"));
        pass(MINUTE).await;
        assert_eq!(end(&recheck).await, (0, 403), "{user:?}: whom they act as may not");
        hook.says(all_but("impersonate"));
        pass(MINUTE).await;
        assert_eq!(recheck.ask().await.is_ok(), user.is_none(), "{user:?}: they may not act as another");
    }
}

#[tokio::test]
async fn what_is_taken_back_while_others_are_down_ends() {
    let hook = Hook::start(is_ann).await;
    let access = over_tokens(&hook).await;
    // The masters' right to act is nobody's to give: that of whom they act as is.
    let recheck = begun(&access, "t", Some("nobody-in-particular")).await;
    hook.says(is_down);
    pass(MINUTE).await;
    assert_eq!(end(&recheck).await, (0, 403));
}
