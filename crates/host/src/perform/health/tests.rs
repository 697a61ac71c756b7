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
    let endless = format!("Get \"http://127.0.0.1:{port}/loop\": stopped after 10 redirects");
    for (path, verdict) in [
        ("/ok", ProbeVerdict::Success),
        ("/bad", bad()),
        ("/moved", bad()),
        // A redirect to another host is an answer.
        ("/away", ProbeVerdict::Success),
        ("/loop", ProbeVerdict::Failure(endless)),
    ] {
        assert_eq!(probe(&http(port, path), IN_TIME).await, verdict, "{path}");
    }
    assert_eq!(hook(&http(port, "/bad"), IN_TIME).await, Ok(()), "any answer will do");
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
