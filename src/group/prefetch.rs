//! Hints to the processor: what to fetch while it does something else.
//!
//! A hint changes nothing, at any address: a processor ignores it if it does not know the
//! instruction, or if nothing is at the address.

#![allow(unsafe_code)]

/// Two cache lines from here on will be read soon.
#[inline(always)]
pub(super) fn to_read<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a hint.
    unsafe {
        std::arch::asm!("prefetcht0 [{0}]", "prefetcht0 [{0} + 64]", in(reg) at,
            options(nostack, preserves_flags, readonly));
    }
}

/// The cache line here will be changed soon.
#[inline(always)]
pub(super) fn to_change<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a hint.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
}
