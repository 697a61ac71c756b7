//! What asks for another protocol and is refused: by a server that does not end its refusal, or says far too much in its head.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::Instant,
};

use super::*;

/// What comes of a request to exec, of a server that says this and no more, and does not hang up.
async fn asked(said: String) -> Result<Response, String> {
    let (near, mut far) = tokio::io::duplex(1024 * 1024);
    tokio::spawn(async move {
        let mut request = vec![0; 4096];
        assert!(far.read(&mut request).await.is_ok_and(|it| it > 0));
        far.write_all(said.as_bytes()).await.expect("it is read");
        std::future::pending::<()>().await;
    });
    let request = Request::get("/apis/a/v1/pods/a/exec").header(header::HOST, "a").header(header::UPGRADE, "websocket");
    let request =
        request.header(header::CONNECTION, "Upgrade").body(corten_cacher::body::whole("")).expect("a request");
    match dialled(near, request, &[HeaderValue::from_static("websocket")]).await? {
        Ok(Answered::Response(response)) => Ok(response),
        Ok(Answered::Switched(..)) => panic!("it is refused"),
        Err(refused) => Ok(*refused.response),
    }
}

#[tokio::test(start_paused = true)]
async fn a_half_refusal_of_another_protocol_ends() {
    let begun = Instant::now();
    let refusal = asked("HTTP/1.1 403 Forbidden\r\nContent-Length: 1000\r\n\r\nhalf".to_owned()).await.expect("a head");
    assert_eq!(refusal.status(), StatusCode::FORBIDDEN);
    let mut body = refusal.into_body();
    let first = body.frame().await.expect("there is one").expect("it is whole");
    assert_eq!(first.into_data().expect("it is data"), "half");
    let ended = tokio::time::timeout(crate::silence::SILENCE_MAX * 2, body.frame()).await.expect("it ends");
    let error = ended.expect("there is an end").expect_err("with an error");
    assert_eq!(error.to_string(), "the other API server does not go on with its answer");
    assert!(begun.elapsed() >= crate::silence::SILENCE_MAX);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_has_a_head_of_bounded_size() {
    for (bytes, is_taken) in [(HEADERS_BYTES_MAX / 2, true), (HEADERS_BYTES_MAX * 2, false)] {
        let said = format!("HTTP/1.1 403 Forbidden\r\nx: {}\r\nContent-Length: 0\r\n\r\n", "a".repeat(bytes));
        let answer = asked(said).await.map(|it| it.status().as_u16());
        assert_eq!(answer.ok(), is_taken.then_some(403), "{bytes}");
    }
}
