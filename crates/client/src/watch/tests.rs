use super::*;
use crate::script::{event, pod, streamed};

async fn read(frames: Vec<Vec<u8>>) -> Vec<String> {
    let mut watch = Watch::new(streamed(frames, false));
    let mut seen = Vec::new();
    while let Some(event) = watch.next().await {
        seen.push(match event {
            Ok(WatchEvent::Added(object)) => format!("added {}", String::from_utf8_lossy(&object)),
            Ok(WatchEvent::Modified(object)) => format!("modified {}", String::from_utf8_lossy(&object)),
            Ok(WatchEvent::Deleted(object)) => format!("deleted {}", String::from_utf8_lossy(&object)),
            Ok(WatchEvent::Bookmark(object)) => format!("bookmark {}", String::from_utf8_lossy(&object)),
            Ok(WatchEvent::Error(status)) => format!("error {} {}", status.code, status.reason),
            Err(error) => error.to_string(),
        });
    }
    seen
}

#[tokio::test]
async fn lines_are_whole_wherever_frames_are_cut() {
    let lines = [
        event("ADDED", &pod("a", "u1", 5)),
        b"\n".to_vec(),
        event("MODIFIED", &pod("a", "u1", 6)),
        event("BOOKMARK", &serde_json::json!({"metadata": {"resourceVersion": "7"}})),
        event("DELETED", &pod("a", "u1", 8)),
    ]
    .concat();
    let whole = read(vec![lines.clone()]).await;
    assert_eq!(whole.len(), 4);
    assert_eq!(whole[1], format!("modified {}", pod("a", "u1", 6)));
    for size in [1, 2, 7, 64, lines.len() - 1] {
        assert_eq!(read(lines.chunks(size).map(<[u8]>::to_vec).collect()).await, whole, "frames of {size} bytes");
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_said() {
    let too_long = vec![vec![b' '; 1 << 20]; 17];
    for (frames, expected) in [
        (vec![b"{\"type\":\"ADDED\",\"object\":{}}".to_vec()], vec![]),
        (
            vec![b"{\"type\":\"MOVED\",\"object\":{}}\n".to_vec()],
            vec!["cannot read the API server's answer: a watch event has the unknown type \"MOVED\""],
        ),
        (
            vec![event("ERROR", &serde_json::json!({"kind": "Status", "code": 410, "reason": "Expired"}))],
            vec!["error 410 Expired"],
        ),
        (too_long, vec!["cannot read the API server's answer: an event of the watch is longer than 16777216 bytes"]),
    ] {
        assert_eq!(read(frames).await, expected);
    }
}

#[tokio::test]
async fn objects_share_the_frame_they_came_in() {
    let frame = Bytes::from(event("ADDED", &pod("a", "u1", 5)));
    let body = http_body_util::Full::new(frame.clone());
    let body = http_body_util::BodyExt::boxed_unsync(http_body_util::BodyExt::map_err(body, |never| match never {}));
    let Some(Ok(WatchEvent::Added(object))) = Watch::new(body).next().await else { panic!("one event") };
    assert!(frame.as_ptr_range().contains(&object.as_ptr()), "no copy was made");
}
