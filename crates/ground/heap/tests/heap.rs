//! The heap as the allocator of this test's process.
#![allow(missing_docs, reason = "a test")]

use std::alloc::{Layout, alloc, dealloc, realloc};
use std::collections::HashMap;
use std::sync::{Mutex, Once, mpsc};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: heap::Allocator = heap::Allocator;

/// Tests look at resident memory, and at which thread has which arena, so one runs at a time.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static BEGIN: Once = Once::new();
    static ALONE: Mutex<()> = Mutex::new(());
    let guard = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    BEGIN.call_once(|| heap::begin().unwrap());
    guard
}

fn resident_bytes() -> usize {
    let pages: usize = std::fs::read_to_string("/proc/self/statm").unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Allocates until the keeper has memory ready and the arena is in use.
fn warm_up() {
    let is_ours = |bytes: &Vec<u8>| heap::is_in_heap(bytes.as_ptr());
    wait_until("no memory became ready", || is_ours(&vec![1_u8; 100]));
}

fn bytes_of(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + seed) as u8).collect()
}

/// What is long, or of a thread that has not entered, is the C library's.
#[test]
fn others_are_left_alone() {
    let _alone = alone();
    assert!(!heap::is_in_heap(vec![1_u8; 100].as_ptr()));
    let entered = heap::enter();
    warm_up();
    assert!(!heap::is_in_heap(vec![1_u8; 1 << 20].as_ptr()));
    {
        let _again = heap::enter();
    }
    assert!(heap::is_in_heap(vec![1_u8; 100].as_ptr()), "the inner one ended it");
    drop(entered);
    assert!(!heap::is_in_heap(vec![1_u8; 100].as_ptr()));
}

/// Vectors of all lengths grow and shrink on one thread, some are freed on another, and none loses a byte.
#[test]
fn bytes_stay_whatever_thread_frees() {
    let _alone = alone();
    let (sender, receiver) = mpsc::channel::<(usize, Vec<u8>)>();
    let other = std::thread::spawn(move || {
        let mut kept = Vec::new();
        for (seed, mut bytes) in receiver {
            let seen = bytes_of(seed, bytes.len().min(10));
            assert_eq!(bytes, bytes_of(seed, bytes.len()));
            // Grown and shrunk where it did not come from.
            bytes.extend_from_slice(&[1; 100]);
            bytes.truncate(bytes.len() / 2);
            bytes.shrink_to_fit();
            kept.push((seen, bytes));
            if kept.len() > 100 {
                kept.drain(..50).for_each(|(seen, bytes)| assert_eq!(bytes[..seen.len()], seen));
            }
        }
    });
    let _entered = heap::enter();
    warm_up();
    let (mut kept, mut random) = (HashMap::new(), 1_usize);
    for seed in 0..100_000 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let length = 20 + (random >> 40) % if seed % 100 == 0 { 70_000 } else { 1500 };
        kept.insert(random >> 33 & 4095, (seed, bytes_of(seed, length)));
        if let Some((seed, mut bytes)) = kept.remove(&(random >> 21 & 4095)) {
            assert_eq!(bytes, bytes_of(seed, bytes.len()));
            let half = bytes.len() / 2;
            match random >> 60 & 3 {
                0 => sender.send((seed, bytes)).unwrap(),
                1 => {
                    bytes.truncate(half);
                    bytes.shrink_to_fit();
                    kept.insert(random >> 9 & 4095, (seed, bytes));
                }
                2 => {
                    let more = bytes_of(seed, bytes.len() + 300);
                    bytes.extend_from_slice(&more[bytes.len()..]);
                    kept.insert(random >> 9 & 4095, (seed, bytes));
                }
                _ => {}
            }
        }
        heap::tidy();
    }
    kept.into_values().for_each(|(seed, bytes)| assert_eq!(bytes, bytes_of(seed, bytes.len())));
    drop(sender);
    other.join().unwrap();
}

/// What was needed once goes back to the system, and is there again when it is needed.
#[test]
fn memory_comes_back() {
    let _alone = alone();
    let _entered = heap::enter();
    warm_up();
    for _ in 0..2 {
        let many: Vec<Vec<u8>> = (0..100_000)
            .map(|seed| bytes_of(seed, 1000))
            .inspect(|bytes| {
                // On a busy machine the keeper may lag: the C library serves until it has memory ready again.
                if !heap::is_in_heap(bytes.as_ptr()) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            })
            .collect();
        assert!(many.iter().filter(|bytes| heap::is_in_heap(bytes.as_ptr())).count() > 50_000);
        let before = resident_bytes();
        assert!(before > 90 << 20);
        drop(many);
        wait_until("memory stays", || {
            heap::tidy();
            resident_bytes() < before - (80 << 20)
        });
    }
}

/// An arena that its owner has left is tidied, and the next one's.
#[test]
fn who_enters_next_has_what_was_left() {
    let _alone = alone();
    let left = std::thread::spawn(|| {
        let _entered = heap::enter();
        warm_up();
        (0..20_000).map(|seed| bytes_of(seed, 1000)).collect::<Vec<_>>()
    });
    let left = left.join().unwrap();
    let _entered = heap::enter();
    warm_up();
    let before = resident_bytes();
    // The keeper sees how much is in the arena at its next look.
    wait_until("it was not taken over", || {
        heap::tidy();
        heap::take_over();
        resident_bytes() > 0 && heap::own_bytes() > 10 << 20
    });
    drop(left);
    wait_until("what was left was not freed", || {
        heap::tidy();
        resident_bytes() < before - (10 << 20)
    });
}

/// Alignment, zeros and sizes of none.
#[test]
fn layouts_are_kept() {
    let _alone = alone();
    let _entered = heap::enter();
    warm_up();
    for align in [1, 2, 4, 8, 16, 32, 64, 4096] {
        for size in [1, 7, 24, 25, 1000, 70_000] {
            let layout = Layout::from_size_align(size, align).unwrap();
            // SAFETY: the layouts are those of the allocations, and only written bytes are read.
            unsafe {
                let bytes = alloc(layout);
                assert!(bytes.addr().is_multiple_of(align));
                bytes.write_bytes(7, size);
                let bytes = realloc(bytes, layout, 3 * size);
                assert!(bytes.addr().is_multiple_of(align));
                assert!((0..size).all(|at| *bytes.add(at) == 7));
                dealloc(bytes, Layout::from_size_align(3 * size, align).unwrap());
            }
        }
    }
    for _ in 0..100 {
        drop(vec![9_u8; 500]);
        assert!(vec![0_u8; 500].iter().all(|byte| *byte == 0));
    }
}
