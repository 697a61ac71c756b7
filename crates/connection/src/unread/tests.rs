use std::{
    convert::Infallible,
    future::{pending, poll_fn},
    time::Duration,
};

use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};

use super::{progress::BYTES_PER_SECOND_MIN, *};

const MIB: usize = 1024 * 1024;

fn connection() -> UnreadAnswers {
    UnreadAnswers::new(&UnreadRoom::new(usize::MAX))
}

fn answer(content: &'static str) -> Response<Full<Bytes>> {
    Response::new(Full::new(Bytes::from_static(content.as_bytes())))
}

fn large(n_bytes: usize) -> Response<Full<Bytes>> {
    Response::new(Full::new(Bytes::from(vec![0; n_bytes])))
}

async fn piece<B: Body<Data = Bytes, Error = Infallible> + Unpin>(body: &mut UnreadBody<B>) -> Bytes {
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

/// Is there nothing of it yet?
async fn pends(future: &mut (impl Future + Unpin)) -> bool {
    poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context).is_pending())).await
}

fn is_idle(answers: &UnreadAnswers) -> bool {
    let table = answers.0.table.lock();
    assert!(!table.answers.is_empty() || table.bytes == 0, "nothing is held without an answer");
    table.answers.is_empty()
}

#[tokio::test(start_paused = true)]
async fn an_answer_goes_with_its_last_piece() {
    let answers = connection();
    let mut body = answers.add(answer("hello")).into_body();
    let bytes = piece(&mut body).await;
    assert_eq!(bytes, "hello");
    let last = bytes.slice(4..);
    drop((body, bytes));
    assert!(!is_idle(&answers));
    drop(last);
    assert!(is_idle(&answers));
    assert_eq!(lives(&answers, Duration::from_secs(600)).await, None);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_reads_ends_its_connection() {
    let answers = connection();
    let _unread = answers.add(answer("hello"));
    tokio::time::advance(Duration::from_secs(10)).await;
    let later = answers.add(answer("hello"));
    drop(later);
    let lived = lives(&answers, Duration::from_secs(600)).await.expect("it ends");
    assert!(lived <= PATIENCE + Duration::from_secs(1), "{lived:?}");
}

/// hyper takes a piece when one byte of it can be sent: what it has taken says nothing of who reads.
#[tokio::test(start_paused = true)]
async fn a_large_answer_has_the_time_of_what_was_sent_of_it() {
    let answers = connection();
    let mut body = answers.add(large(MIB)).into_body();
    let sent = piece(&mut body).await;
    assert_eq!(sent.len(), 64 * 1024);
    let _taken = piece(&mut body).await;
    drop(sent);
    let lived = lives(&answers, Duration::from_secs(600)).await.expect("it ends");
    let expected = PATIENCE + Duration::from_secs(64 * 1024 / BYTES_PER_SECOND_MIN);
    assert!(lived >= expected && lived <= expected + Duration::from_secs(1), "{lived:?}");
}

#[tokio::test(start_paused = true)]
async fn a_large_answer_comes_whole() {
    let answers = connection();
    let bytes: Vec<u8> = (0..MIB).map(|it| it.to_le_bytes()[0]).collect();
    let body = answers.add(Response::new(Full::new(Bytes::from(bytes.clone())))).into_body();
    assert_eq!(body.size_hint().exact(), Some(MIB as u64));
    assert_eq!(body.collect().await.expect("it comes").to_bytes(), bytes);
    assert!(is_idle(&answers));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_slow_costs_its_client_nothing() {
    let answers = connection();
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel::<Bytes>();
    let frames = futures_util::stream::unfold(receiver, async |mut it| {
        let bytes = it.recv().await?;
        Some((Ok::<_, Infallible>(Frame::data(bytes)), it))
    });
    let mut body = answers.add(Response::new(StreamBody::new(Box::pin(frames)))).into_body();
    for _ in 0..10 {
        assert!(pends(&mut body.frame()).await);
        assert_eq!(lives(&answers, Duration::from_secs(50)).await, None);
        sender.send(Bytes::from_static(b"a")).expect("it is listened to");
        drop(piece(&mut body).await);
    }
    sender.send(Bytes::from_static(b"a")).expect("it is listened to");
    let _unsent = piece(&mut body).await;
    assert!(pends(&mut body.frame()).await);
    let lived = lives(&answers, Duration::from_secs(600)).await.expect("now the client is waited for");
    assert!(lived <= PATIENCE + Duration::from_secs(1), "{lived:?}");
}

#[tokio::test(start_paused = true)]
async fn what_goes_on_has_no_deadline() {
    let answers = connection();
    let mut response = answer("event");
    response.extensions_mut().insert(GoesOn);
    let _watch = answers.add(response);
    assert!(is_idle(&answers));
    assert_eq!(lives(&answers, Duration::from_secs(6000)).await, None);
}

#[tokio::test(start_paused = true)]
async fn who_takes_most_of_the_room_loses_it() {
    let room = UnreadRoom::new(10 * MIB);
    let of = |asker: &str, n_bytes: usize| {
        let mut response = large(n_bytes);
        assert!(AnswerTo::matters(&response));
        response.extensions_mut().insert(AnswerTo(asker.into()));
        let answers = UnreadAnswers::new(&room);
        let body = answers.add(response).into_body();
        (EndsUnread::new(pending::<Result<(), BoxError>>(), answers), body)
    };
    let (mut quiet, _body) = of("jane", 4 * MIB);
    let (mut first, _first_body) = of("joe", 2 * MIB);
    let (mut second, second_body) = of("joe", 3 * MIB);
    assert!(pends(&mut second).await, "there is room");
    let (mut third, _third_body) = of("jim", 2 * MIB);
    let ended = second.await.expect_err("joe has most, and this is the larger one");
    assert_eq!(ended.to_string(), "its unread answers took room that others need");
    for other in [&mut quiet, &mut first, &mut third] {
        assert!(pends(other).await);
    }
    drop(second_body);
    let (_fourth, body) = of("jim", 2 * MIB);
    assert!(pends(&mut first).await, "what has ended is not counted twice");
    drop(body);
}

#[tokio::test(start_paused = true)]
async fn of_a_stream_the_pieces_are_counted_that_were_taken() {
    let room = UnreadRoom::new(100 * 1024);
    let answers = UnreadAnswers::new(&room);
    let frames =
        futures_util::stream::iter((0..4).map(|_| Ok::<_, Infallible>(Frame::data(Bytes::from(vec![0; 50_000])))));
    let mut body = answers.add(Response::new(StreamBody::new(frames))).into_body();
    let mut connection = EndsUnread::new(pending::<Result<(), BoxError>>(), answers.clone());
    let first = piece(&mut body).await;
    let second = piece(&mut body).await;
    drop(first);
    let third = piece(&mut body).await;
    assert!(pends(&mut connection).await);
    let _fourth = piece(&mut body).await;
    assert!(connection.await.is_err());
    drop((second, third, body));
}

#[tokio::test(start_paused = true)]
async fn a_connection_ends_well_beside_an_unread_answer() {
    let answers = connection();
    let _unread = answers.add(answer("hello"));
    let served = async {
        tokio::time::sleep(Duration::from_secs(30)).await;
        Ok::<_, BoxError>(())
    };
    assert!(EndsUnread::new(served, answers).await.is_ok());
}

/// Events of watches that nobody reads take room as any answer does, as far as they are large; they have all the time there is.
#[tokio::test(start_paused = true)]
async fn what_goes_on_takes_room_where_it_is_large() {
    // Of a frame one piece is taken, and all of it is there.
    let room = UnreadRoom::new(1000 * 1024);
    let watch = |n_bytes: usize| {
        let answers = UnreadAnswers::new(&room);
        let frames = futures_util::stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from(vec![0; n_bytes])))]);
        let mut response = Response::new(StreamBody::new(frames));
        response.extensions_mut().insert(GoesOn);
        let body = answers.add(response).into_body();
        (EndsUnread::new(pending::<Result<(), BoxError>>(), answers), body)
    };
    let (mut first, mut body) = watch(600_000);
    let first_piece = piece(&mut body).await;
    let (mut small, mut small_body) = watch(1000);
    let _small_piece = piece(&mut small_body).await;
    tokio::time::advance(Duration::from_secs(6000)).await;
    assert!(pends(&mut first).await && pends(&mut small).await);
    let (_second, mut second_body) = watch(600_000);
    let _second_piece = piece(&mut second_body).await;
    assert!(first.await.is_err(), "there is no room for both");
    assert!(pends(&mut small).await);
    drop((first_piece, body));
    // What is dropped in the midst of a frame takes none any more.
    let (mut third, mut third_body) = watch(300_000);
    let third_piece = piece(&mut third_body).await;
    drop((third_piece, third_body));
    // A frame is there until its last piece has been sent.
    let (mut fourth, mut fourth_body) = watch(990_000);
    let mut last = Bytes::new();
    for _ in 0..16 {
        last = piece(&mut fourth_body).await;
    }
    let (_fifth, mut fifth_body) = watch(60_000);
    drop(piece(&mut fifth_body).await);
    assert!(pends(&mut third).await && pends(&mut small).await);
    assert!(!pends(&mut fourth).await);
    drop(last);
}

/// One event is one for all who watch it.
#[tokio::test(start_paused = true)]
async fn a_frame_that_many_hold_takes_its_room_once() {
    let room = UnreadRoom::new(1000 * 1024);
    let watch = |frame: &Bytes| {
        let answers = UnreadAnswers::new(&room);
        let frames = futures_util::stream::iter([Ok::<_, Infallible>(Frame::data(frame.clone()))]);
        let mut response = Response::new(StreamBody::new(frames));
        response.extensions_mut().insert(GoesOn);
        let body = answers.add(response).into_body();
        (EndsUnread::new(pending::<Result<(), BoxError>>(), answers), body)
    };
    let event = Bytes::from(vec![0; 600_000]);
    let mut watches: Vec<_> = (0..100).map(|_| watch(&event)).collect();
    let mut pieces = Vec::new();
    for (_, body) in &mut watches {
        pieces.push(piece(body).await);
    }
    for (connection, _) in &mut watches {
        assert!(pends(connection).await);
    }
    // With another one there is no room. However many of the others went, one would hold all of it.
    let (mut other, mut other_body) = watch(&Bytes::from(vec![0; 600_000]));
    let _other_piece = piece(&mut other_body).await;
    assert!(!pends(&mut other).await);
    for (connection, _) in &mut watches {
        assert!(pends(connection).await);
    }
    drop((pieces, watches, event));
    let (mut last, mut last_body) = watch(&Bytes::from(vec![0; 400_000]));
    let _last_piece = piece(&mut last_body).await;
    assert!(pends(&mut last).await, "what all have let go takes no room");
}
