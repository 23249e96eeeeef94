//! The most memory that a thread has taken: an allocator that counts by thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Once;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static TAKEN: Cell<i64> = const { Cell::new(0) };
    static MOST: Cell<i64> = const { Cell::new(0) };
}

static KEPT: Once = Once::new();

/// Makes the allocator keep what a run has freed for the next run: asking the kernel for every page again took a fifth of the
/// simulation's CPU time.
fn keep_what_is_freed() {
    #[cfg(target_env = "gnu")]
    for (parameter, bytes) in [(libc::M_MMAP_THRESHOLD, 32 << 20), (libc::M_TRIM_THRESHOLD, i32::MAX)] {
        // SAFETY: these parameters say when memory goes back to the kernel and nothing else.
        let taken = unsafe { libc::mallopt(parameter, bytes) };
        assert_eq!(taken, 1, "the allocator takes the threshold");
    }
}

/// Adds to the bytes that this thread has taken.
fn count(bytes: i64) {
    // A thread that ends has no counts any more.
    let _ = TAKEN.try_with(|taken| {
        taken.set(taken.get() + bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(taken.get())));
    });
}

/// Begins to count.
pub fn begin() {
    KEPT.call_once(keep_what_is_freed);
    TAKEN.set(0);
    MOST.set(0);
}

/// Most bytes that this thread has taken, and not given back, at one time since [`begin`].
pub fn most() -> i64 {
    MOST.get()
}

// SAFETY: memory comes from the system's allocator, unchanged, and counting takes none.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller keeps to the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller keeps to the contract, which is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller keeps to the contract, which is the same.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: the caller keeps to the contract, which is the same.
        unsafe { System.realloc(memory, layout, size) }
    }
}
