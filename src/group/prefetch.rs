//! Hints to the processor: what is to be fetched while something else is done.
//!
//! They change nothing, at any address: where a processor does not know one, or
//! nothing is there, it passes it over.

#![allow(unsafe_code)]

/// Two lines from here on are read soon.
#[inline(always)]
pub(super) fn to_read<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a hint.
    unsafe {
        std::arch::asm!("prefetcht0 [{0}]", "prefetcht0 [{0} + 64]", in(reg) at,
            options(nostack, preserves_flags, readonly));
    }
}

/// The line here is changed soon.
#[inline(always)]
pub(super) fn to_change<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a hint.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
}
