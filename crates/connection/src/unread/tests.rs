use std::{convert::Infallible, future::pending};

use http_body_util::{BodyExt, Full};

use super::*;

fn answer(content: &'static str) -> Response<Full<Bytes>> {
    Response::new(Full::new(Bytes::from_static(content.as_bytes())))
}

fn held(answer: &mut Response<Full<Bytes>>) -> std::sync::Weak<dyn Any + Send + Sync> {
    let seat: Arc<dyn Any + Send + Sync> = Arc::new(());
    let weak = Arc::downgrade(&seat);
    answer.extensions_mut().insert(UntilRead(seat));
    weak
}

async fn piece(body: &mut UnreadBody<Full<Bytes>>) -> Bytes {
    let frame: Result<Frame<Bytes>, Infallible> = body.frame().await.expect("there is one");
    frame.expect("it is whole").into_data().expect("it is data")
}

/// How long the connection lives, where nothing but its unread answers ends it.
async fn lives(answers: &UnreadAnswers, at_most: Duration) -> Option<Duration> {
    let begun = Instant::now();
    let connection = EndsUnread::new(pending::<Result<(), BoxError>>(), answers.clone());
    let ended = tokio::time::timeout(at_most, connection).await.ok()?;
    assert_eq!(ended.expect_err("it never ends well").to_string(), "an answer was not read in time");
    Some(begun.elapsed())
}

#[tokio::test(start_paused = true)]
async fn what_is_held_goes_with_the_last_piece() {
    let answers = UnreadAnswers::default();
    let mut response = answer("hello");
    let seat = held(&mut response);
    let mut body = answers.add(response).into_body();
    let bytes = piece(&mut body).await;
    assert_eq!(bytes, "hello");
    let last = bytes.slice(4..);
    drop((body, bytes));
    assert!(seat.upgrade().is_some() && !answers.is_empty());
    drop(last);
    assert!(seat.upgrade().is_none() && answers.is_empty());
    assert_eq!(lives(&answers, Duration::from_secs(600)).await, None);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_reads_ends_its_connection() {
    let answers = UnreadAnswers::default();
    let mut response = answer("hello");
    let seat = held(&mut response);
    let _unread = answers.add(response);
    tokio::time::advance(Duration::from_secs(10)).await;
    let later = answers.add(answer("hello"));
    drop(later);
    let lived = lives(&answers, Duration::from_secs(600)).await.expect("it ends");
    assert!(lived <= PATIENCE + Duration::from_secs(1), "{lived:?}");
    assert!(seat.upgrade().is_some(), "it is held until the connection is gone");
}

#[tokio::test(start_paused = true)]
async fn a_large_answer_has_the_time_that_its_size_takes() {
    let answers = UnreadAnswers::default();
    let large = Bytes::from(vec![0; 1024 * 1024]);
    let mut body = answers.add(Response::new(Full::new(large))).into_body();
    let _not_sent = piece(&mut body).await;
    let lived = lives(&answers, Duration::from_secs(600)).await.expect("it ends");
    let expected = PATIENCE + Duration::from_secs(1024 * 1024 / BYTES_PER_SECOND_MIN);
    assert!(lived >= expected && lived <= expected + Duration::from_secs(1), "{lived:?}");
}

#[tokio::test(start_paused = true)]
async fn what_goes_on_has_no_deadline() {
    let answers = UnreadAnswers::default();
    let mut response = answer("event");
    response.extensions_mut().insert(GoesOn);
    let _watch = answers.add(response);
    assert!(answers.is_empty());
    assert_eq!(lives(&answers, Duration::from_secs(6000)).await, None);
}

#[tokio::test(start_paused = true)]
async fn who_hangs_up_first_ends_the_connection_well() {
    const MOMENT: Duration = Duration::from_secs(1);
    for (hangs_up, is_well, ended) in
        [(PATIENCE - MOMENT, true, PATIENCE - MOMENT), (PATIENCE + MOMENT, false, PATIENCE)]
    {
        let answers = UnreadAnswers::default();
        let _unread = answers.add(answer("hello"));
        let begun = Instant::now();
        let client = async move {
            tokio::time::sleep(hangs_up).await;
            Ok::<_, BoxError>(())
        };
        assert_eq!(EndsUnread::new(client, answers).await.is_ok(), is_well, "{hangs_up:?}");
        let lived = begun.elapsed();
        assert!(lived >= ended && lived < ended + MOMENT / 2, "{lived:?}");
    }
}
