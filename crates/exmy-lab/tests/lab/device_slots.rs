use exmy_lab::device_slots::{DeviceSlots, MOST, need};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The most runs of so many bytes that were at work at once, of 24 on 16 threads and 80 bytes.
fn at_once(need: u64) -> usize {
    let (slots, now, most) = (DeviceSlots::new(Some(80)), AtomicUsize::new(0), AtomicUsize::new(0));
    let left = AtomicUsize::new(24);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                while left
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
                    .is_ok()
                {
                    let _turn = slots.take(need, || true).unwrap();
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(5));
                    now.fetch_sub(1, Ordering::SeqCst);
                }
            });
        }
    });
    most.into_inner()
}

#[test]
fn small_runs_share_and_large_ones_take_turns() {
    assert!(at_once(1) > 1);
    assert!((2..=8).contains(&at_once(10)));
    assert_eq!((at_once(11), at_once(80), at_once(1000)), (1, 1, 1));
}

#[test]
fn who_is_stopped_waits_no_longer() {
    let slots = DeviceSlots::new(Some(80));
    let all = slots.take(80, || true).unwrap();
    assert!(slots.take(1, || false).is_none());
    drop(all);
    assert!(slots.take(1, || false).is_some());
    assert!(DeviceSlots::new(None).take(u64::MAX, || false).is_some());
}

#[test]
fn what_is_small() {
    use exmy_train::train::preset::preset;
    let (narrow, gpt) = (preset("proxy-nano").unwrap(), preset("gpt2-124m").unwrap());
    let hopper = 79_u64 << 30;
    assert!(need(&narrow) * MOST as u64 <= hopper && need(&gpt) > hopper / 8);
}
