use super::*;

#[test]
fn a_pause_doubles_until_it_is_the_longest() {
    let retry = |first, most| Retry {
        first,
        most,
        ..Retry::default()
    };
    let hour = retry(Duration::from_micros(1), Duration::from_secs(3_600));
    let pauses = [0, 1, 2, 32, 33].map(|attempt| hour.pause(attempt).as_micros());
    assert_eq!(pauses, [1, 1, 2, 1 << 31, 3_600_000_000]);
    for attempt in [100, u32::MAX] {
        let endless = retry(Duration::from_nanos(1), Duration::MAX);
        assert_eq!(endless.pause(attempt), Duration::MAX);
        assert_eq!(Retry::default().pause(attempt), Duration::ZERO);
    }
}
