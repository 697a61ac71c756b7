//! `POST /run/NAMESPACE/POD/CONTAINER?cmd=WORDS`: one command, its output as the answer.

use std::time::Duration;

use http::Response;

use super::{Body, PlainTextError, containers, plain, query, routes::Call, text};

/// Upstream gives it no end; nothing here waits for ever.
const DEADLINE: Duration = Duration::from_secs(600);

pub(super) async fn answer(call: Call) -> Result<Response<Body>, PlainTextError> {
    let cri = call.server.hands().cri();
    let found = containers::running(cri, call.name(0), call.name(1), call.uid(3), call.container()).await?;
    // As in the kubelet's `getRun`: the words are parted at spaces, and there is no way to quote one.
    let command = query(call.query()).into_iter().find(|it| it.0 == "cmd").map(|it| it.1).unwrap_or_default();
    let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
    let ran = cri.exec_sync(&found.id, words, DEADLINE).await.map_err(|it| PlainTextError::internal(it.message))?;
    if ran.exit_code != 0 {
        return Err(PlainTextError::internal(format!(
            "command {command:?} exited with {}: {}",
            ran.exit_code,
            String::from_utf8_lossy(&ran.stderr)
        )));
    }
    let mut output = ran.stdout;
    output.extend_from_slice(&ran.stderr);
    let mut response = Response::new(text(output));
    plain(&mut response);
    Ok(response)
}
