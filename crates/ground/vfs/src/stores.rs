//! Stores to persistent memory: copies that bypass the caches, write-back of cache lines, and the fence after both. And
//! prefetches.
//!
//! | Processor | write-back of a line | fence |
//! |---|---|---|
//! | x86-64 | `clwb`, else `clflushopt`, else `clflush`, by CPUID | `sfence` |
//! | aarch64 with `dpb` | `dc cvap` | `dsb sy` |
//! | others | none: regions are made durable by system calls | compiler's |
#![allow(unsafe_code, reason = "instructions that the language has no words for")]

use std::ptr::NonNull;

/// Bytes of a cache line. Longer lines are written back more than once.
const LINE_BYTES: usize = 64;

/// Lines that are prefetched at most. The processor fetches the following ones itself.
const PREFETCHED_LINES_MAX: usize = 20;

/// Begins to load the first lines of `len` bytes at an address, which need not be mapped: a prefetch never faults.
pub(crate) fn prefetch(address: usize, len: usize) {
    let first = address & !(LINE_BYTES - 1);
    let lines = address.saturating_add(len).saturating_sub(first).div_ceil(LINE_BYTES).min(PREFETCHED_LINES_MAX);
    for at in (0..lines).map(|line| first.wrapping_add(line * LINE_BYTES)) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch changes no state a program can see, whatever the address; SSE is part of x86-64.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(at));
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above; `prfm` never faults.
        unsafe {
            std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) at, options(nostack, preserves_flags, readonly));
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let _ = at;
    }
}

/// How a cache line is written back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteBack {
    /// The line may stay in the cache.
    #[cfg(target_arch = "x86_64")]
    Clwb,
    #[cfg(target_arch = "x86_64")]
    ClflushOpt,
    /// Every x86-64 processor has it.
    #[cfg(target_arch = "x86_64")]
    Clflush,
    #[cfg(target_arch = "aarch64")]
    DcCvap,
}

impl WriteBack {
    /// What this processor has. `None`: a program cannot write lines back.
    #[cfg(target_arch = "x86_64")]
    pub fn of_processor() -> Option<Self> {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        static FOUND: std::sync::OnceLock<WriteBack> = std::sync::OnceLock::new();
        let find = || match if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).ebx } else { 0 } {
            has if has & 1 << 24 != 0 => Self::Clwb,
            has if has & 1 << 23 != 0 => Self::ClflushOpt,
            _ => Self::Clflush,
        };
        Some(*FOUND.get_or_init(find))
    }

    /// What this processor has. `None`: a program cannot write lines back.
    #[cfg(target_arch = "aarch64")]
    pub fn of_processor() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("dpb").then_some(Self::DcCvap)
    }

    /// What this processor has. `None`: a program cannot write lines back.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub fn of_processor() -> Option<Self> {
        None
    }

    /// Begins to write a line back.
    ///
    /// # Safety
    /// The address can be read.
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), expect(unused, reason = "there are none"))]
    unsafe fn line(self, address: *const u8) {
        use std::arch::asm;
        match self {
            // SAFETY: the caller's promise; the instruction changes no contents. The processor has it.
            #[cfg(target_arch = "x86_64")]
            Self::Clwb => unsafe { asm!("clwb [{}]", in(reg) address, options(nostack, preserves_flags)) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::ClflushOpt => unsafe { asm!("clflushopt [{}]", in(reg) address, options(nostack, preserves_flags)) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Clflush => unsafe { asm!("clflush [{}]", in(reg) address, options(nostack, preserves_flags)) },
            // SAFETY: as above. The name of `dc cvap` that assemblers know without the extension.
            #[cfg(target_arch = "aarch64")]
            Self::DcCvap => unsafe {
                asm!("sys #3, c7, c12, #1, {}", in(reg) address, options(nostack, preserves_flags))
            },
        }
    }
}

/// Begins to write the lines of a range back; [`fence`] ends it. Without effect where [`WriteBack::of_processor`] has
/// nothing.
///
/// # Safety
/// The range can be read.
pub(crate) unsafe fn flush(start: NonNull<u8>, len: usize) {
    let Some(write_back) = WriteBack::of_processor() else { return };
    let start = start.as_ptr().cast_const();
    let first = start.addr() / LINE_BYTES * LINE_BYTES;
    for address in (first..start.addr() + len).step_by(LINE_BYTES) {
        // The line of a byte of the range may begin before it, on the same page.
        // SAFETY: the caller's promise, for the byte of the range in this line.
        unsafe { write_back.line(start.with_addr(address.max(start.addr()))) };
    }
}

/// Waits until flushed lines and copies that bypass the caches have reached the memory.
pub(crate) fn fence() {
    // SAFETY: orders stores, and changes none.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("dsb sy", options(nostack, preserves_flags));
    }
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

/// Copies bytes past the caches where the processor can, and begins to write back what went through them; [`fence`]
/// ends it.
///
/// # Safety
/// `to` has room for the bytes, which are elsewhere.
pub(crate) unsafe fn copy_nt(bytes: &[u8], to: NonNull<u8>) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
        const UNIT: usize = size_of::<__m128i>();
        let head = to.align_offset(UNIT).min(bytes.len());
        let body = (bytes.len() - head) / UNIT * UNIT;
        // SAFETY: all within the caller's range; the stores of the body are aligned. Their order with others is up to
        // `fence`, before which no other thread reads the range: by the caller's promise it is not published yet.
        unsafe {
            if head > 0 {
                to.copy_from_nonoverlapping(NonNull::from(&bytes[..head]).cast(), head);
                flush(to, head);
            }
            for at in (head..head + body).step_by(UNIT) {
                let unit = _mm_loadu_si128(bytes.as_ptr().add(at).cast());
                _mm_stream_si128(to.as_ptr().add(at).cast(), unit);
            }
            let tail = &bytes[head + body..];
            if !tail.is_empty() {
                let to = to.add(head + body);
                to.copy_from_nonoverlapping(NonNull::from(tail).cast(), tail.len());
                flush(to, tail.len());
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller's promise.
    unsafe {
        to.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len());
        flush(to, bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte arrives, at every alignment, and no other byte changes.
    #[test]
    fn copies_are_exact() {
        let from: Vec<u8> = (0..300u32).map(|at| (at % 250 + 1) as u8).collect();
        for (offset, len) in (0..20).flat_map(|offset| [0, 1, 7, 15, 16, 17, 64, 255].map(|len| (offset, len))) {
            let mut to = vec![0u8; 300];
            let target = NonNull::from(&mut to[offset..offset + len]).cast();
            // SAFETY: the range belongs to the vector.
            unsafe {
                copy_nt(&from[..len], target);
                flush(target, len);
            }
            fence();
            assert_eq!(to[offset..offset + len], from[..len]);
            assert!(to[..offset].iter().chain(&to[offset + len..]).all(|byte| *byte == 0));
        }
    }

    /// Every way of this processor's family writes back without changing a byte.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn lines_keep_their_contents() {
        let bytes = [7u8; 200];
        let has = WriteBack::of_processor().expect("every x86-64 processor has one");
        for way in [has, WriteBack::Clflush] {
            // SAFETY: the byte can be read.
            unsafe { way.line(bytes.as_ptr()) };
        }
        fence();
        assert_eq!(bytes, [7; 200]);
    }
}
