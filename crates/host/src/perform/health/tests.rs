use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;

const IN_TIME: Duration = Duration::from_secs(5);

/// Answers each connection with what `answer` makes of the request; tells its port.
async fn server(answer: fn(&str) -> String) -> (u16, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("bound");
    let port = listener.local_addr().expect("an address").port();
    let serving = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 2048];
            let n = stream.read(&mut request).await.unwrap_or(0);
            let text = answer(&String::from_utf8_lossy(&request[..n]));
            let _ = stream.write_all(text.as_bytes()).await;
        }
    });
    (port, serving)
}

fn answer(request: &str) -> String {
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (status, location) = match path {
        "/ok" if request.contains("x-a: 1") && request.contains("user-agent: kube-probe/") => ("200 OK", ""),
        "/moved" => ("302 Found", "/bad"),
        "/deep/beside" => ("307 Temporary Redirect", "../ok?x"),
        "/ok?x" => ("200 OK", ""),
        "/nowhere" => ("302 Found", ""),
        "/unmodified" => ("304 Not Modified", "/bad"),
        "/away" => ("302 Found", "http://example.com/bad"),
        "/loop" => ("302 Found", "/loop"),
        _ => ("500 Internal Server Error", ""),
    };
    let location = if location.is_empty() { String::new() } else { format!("Location: {location}\r\n") };
    format!("HTTP/1.1 {status}\r\n{location}Content-Length: 0\r\nConnection: close\r\n\r\n")
}

fn http(port: u16, path: &str) -> Action {
    let headers = vec![("X-A".to_owned(), "1".to_owned())];
    Action::Http { https: false, host: "127.0.0.1".into(), port, path: path.into(), headers }
}

#[tokio::test]
async fn http_says_what_upstream_says() {
    let (port, serving) = server(answer).await;
    let bad = || ProbeVerdict::Failure("HTTP probe failed with statuscode: 500".into());
    let redirect = || ProbeVerdict::Warning("Probe terminated redirects, Response body: ".into());
    let endless = format!("Get \"http://127.0.0.1:{port}/loop\": stopped after 10 redirects");
    for (path, verdict) in [
        ("/ok", ProbeVerdict::Success),
        ("/bad", bad()),
        ("/moved", bad()),
        ("/deep/beside", ProbeVerdict::Success),
        // A redirect to another host is an answer, as is one that leads nowhere.
        ("/away", redirect()),
        ("/nowhere", redirect()),
        ("/unmodified", redirect()),
        ("/loop", ProbeVerdict::Failure(endless)),
    ] {
        assert_eq!(probe(&http(port, path), IN_TIME).await, verdict, "{path}");
    }
    assert_eq!(hook(&http(port, "/bad"), IN_TIME).await, Ok(HookAnswer::Ran), "any answer will do");
    serving.abort();
}

#[tokio::test]
async fn nobody_there() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("bound");
    let port = listener.local_addr().expect("an address").port();
    let tcp = Action::Tcp { host: "127.0.0.1".into(), port };
    assert_eq!(probe(&tcp, IN_TIME).await, ProbeVerdict::Success);
    // It accepts and never answers.
    let slow = probe(&http(port, "/"), Duration::from_millis(50)).await;
    let reason = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
    assert_eq!(slow, ProbeVerdict::Failure(format!("Get \"http://127.0.0.1:{port}/\": {reason}")));
    drop(listener);
    let refused = format!("dial tcp 127.0.0.1:{port}: connect: connection refused");
    assert_eq!(probe(&tcp, IN_TIME).await, ProbeVerdict::Failure(refused.clone()));
    let get = format!("Get \"http://127.0.0.1:{port}/\": {refused}");
    assert_eq!(probe(&http(port, "/"), IN_TIME).await, ProbeVerdict::Failure(get));
    let grpc = Action::Grpc { host: "127.0.0.1".into(), port, service: String::new() };
    let failed = format!("timeout: failed to connect service \"127.0.0.1:{port}\" within 5s");
    assert_eq!(probe(&grpc, IN_TIME).await, ProbeVerdict::Failure(failed));
}

/// A server's other ports and its TLS are the same host's.
#[tokio::test]
async fn a_redirect_may_lead_to_another_port() {
    let (well, serving) = server(answer).await;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("bound");
    let port = listener.local_addr().expect("an address").port();
    let sending_away = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 2048];
            let _ = stream.read(&mut request).await;
            let text =
                format!("HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:{well}/bad\r\nContent-Length: 0\r\n\r\n");
            let _ = stream.write_all(text.as_bytes()).await;
        }
    });
    let bad = ProbeVerdict::Failure("HTTP probe failed with statuscode: 500".into());
    assert_eq!(probe(&http(port, "/"), IN_TIME).await, bad);
    serving.abort();
    sending_away.abort();
}

#[tokio::test]
async fn plain_http_where_tls_was_asked_for() {
    let (port, serving) = server(|it| {
        let wrong = if it.contains("authorization") { "500 Secret Told" } else { "400 Bad Request" };
        format!("HTTP/1.1 {wrong}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    })
    .await;
    let headers = vec![("Authorization".to_owned(), "Basic x".to_owned())];
    let action = Action::Http { https: true, host: "127.0.0.1".into(), port, path: "/".into(), headers };
    let reason = "http: server gave HTTP response to HTTPS client";
    let failed = ProbeVerdict::Failure(format!("Get \"https://127.0.0.1:{port}/\": {reason}"));
    assert_eq!(probe(&action, IN_TIME).await, failed);
    // `isHTTPResponseError`: a hook is content with a server that has none, and tells of it.
    let fell_back = HookAnswer::WithoutTls { server: format!("127.0.0.1:{port}") };
    assert_eq!(hook(&action, IN_TIME).await, Ok(fell_back));
    serving.abort();

    let (port, serving) = server(|_| "SSH-2.0-OpenSSH\r\n".into()).await;
    let action = Action::Http { https: true, host: "127.0.0.1".into(), port, path: "/".into(), headers: Vec::new() };
    let reason = format!("Get \"https://127.0.0.1:{port}/\": tls: first record does not look like a TLS handshake");
    assert_eq!(probe(&action, IN_TIME).await, ProbeVerdict::Failure(reason.clone()));
    assert_eq!(hook(&action, IN_TIME).await, Err(reason));
    serving.abort();
}
