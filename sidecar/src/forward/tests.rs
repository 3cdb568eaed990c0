use super::*;
use prometheus_client::registry::Registry;
use tokio::sync::mpsc::Receiver;

fn forward(protocol: Protocol, bytes: usize) -> (Forward, Receiver<Item>) {
    let (queue, waiting) = channel(WAITING);
    let most = bytes.div_ceil(UNIT);
    let forward = Forward {
        protocol,
        queue,
        room: Arc::new(Semaphore::new(most)),
        most,
        metrics: Metrics::register(&mut Registry::default()),
    };
    (forward, waiting)
}

#[test]
fn what_goes_on_is_what_came_with_the_frame_that_grpc_wants() {
    for (protocol, expected) in [
        (Protocol::Http, &b"abc"[..]),
        (Protocol::Grpc, b"\0\0\0\0\x03abc"),
    ] {
        let (forward, mut waiting) = forward(protocol, 1 << 20);
        forward.offer(Signal::Logs, Encoding::Protobuf, b"abc");
        let item = waiting.try_recv().expect("an item");
        assert_eq!(item.body, expected);
        item.sent();
        assert_eq!(forward.metrics.count(Signal::Logs, None), 1);
    }
}

#[test]
fn what_finds_no_room_is_dropped_and_counted() {
    let (forward, mut waiting) = forward(Protocol::Http, 4 * UNIT);
    for _ in 0..6 {
        forward.offer(Signal::Traces, Encoding::Protobuf, &[0; UNIT]);
    }
    let dropped = |cause| forward.metrics.count(Signal::Traces, Some(cause));
    assert_eq!(
        (forward.waiting(), dropped(Cause::QueueFull)),
        (4 * UNIT, 2)
    );
    // Larger than all there is, it can never go.
    forward.offer(Signal::Traces, Encoding::Protobuf, &[0; 5 * UNIT]);
    assert_eq!(dropped(Cause::QueueFull), 3);
    waiting.try_recv().expect("an item").dropped(Cause::Refused);
    assert_eq!((forward.waiting(), dropped(Cause::Refused)), (3 * UNIT, 1));
    drop(waiting);
    assert_eq!((forward.waiting(), dropped(Cause::Ended)), (0, 3));
}

#[test]
fn many_small_ones_are_bounded_as_well() {
    let (forward, _waiting) = forward(Protocol::Http, 1 << 30);
    for _ in 0..=WAITING {
        forward.offer(Signal::Logs, Encoding::Json, b"");
    }
    let dropped = forward.metrics.count(Signal::Logs, Some(Cause::QueueFull));
    assert_eq!(dropped, 1);
}

#[test]
fn json_that_nobody_understands_goes_on_by_http_only() {
    for (protocol, encoding, expected) in [
        (Protocol::Http, Encoding::Json, true),
        (Protocol::Http, Encoding::Protobuf, true),
        (Protocol::Grpc, Encoding::Protobuf, true),
        (Protocol::Grpc, Encoding::Json, false),
    ] {
        let (forward, _waiting) = forward(protocol, UNIT);
        assert_eq!(forward.speaks(encoding), expected);
    }
}
