//! How the C library's allocator is to behave, for the memory limit's sake.
//!
//! By default it keeps freed blocks for the thread that freed them. A build frees its
//! accumulators often, in every worker, and what stays behind is memory beyond the limit:
//! with eight workers and a limit of 64 MB, on a list archive of 0.9 GB, the process
//! held 117 MB at its peak; with the thresholds set here, 86 MB. One arena for all threads
//! does the rest for small blocks, which stay in whatever arena they came from; it costs
//! no time that could be measured, since the hot paths do not allocate.

#![expect(unsafe_code, reason = "mallopt is a C function; see the SAFETY comment")]

/// Blocks from this size on are mapped and go back to the system when they are freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const THRESHOLD: libc::c_int = 64 << 10;

/// Sets the thresholds; to be called before any thread is started.
pub(crate) fn settle() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: mallopt takes two integers and touches only the allocator's settings, under
    // its own lock; no other thread exists yet.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, THRESHOLD);
        libc::mallopt(libc::M_TRIM_THRESHOLD, THRESHOLD);
    }
}
