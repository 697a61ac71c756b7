//! What asks and what answers, at one socket.

use std::{path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use prost::Message;
use tokio::{sync::Notify, task::JoinSet};

use crate::{Answer, Client, Code, Service, Status, listen, one, serve};

#[derive(Clone, PartialEq, prost::Message)]
struct Text {
    #[prost(string, tag = "1")]
    text: String,
}

fn text(it: &str) -> Text {
    Text { text: it.to_owned() }
}

/// Says a thing again: once, letter by letter, or not at all.
#[derive(Default)]
struct Echo {
    asked: Arc<Notify>,
}

impl Service for Echo {
    fn answer<'a>(
        &'a self,
        method: &'a str,
        question: Bytes,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Answer, Status>> + Send + 'a>> {
        Box::pin(async move {
            let question = Text::decode(question).map_err(|it| Status::invalid_argument(it.to_string()))?;
            match method {
                "/Echo/Once" => Ok(one(&question)),
                "/Echo/Letters" => {
                    let letters = question.text.chars().map(|it| text(&it.to_string()).encode_to_vec().into());
                    Ok(Box::pin(stream::iter(letters.collect::<Vec<Bytes>>())) as Answer)
                }
                "/Echo/Never" => {
                    self.asked.notify_one();
                    std::future::pending().await
                }
                _ => Err(Status::new(Code::NotFound, "50 % of it is ünknown")),
            }
        })
    }
}

fn echo(folder: &Path) -> (Client, JoinSet<()>) {
    serving(folder, Echo::default())
}

fn serving(folder: &Path, echo: Echo) -> (Client, JoinSet<()>) {
    let socket = folder.join("sockets/echo.sock");
    let mut tasks = JoinSet::new();
    tasks.spawn(serve(listen(&socket).expect("bound"), Arc::new(echo)));
    (Client::new(&socket).expect("a path"), tasks)
}

const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_question_is_answered_once_or_by_many() {
    let folder = tempfile::tempdir().expect("a folder");
    let (client, _tasks) = echo(folder.path());
    let answer: Text = client.call("/Echo/Once", text("hello"), PATIENCE).await.expect("answered");
    assert_eq!(answer.text, "hello");
    let mut letters = client.stream::<_, Text>("/Echo/Letters", text("ab"), PATIENCE).await.expect("a stream");
    let mut got = Vec::new();
    while let Some(it) = letters.message().await.expect("a message") {
        got.push(it.text);
    }
    assert_eq!(got, ["a", "b"]);
}

#[tokio::test]
async fn a_refusal_comes_with_its_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let (client, _tasks) = echo(folder.path());
    let refused = client.call::<_, Text>("/Echo/Else", text(""), PATIENCE).await.expect_err("refused");
    assert_eq!((refused.code(), refused.message()), (Code::NotFound, "50 % of it is ünknown"));
    let late = client.call::<_, Text>("/Echo/Never", text(""), Duration::from_millis(20)).await.expect_err("late");
    assert_eq!(late.code(), Code::DeadlineExceeded);
    let long = client.call::<_, Text>("/Echo/Once", text(&"x".repeat(5 << 20)), PATIENCE).await;
    assert!(long.is_err(), "too long");
}

#[tokio::test]
async fn a_socket_that_was_left_gives_way_and_anything_else_does_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("it.sock");
    drop(listen(&socket).expect("bound"));
    drop(listen(&socket).expect("bound again"));
    let file = folder.path().join("file");
    std::fs::write(&file, "precious").expect("written");
    assert!(listen(&file).is_err());
    assert_eq!(std::fs::read(&file).expect("still there"), b"precious");
    let nobody = Client::new(&folder.path().join("nobody.sock")).expect("a path");
    let refused = nobody.call::<_, Text>("/Echo/Once", text(""), PATIENCE).await.expect_err("nobody listens");
    assert_eq!(refused.code(), Code::Unavailable);
}

/// Nobody knows whether it was carried out: that is no refusal.
#[tokio::test]
async fn a_plugin_that_ends_amid_a_call_is_unavailable() {
    let folder = tempfile::tempdir().expect("a folder");
    let echo = Echo::default();
    let asked = echo.asked.clone();
    let (client, mut tasks) = serving(folder.path(), echo);
    let ends = async {
        asked.notified().await;
        tasks.shutdown().await;
    };
    let (answer, ()) = tokio::join!(client.call::<_, Text>("/Echo/Never", text(""), PATIENCE), ends);
    let cut = answer.expect_err("it has ended");
    assert_eq!(cut.code(), Code::Unavailable, "{cut}");
}
